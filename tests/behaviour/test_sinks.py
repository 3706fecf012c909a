"""Pipelines into every sink: it gets what the source gives, once, on real targets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.errors import SinkError
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.pipeline.target import build
from tailrace.sinks.console import ConsoleSink
from tailrace.sinks.kafka.sink import KafkaSink
from tailrace.sinks.replica.sink import read_table
from tailrace.testing.kafka import EmbeddedKafka, spark_kafka_jars
from tests.behaviour.kafka_topics import consumed, topic
from tests.behaviour.streams import eventually, started
from tests.conftest import Database

SETUP = (
    "CREATE TABLE items (id int PRIMARY KEY, name text)",
    "INSERT INTO items VALUES (1, 'one'), (2, 'two')",
)
CHANGES = (
    "INSERT INTO items VALUES (3, 'three')",
    "UPDATE items SET name = 'zwei' WHERE id = 2",
    "DELETE FROM items WHERE id = 1",
    "UPDATE items SET id = 4 WHERE id = 3",
    "TRUNCATE items",
)
# Of SETUP and CHANGES: operation (None: tombstone) and id.
HISTORY = [
    ("r", 1), ("r", 2), ("c", 3), ("u", 2), ("d", 1), (None, 1), ("d", 3), (None, 3), ("c", 4), ("t", None)
]  # fmt: skip


def pipeline(
    database: Database, folder: Path, sink: dict[str, Any], properties: Mapping[str, str] | None = None, **more: Any
) -> Definition:
    """A pipeline that stops when all is read."""
    config = {
        **database.properties,
        "topic.prefix": f"p-{database.name}",
        "slot.name": database.name,
        "skipped.operations": "none",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        **(properties or {}),
    }
    content = {"source": {"config": config}, "sink": sink, "checkpoint": "state", "trigger": "availableNow", **more}
    return from_content(content, base=folder, where="test")


def run(definition: Definition, spark: SparkSession) -> int:
    """Runs the pipeline to its end; how many events it wrote."""
    running = Pipeline(definition, spark).start()
    assert running.await_(200)
    return running.progress().events


def run_history(database: Database, definition: Definition, spark: SparkSession) -> None:
    """SETUP in a first run, which takes it as a snapshot, CHANGES in a second."""
    database.execute(*SETUP)
    run(definition, spark)
    database.execute(*CHANGES)
    run(definition, spark)


def op_and_id(key: str | bytes | None, value: str | bytes | None) -> tuple[str | None, int | None]:
    """A record as in HISTORY."""
    return json.loads(value)["op"] if value else None, json.loads(key)["id"] if key else None


def replay_last_batch(state: Path) -> None:
    """Makes the checkpoint look as if the process had died between the sink's write and Spark's commit."""
    last = max(int(file.name) for file in (state / "commits").iterdir() if file.name.isdigit())
    (state / "commits" / str(last)).unlink()
    (state / "commits" / f".{last}.crc").unlink(missing_ok=True)


@pytest.mark.long
def test_a_step_routes_into_kafka(
    kafka: EmbeddedKafka, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    name = topic(kafka)
    route = {"route": {"regex": r"p-.*\.public\.items", "replacement": name}}
    run_history(
        database, pipeline(database, tmp_path, {"kafka": {"bootstrap.servers": kafka.bootstrap}}, steps=[route]), spark
    )
    found = list(consumed(kafka, name))
    assert [op_and_id(message.key(), message.value()) for message in found] == HISTORY


@pytest.mark.parametrize("delivery", ["exactly-once", pytest.param("at-least-once", marks=pytest.mark.crash)])
def test_pipeline_into_kafka_and_a_replayed_batch(
    kafka: EmbeddedKafka, database: Database, spark: SparkSession, tmp_path: Path, delivery: str
) -> None:
    target = {"bootstrap.servers": kafka.bootstrap, "delivery": delivery}
    given = {"provide.transaction.metadata": "true", "heartbeat.interval.ms": "1"}
    definition = pipeline(database, tmp_path, {"kafka": target}, given)
    prefix = f"p-{database.name}"
    names = [topic(kafka, name=f"{prefix}.{end}") for end in ("public.items", "transaction")]
    names.append(topic(kafka, name=f"__debezium-heartbeat.{prefix}"))
    run_history(database, definition, spark)
    before = [found(kafka, name) for name in names]
    assert [op_and_id(*record) for record in before[0]] == HISTORY
    headers = [dict(message.headers() or []) for message in consumed(kafka, names[0])]
    assert headers[0]["__debezium.context.connectorName"] == b"postgresql"
    assert "__debezium.newkey" in headers[7], "a tombstone has its delete's headers"
    replay_last_batch(tmp_path / "state")
    run(definition, spark)
    after = [found(kafka, name) for name in names]
    if delivery == "exactly-once":
        # The server's own records in the log may bring another heartbeat.
        assert [*after[:2], after[2][: len(before[2])]] == before
        assert len(set(after[2])) == len(after[2])
    else:
        assert all(len(now) > len(then) for now, then in zip(after, before, strict=True)), "the batch came again"


@pytest.mark.long
@pytest.mark.long
def test_a_restored_checkpoint_loses_nothing_in_kafka(
    kafka: EmbeddedKafka, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark gives another range of the log the number of a batch that is in Kafka."""
    definition = pipeline(database, tmp_path, {"kafka": {"bootstrap.servers": kafka.bootstrap}})
    name = topic(kafka, name=f"p-{database.name}.public.items")
    database.execute(*SETUP)
    run(definition, spark)
    shutil.copytree(tmp_path / "state", tmp_path / "older")
    database.execute("INSERT INTO items VALUES (3, 'three')")
    run(definition, spark)
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "older").rename(tmp_path / "state")
    database.execute("INSERT INTO items VALUES (4, 'four')")
    run(definition, spark)
    events = [op_and_id(*record) for record in found(kafka, name)]
    assert events == [("r", 1), ("r", 2), ("c", 3), ("c", 3), ("c", 4)]


@pytest.mark.long
@pytest.mark.long
def test_the_log_is_written_by_one_producer(
    kafka: EmbeddedKafka, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    """Also behind a snapshot of several tasks, which leave several Python workers behind."""
    database.execute("CREATE TABLE others (id int PRIMARY KEY)", *SETUP)
    database.execute("INSERT INTO others VALUES (1)")
    definition = pipeline(database, tmp_path, {"kafka": {"bootstrap.servers": kafka.bootstrap}}, trigger="100ms")
    sink = build(definition, definition.config())
    assert isinstance(sink, KafkaSink)
    running = Pipeline(definition, spark, sink).start()
    try:
        assert eventually(lambda: sink.written.total == 3)
        owners = set()
        for n in range(10, 16):
            database.execute(f"INSERT INTO items VALUES ({n}, 'n')")
            written = n - 6
            assert eventually(lambda: sink.written.total == written)  # noqa: B023
            (claim,) = sink._claims.values()
            owners.add(claim._owners[0])
    finally:
        running.stop()
    assert len(owners) == 1


def found(kafka: EmbeddedKafka, name: str) -> list[tuple[str | bytes | None, str | bytes | None]]:
    """Keys and values of a topic of one partition."""
    return [(message.key(), message.value()) for message in consumed(kafka, name)]


@pytest.mark.long
def test_pipeline_into_kafka_that_is_down_fails_with_the_sentence(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    database.execute(*SETUP)
    sink = {"kafka": {"bootstrap.servers": "127.0.0.1:9", "properties": {"message.timeout.ms": 1500}}}
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:9") as caught:
        run(pipeline(database, tmp_path, sink, {"errors.max.retries": "0"}), spark)
    assert caught.value.remedy is not None


def test_pipeline_into_json_lines_and_a_replayed_batch_changes_nothing(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    definition = pipeline(database, tmp_path, {"json": {"path": "out"}})
    run_history(database, definition, spark)
    replay_last_batch(tmp_path / "state")
    run(definition, spark)
    lines = [json.loads(row.value) for row in spark.read.text(str(tmp_path / "out")).collect()]
    assert sorted(str((line["value"] or {}).get("op")) for line in lines) == sorted(str(op) for op, _ in HISTORY)
    (truncate,) = [line for line in lines if (line["value"] or {}).get("op") == "t"]
    assert list(truncate) == ["topic", "partition", "key", "value", "headers"]
    assert (truncate["topic"], truncate["partition"], truncate["key"]) == (
        f"p-{database.name}.public.items",
        None,
        None,
    )
    assert truncate["headers"]["__debezium.context.connectorName"] == "postgresql"


@pytest.mark.long
def test_pipeline_into_parquet_and_a_replayed_batch_changes_nothing(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    definition = pipeline(database, tmp_path, {"parquet": {"path": "out"}})
    run_history(database, definition, spark)
    replay_last_batch(tmp_path / "state")
    run(definition, spark)
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("position").collect()
    assert {row.topic for row in rows} == {f"p-{database.name}.public.items"}
    expected = sorted(f"{op} {key}" for op, key in HISTORY if op)
    assert sorted(f"{row.op} {json.loads(row.key)['id'] if row.key else None}" for row in rows) == expected
    (deleted,) = [row for row in rows if row.op == "d" and json.loads(row.key)["id"] == 1]
    assert deleted.source.table == "items"
    assert json.loads(deleted.before)["id"] == 1


def test_a_replica_follows_renames_and_drops_that_the_triggers_report(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    definition = pipeline(database, tmp_path, {"replica": {"path": "lake"}})
    event_triggers.install(definition.config())
    database.execute(*SETUP, "CREATE TABLE old (id int PRIMARY KEY, v text)", "INSERT INTO old VALUES (1, 'old')")
    run(definition, spark)
    database.execute(
        "INSERT INTO items VALUES (3, 'three')",
        "ALTER TABLE items RENAME name TO title",
        "UPDATE items SET title = 'zwei' WHERE id = 2",
        "ALTER TABLE items RENAME TO goods",
        "ALTER TABLE goods ADD price int, DROP COLUMN id, ADD COLUMN id int PRIMARY KEY GENERATED ALWAYS AS IDENTITY",
        "ALTER TABLE old RENAME TO items",
        "UPDATE items SET v = 'new'",
        "CREATE TABLE gone (id int PRIMARY KEY)",
        "INSERT INTO gone VALUES (1)",
        "DROP TABLE gone",
        "INSERT INTO goods (title, price) VALUES ('four', 4)",
    )
    run(definition, spark)
    lake = str(tmp_path / "lake")
    rows = {name: read_table(lake, f"public.{name}").to_pylist() for name in ("goods", "items", "old", "gone")}
    titles = sorted((row["title"], row["price"]) for row in rows["goods"])
    assert titles == [("four", 4), ("one", None), ("three", None), ("zwei", None)]
    assert rows["items"] == [{"id": 1, "v": "new"}]
    assert (rows["old"], rows["gone"]) == ([], [])


@pytest.mark.long
@pytest.mark.long
def test_a_replica_with_names_for_a_catalog_and_columns_about_changes(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    metadata = {"commit_time": "_changed", "position": "_position", "op": "_op"}
    sink = {"replica": {"path": "lake", "names": "catalog", "metadata": metadata}}
    definition = pipeline(database, tmp_path, sink)
    event_triggers.install(definition.config())
    database.execute(
        'CREATE TABLE "Order Lines" ("Id" int PRIMARY KEY, "Unit Price" int)',
        'INSERT INTO "Order Lines" VALUES (1, 10), (2, 20), (3, 30)',
        'CREATE TABLE "Tags" ("A Tag" text)',
        'ALTER TABLE "Tags" REPLICA IDENTITY FULL',
        """INSERT INTO "Tags" VALUES ('x'), ('x'), ('y')""",
    )
    run(definition, spark)
    database.execute(
        'UPDATE "Order Lines" SET "Unit Price" = 11 WHERE "Id" = 1',
        'DELETE FROM "Order Lines" WHERE "Id" = 2',
        'ALTER TABLE "Order Lines" RENAME "Unit Price" TO "List Price"',
        'INSERT INTO "Order Lines" VALUES (4, 40)',
        """DELETE FROM "Tags" WHERE "A Tag" = 'y'""",
    )
    run(definition, spark)
    replay_last_batch(tmp_path / "state")
    run(definition, spark)
    orders, tags = (
        read_table(str(tmp_path / "lake"), f"public.{name}", names="catalog") for name in ("Order Lines", "Tags")
    )
    assert sorted(each.parent.name for each in tmp_path.glob("lake/[!_]*/_delta_log")) == [
        "public_order_lines",
        "public_tags",
    ]
    assert orders.column_names == ["id", "list_price", "_changed", "_position", "_op"]
    rows = sorted(orders.to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["list_price"], row["_op"]) for row in rows] == [(1, 11, "u"), (3, 30, "r"), (4, 40, "c")]
    updated, read, inserted = (row["_position"] for row in rows)
    assert read < updated < inserted
    assert rows[0]["_changed"] <= rows[2]["_changed"]
    assert tags.to_pylist() == [{"a_tag": "x"}, {"a_tag": "x"}], "rows without a key are told apart by all columns"


def test_pipeline_into_nothing(database: Database, spark: SparkSession, tmp_path: Path) -> None:
    database.execute(*SETUP)
    assert run(pipeline(database, tmp_path, {"null": {}}), spark) == 2


def test_pipeline_into_the_console(database: Database, spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(database, tmp_path, {"console": {}})
    database.execute(*SETUP)
    output = StringIO()
    running = Pipeline(definition, spark, ConsoleSink(Console(file=output, width=200))).start()
    assert running.await_(200)
    lines = [line.split(maxsplit=1)[1] for line in output.getvalue().splitlines()]
    assert lines == [
        f"read     p-{database.name}.public.items  id=1  name=one",
        f"read     p-{database.name}.public.items  id=2  name=two",
    ]


def test_steps_filter_what_reaches_a_sink(database: Database, spark: SparkSession, tmp_path: Path) -> None:
    keep = [{"filter": {"tables": [r"public\.items"], "operations": ["delete", "truncate"]}}]
    definition = pipeline(database, tmp_path, {"json": {"path": "out"}}, steps=keep)
    run_history(database, definition, spark)
    lines = [json.loads(row.value) for row in spark.read.text(str(tmp_path / "out")).collect()]
    assert sorted((line["value"] or {}).get("op", "-") for line in lines) == ["-", "-", "d", "d", "t"]


def test_the_kafka_shape_goes_through_sparks_own_sink(
    kafka: EmbeddedKafka, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    for jar in spark_kafka_jars():
        spark.sql(f"ADD JAR '{jar}'")
    database.execute(*SETUP)
    config = pipeline(database, tmp_path, {"null": {}}).properties()
    name = topic(kafka)

    def write() -> None:
        frame = spark.readStream.format("postgres-cdc").option("tailrace.properties", json.dumps(config)).load()
        writer = (
            frame.writeStream.format("kafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap)
            .option("includeHeaders", "true")
            .option("topic", name)
            .option("checkpointLocation", str(tmp_path / "state"))
        )
        assert started(writer.trigger(availableNow=True)).awaitTermination(200)

    write()
    database.execute(*CHANGES)
    write()
    found = list(consumed(kafka, name))
    assert [op_and_id(message.key(), message.value()) for message in found] == HISTORY
    assert "__debezium.newkey" in dict(found[7].headers() or [])
