"""A replica equals its source, though changes of the log are older than the key that its tables have by now."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.conformance.pipelines import Line
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Row, Subject, Update


def row(key: int, value: int) -> Row:
    return {KEY: key, VALUE: value, NOTE: None}


def test_a_replica_is_equal_though_the_log_is_older_than_the_key(
    subject: Subject, tmp_path: Path, spark: SparkSession
) -> None:
    with subject.source() as source:
        source.create("keyed")
        source.commit(Insert("keyed", row(1, 1)), Insert("keyed", row(2, 1)), Insert("keyed", row(3, 3)))
        sink = {"replica": {"path": "lake", "read_again": {"at_most_every": "0s"}}}
        given = {"table.watch.interval.ms": "300", "signal.data.collection": str(source.id(source.signals))}
        line = Line(subject, source, tmp_path / "keys", sink, ["keyed", source.signals], given)
        with line.running(spark) as run:
            line.until(lambda: line.equals("keyed"), run)
        # The row leaves a value that another one keeps: by the key of now both seem to be that one.
        source.commit(Update("keyed", 2, {VALUE: 2}))
        source.move_key("keyed")
        with line.running(spark) as run:
            source.commit(Insert("keyed", row(3, 4)))
            line.until(lambda: line.equals("keyed"), run)
