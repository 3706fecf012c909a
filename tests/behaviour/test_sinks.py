"""Every sink gets what the source gives: keys, values, tombstones, headers and order, on real targets."""

from __future__ import annotations

import json
import shutil
import time
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
from tailrace.sinks.kafka.client import Settings
from tailrace.sinks.kafka.delivery import AtLeastOnce
from tailrace.sinks.kafka.sink import KafkaSink
from tailrace.sinks.replica.sink import read_table
from tailrace.testing.kafka import EmbeddedKafka, spark_kafka_jars
from tests.behaviour.kafka_topics import consumed, records, topic
from tests.behaviour.streams import eventually
from tests.conftest import Database


def delivery(servers: str, **properties: Any) -> AtLeastOnce:
    return AtLeastOnce(Settings({"bootstrap.servers": servers, **properties}))


def test_kafka_gets_keys_values_tombstones_headers_and_partitions(kafka: EmbeddedKafka) -> None:
    name = topic(kafka, partitions=3)
    sent = delivery(kafka.bootstrap)
    headers = [("h", b'{"a":1}'), ("h2", b"")]
    sent.send(records((name, 2, '{"id":1}', '{"op":"c"}', headers), (name, 2, '{"id":1}', None, [])))
    sent.send(records((name, 1, None, "é", [])))
    sent.finish()
    assert sent.count == 3
    found = [(m.partition(), m.key(), m.value(), m.headers()) for m in consumed(kafka, name)]
    assert found == [
        (1, None, "é".encode(), None),
        (2, b'{"id":1}', b'{"op":"c"}', headers),
        (2, b'{"id":1}', None, None),
    ]


def test_kafka_gets_the_time_that_a_record_has_and_else_its_own(kafka: EmbeddedKafka) -> None:
    name = topic(kafka)
    sent = delivery(kafka.bootstrap)
    row = (name, 0, "k", "v", [])
    before = time.time_ns() // 1_000_000
    sent.send(records(row, row, times=[1_704_164_645_678_999, None]))
    sent.finish()
    given, own = (message.timestamp()[1] for message in consumed(kafka, name))
    assert (given, own >= before) == (1_704_164_645_678, True)
    with pytest.raises(SinkError, match="before 1970"):
        sent.send(records(row, times=[-1]))


def test_kafka_keeps_the_order_of_a_key_and_puts_it_where_java_would(kafka: EmbeddedKafka) -> None:
    name = topic(kafka, partitions=5)
    sent = delivery(kafka.bootstrap, **{"queue.buffering.max.messages": 100})
    sent.send(records(*[(name, None, f"key {n % 7}", str(n), []) for n in range(5000)]))
    sent.finish()
    assert sent.count == 5000
    by_key: dict[bytes, list[int]] = {}
    places: dict[bytes, set[int]] = {}
    for message in consumed(kafka, name):
        key, value = message.key(), message.value()
        assert key is not None
        assert value is not None
        by_key.setdefault(key, []).append(int(value))
        places.setdefault(key, set()).add(message.partition() or 0)
    assert by_key == {f"key {n}".encode(): list(range(n, 5000, 7)) for n in range(7)}
    # Of org.apache.kafka.common.utils.Utils.murmur2, masked, modulo 5.
    assert places == {key: {murmur2(key) % 5} for key in by_key}


def murmur2(data: bytes) -> int:
    """Kafka's default hash of a key, positive."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = data[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


def test_a_record_too_large_is_an_error_with_its_topic_and_remedy(kafka: EmbeddedKafka) -> None:
    name = topic(kafka)
    with pytest.raises(SinkError, match=name) as caught:
        delivery(kafka.bootstrap).send(records((name, None, "k", "x" * 2_000_000, [])))
    assert "message.max.bytes" in str(caught.value)


def test_a_topic_the_broker_refuses_is_an_error(kafka: EmbeddedKafka) -> None:
    def send() -> None:
        sent = delivery(kafka.bootstrap)
        sent.send(records(("no/topic", None, "k", "v", [])))
        sent.finish()

    with pytest.raises(SinkError, match="topic no/topic") as caught:
        send()
    assert caught.value.remedy is not None
    assert "route" in caught.value.remedy


def test_an_unreachable_broker_is_an_error_with_its_address() -> None:
    sent = delivery("127.0.0.1:9", **{"message.timeout.ms": 1500})
    sent.send(records(("t", None, "k", "v", [])))
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:9") as caught:
        sent.finish()
    assert "bootstrap.servers" in str(caught.value)


def test_settings_the_producer_does_not_know_are_an_error() -> None:
    with pytest.raises(SinkError, match=r"sink\.kafka\.properties"):
        delivery("127.0.0.1:9", **{"linger.mss": 5})


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


def told(key: str | bytes | None, value: str | bytes | None) -> tuple[str | None, int | None]:
    """A record as in HISTORY."""
    return json.loads(value)["op"] if value else None, json.loads(key)["id"] if key else None


def replay_last_batch(state: Path) -> None:
    """Makes the checkpoint look as if the process had died between the sink's write and Spark's commit."""
    last = max(int(file.name) for file in (state / "commits").iterdir() if file.name.isdigit())
    (state / "commits" / str(last)).unlink()
    (state / "commits" / f".{last}.crc").unlink(missing_ok=True)


def test_pipeline_into_kafka(kafka: EmbeddedKafka, database: Database, spark: SparkSession, tmp_path: Path) -> None:
    name = topic(kafka)
    route = {"route": {"regex": r"p-.*\.public\.items", "replacement": name}}
    run_history(
        database, pipeline(database, tmp_path, {"kafka": {"bootstrap.servers": kafka.bootstrap}}, steps=[route]), spark
    )
    found = list(consumed(kafka, name))
    assert [told(message.key(), message.value()) for message in found] == HISTORY
    headers = dict(found[0].headers() or [])
    assert headers["__debezium.context.connectorName"] == b"postgresql"
    assert "__debezium.newkey" in dict(found[7].headers() or []), "a tombstone has its delete's headers"


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
    assert [told(*record) for record in before[0]] == HISTORY
    replay_last_batch(tmp_path / "state")
    run(definition, spark)
    after = [found(kafka, name) for name in names]
    if delivery == "exactly-once":
        # The server's own records in the log may bring another heartbeat.
        assert [*after[:2], after[2][: len(before[2])]] == before
        assert len(set(after[2])) == len(after[2])
    else:
        assert all(len(now) > len(then) for now, then in zip(after, before, strict=True)), "the batch came again"


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
    events = [told(*record) for record in found(kafka, name)]
    assert events == [("r", 1), ("r", 2), ("c", 3), ("c", 3), ("c", 4)]


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


def test_a_replica_follows_renames_and_drops_that_the_triggers_tell(
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
        query = (
            frame.writeStream.format("kafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap)
            .option("includeHeaders", "true")
            .option("topic", name)
            .option("checkpointLocation", str(tmp_path / "state"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(200)

    write()
    database.execute(*CHANGES)
    write()
    found = list(consumed(kafka, name))
    assert [told(message.key(), message.value()) for message in found] == HISTORY
    assert "__debezium.newkey" in dict(found[7].headers() or [])
