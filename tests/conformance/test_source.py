"""The Spark data source by itself: a bounded read, and a stream in each shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import tailrace
from tests.behaviour.streams import started
from tests.conformance.pipelines import PATIENCE_S, PREFIX
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Source, Subject

SHAPES = ("kafka", "event", "table", "arrow")


@pytest.fixture(scope="module")
def table(source: Source) -> str:
    """The name of a table with two rows."""
    source.create("read")
    source.commit(*(Insert("read", {KEY: key, VALUE: key, NOTE: None}) for key in (1, 2)))
    return "read"


def options(subject: Subject, source: Source, table: str, pipeline: str, shape: str) -> dict[str, str]:
    """The options of a reader, as users give them."""
    include = {subject.package.include_list: source.id(table).filtered.replace(".", r"\.")}
    told = {"topic.prefix": PREFIX, "shape": shape, "include.schema.changes": "false"}
    return {**source.properties(pipeline), **include, **told}


def keys(source: Source, rows: list[Row], shape: str) -> list[int]:
    """The keys of the rows of a shape."""
    if shape == "kafka":
        return sorted(source.key(json.loads(row["key"])["payload"]) for row in rows)
    if shape == "event":
        return sorted(source.key(json.loads(row["key"])) for row in rows)
    return sorted((source.image(row["after"].asDict()) or {})[KEY] for row in rows)


def test_a_bounded_read_is_the_tables_as_of_now(
    subject: Subject, source: Source, table: str, spark: SparkSession
) -> None:
    given = options(subject, source, table, "bounded", "event")
    rows = spark.read.format(subject.format).options(**given).load().collect()
    assert keys(source, rows, "event") == [1, 2]
    assert {row["op"] for row in rows} == {"r"}
    assert {row["topic"] for row in rows} == {f"{PREFIX}.{source.id(table)}"}


def test_rows_are_typed_by_table(subject: Subject, source: Source, table: str, spark: SparkSession) -> None:
    given = options(subject, source, table, "typed", "arrow")
    ((named, key, rows),) = tailrace.tables(spark.read.format(subject.format).options(**given).load())
    found = rows.collect()
    assert (str(named), len(key)) == (str(source.id(table)), 1)
    assert keys(source, found, "table") == [1, 2]
    assert {(row["op"], row["before"], row["commit"]) for row in found} == {("r", None, None)}
    assert len({row["order"] for row in found}) == 2


def test_a_stream_has_rows_in_each_shape(
    subject: Subject, source: Source, table: str, spark: SparkSession, folder: Path
) -> None:
    found: dict[str, list[Row]] = {shape: [] for shape in SHAPES}
    queries = []
    for shape in SHAPES:

        def keep(frame: DataFrame, _: int, shape: str = shape) -> None:
            found[shape].extend(frame.collect())

        stream = spark.readStream.format(subject.format)
        frame = stream.options(**options(subject, source, table, f"shape_{shape}", shape)).load()
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / shape))
        queries.append(started(writer.trigger(availableNow=True)))
    try:
        for query in queries:
            assert query.awaitTermination(PATIENCE_S), "the query does not end"
    finally:
        for query in queries:
            query.stop()
    for shape in SHAPES[:-1]:
        assert keys(source, found[shape], shape) == [1, 2], shape
    assert sum(row["count"] for row in found["arrow"]) == 2
