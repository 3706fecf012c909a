"""Pipelines into Kafka in Avro: what consumers read, schemas that change meanwhile, and what `check` says before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Message
from pyspark.sql import SparkSession

from tailrace.errors import ConfigError, SinkError
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.preflight import findings
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.avro_records import apicurio, confluent, read
from tests.behaviour.kafka_topics import consumed, topic
from tests.behaviour.streams import Stream, properties
from tests.behaviour.test_sinks import HISTORY, SETUP, pipeline, run, run_history
from tests.conftest import Database
from tests.servers.registry import Registry
from tests.unit.test_docs import blocks


def avro(database: Database, kafka: EmbeddedKafka, folder: Path, properties: dict[str, str], **more: Any) -> Definition:
    """A pipeline into Kafka with these converters."""
    own = {"schema.name.adjustment.mode": "avro", "provide.transaction.metadata": "true", **properties}
    return pipeline(database, folder, {"kafka": {"bootstrap.servers": kafka.bootstrap}}, own, **more)


def documented(registry: Registry) -> dict[str, str]:
    """The converters as docs/formats.md has them, with the address of this registry."""
    (block,) = [block for block in blocks("yaml") if block.marker == "avro"]
    config = yaml.safe_load(block.text)["source"]["config"]
    own = {name: value for name, value in config.items() if "converter" in name}
    return {name: value.replace("http://localhost:8081", registry.confluent) for name, value in own.items()}


def op_and_id(registry: Registry, message: Message) -> tuple[str | None, int | None]:
    """A record as in HISTORY."""
    key, value = read(registry, message.key()), read(registry, message.value())
    return value and value["op"], key and key["id"]


@pytest.mark.long
@pytest.mark.parametrize("converters", [documented, apicurio])
def test_a_pipeline_writes_avro_that_consumers_read(
    kafka: EmbeddedKafka, registry: Registry, database: Database, spark: SparkSession, tmp_path: Path, converters: Any
) -> None:
    more = {"dereference-schema": "true"} if converters is apicurio else {}
    name = topic(kafka, name=f"p-{database.name}.public.items")
    transactions = topic(kafka, name=f"p-{database.name}.transaction")
    run_history(database, avro(database, kafka, tmp_path, converters(registry, **more)), spark)
    found = list(consumed(kafka, name))
    assert [op_and_id(registry, each) for each in found] == HISTORY
    value = read(registry, found[2].value())
    assert value["after"] == {"id": 3, "name": "three"}
    assert value["transaction"]["total_order"] == 1
    assert "__debezium.newkey" in dict(found[7].headers() or [])
    assert {read(registry, each.value())["status"] for each in consumed(kafka, transactions)} == {"BEGIN", "END"}


@pytest.mark.long
def test_columns_that_come_and_go_are_new_versions_until_a_rule_forbids_one(
    kafka: EmbeddedKafka, registry: Registry, database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    name = topic(kafka, name=f"p-{database.name}.public.items")
    definition = avro(database, kafka, tmp_path, confluent(registry))
    database.execute(*SETUP)
    run(definition, spark)
    registry.ask("PUT", f"/config/{name}-value", {"compatibility": "BACKWARD"})
    database.execute(
        "ALTER TABLE items ADD note text", "INSERT INTO items VALUES (3, 'x', 'y')", "ALTER TABLE items DROP name",
        "INSERT INTO items VALUES (4, 'z')",
    )  # fmt: skip
    run(definition, spark)
    assert registry.ask("GET", f"/subjects/{name}-value/versions") == [1, 2, 3]
    rows = [read(registry, each.value())["after"] for each in consumed(kafka, name)]
    assert rows[2:] == [{"id": 3, "name": "x", "note": "y"}, {"id": 4, "note": "z"}]
    database.execute(
        "TRUNCATE items", "ALTER TABLE items ADD part int NOT NULL", "INSERT INTO items VALUES (5, 'z', 1)"
    )
    with pytest.raises(SinkError, match=r"before.part is added without a default") as caught:
        run(definition, spark)
    assert f"subject {name}-value, rule BACKWARD" in str(caught.value)
    registry.ask("PUT", f"/config/{name}-value", {"compatibility": "NONE"})
    run(definition, spark)
    assert read(registry, list(consumed(kafka, name))[-1].value())["after"] == {"id": 5, "note": "z", "part": 1}


def test_check_says_what_the_registry_would_refuse_and_registers_nothing(
    kafka: EmbeddedKafka, registry: Registry, database: Database, tmp_path: Path
) -> None:
    database.execute(*SETUP)
    definition = avro(database, kafka, tmp_path, confluent(registry))
    topic_ = f"p-{database.name}.public.items"

    def said() -> list[tuple[bool | None, str]]:
        return [(each.ok, each.what) for each in findings(definition) if each.name == "schema registry"]

    reached, fine = said()
    assert reached[0] is fine[0] is True
    assert fine[1] == "it takes the schemas of the captured tables, subjects: 2"
    assert f"{topic_}-value" not in registry.ask("GET", "/subjects")
    other = '{"type":"record","name":"Envelope","fields":[{"name":"x","type":"int"}]}'
    registry.ask("POST", f"/subjects/{topic_}-value/versions", {"schema": other})
    registry.ask("PUT", f"/config/{topic_}-value", {"compatibility": "FULL"})
    (_, refused) = said()
    assert refused[0] is False
    assert f"subject {topic_}-value, rule FULL" in refused[1]
    assert "x is dropped" in refused[1]


def test_check_asks_about_what_transforms_make(
    kafka: EmbeddedKafka, registry: Registry, database: Database, tmp_path: Path
) -> None:
    database.execute(*SETUP)
    unwrap = {
        "transforms": "unwrap,route",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": ".*",
        "transforms.route.replacement": f"rows-{database.name}",
    }
    definition = avro(database, kafka, tmp_path, {**confluent(registry), **unwrap})

    def said() -> list[tuple[bool | None, str]]:
        _, *found = (each for each in findings(definition) if each.name == "schema registry")
        return [(each.ok, each.what) for each in found]

    assert said() == [(True, "it takes the schemas of the captured tables, subjects: 2")]
    subject = f"rows-{database.name}-value"
    other = '{"type":"record","name":"Value","fields":[{"name":"x","type":"int"}]}'
    registry.ask("POST", f"/subjects/{subject}/versions", {"schema": other})
    registry.ask("PUT", f"/config/{subject}", {"compatibility": "FULL"})
    ((ok, what),) = said()
    assert ok is False
    assert f"subject {subject}, rule FULL" in what
    assert "x is dropped" in what
    assert registry.ask("GET", f"/subjects/{subject}/versions") == [1]


def test_check_warns_that_it_does_not_ask_about_what_values_decide(
    kafka: EmbeddedKafka, registry: Registry, database: Database, tmp_path: Path
) -> None:
    database.execute(*SETUP)
    outbox = {"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter"}
    events = {
        "value.converter": "io.debezium.converters.CloudEventsConverter",
        "value.converter.data.serializer.type": "avro",
        "value.converter.avro.schema.registry.url": registry.confluent,
    }
    depends = "what the transforms make of public.items depends on the values of rows"
    for what, own in ((depends, outbox), ("the schemas that CloudEvents make are known", events)):
        found = findings(avro(database, kafka, tmp_path, {**confluent(registry), **own}))
        (warning,) = (each for each in found if each.name == "schema registry" and each.ok is None)
        assert warning.what.startswith(f"not asked about: {what}")
        assert warning.remedy


def test_check_warns_of_records_that_are_no_cloud_events(
    kafka: EmbeddedKafka, database: Database, tmp_path: Path
) -> None:
    database.execute(*SETUP)
    unwrap = {
        "value.converter": "io.debezium.converters.CloudEventsConverter",
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }
    by_header = {
        "transforms.unwrap.add.headers": "op,source,transaction",
        "transforms.unwrap.add.headers.prefix": "",
        "value.converter.metadata.source": "header,id:generate,type:generate",
    }
    found = findings(avro(database, kafka, tmp_path, unwrap))
    (warning,) = (each for each in found if each.name == "CloudEvents")
    assert warning.ok is None
    assert warning.what == "the transforms leave no change events of public.items, so the records have no values"
    assert "CloudEvents" not in {each.name for each in findings(avro(database, kafka, tmp_path, unwrap | by_header))}


def test_check_says_that_the_registry_is_away(
    kafka: EmbeddedKafka, registry: Registry, database: Database, tmp_path: Path
) -> None:
    unreachable = {**confluent(registry), "value.converter.schema.registry.url": "http://127.0.0.1:9"}
    found = findings(avro(database, kafka, tmp_path, unreachable))
    (away,) = (each for each in found if each.name == "schema registry" and each.ok is False)
    assert away.what.startswith("http://127.0.0.1:9: the schema registry does not answer")
    assert "check the address" in (away.remedy or "")


@pytest.mark.long
def test_the_shape_kafka_has_bytes(database: Database, registry: Registry, spark: SparkSession, tmp_path: Path) -> None:
    database.execute(*SETUP)
    options = {**properties(database), **confluent(registry), "schema.name.adjustment.mode": "avro"}
    rows = Stream(spark, options, tmp_path / "state").run()
    assert [read(registry, bytes(row.value))["after"]["name"] for row in rows] == ["one", "two"]
    assert [read(registry, bytes(row.key)) for row in rows] == [{"id": 1}, {"id": 2}]


def test_lines_of_json_are_refused(database: Database, registry: Registry, spark: SparkSession, tmp_path: Path) -> None:
    definition = pipeline(database, tmp_path, {"json": {"path": "out"}}, confluent(registry))
    with pytest.raises(ConfigError, match="lines of JSON cannot hold"):
        run(definition, spark)
