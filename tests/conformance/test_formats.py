"""Pipelines of every connector into Kafka in Avro and as CloudEvents: consumers read each event by the registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from confluent_kafka import Message
from pyspark.sql import SparkSession

from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.avro_records import datum, read
from tests.behaviour.kafka_topics import consumed, topic
from tests.conformance.pipelines import Line
from tests.conformance.subject import KEY, NOTE, VALUE, Delete, Insert, Source, Subject
from tests.servers.registry import Registry

AVRO = "io.confluent.connect.avro.AvroConverter"
JSON_SCHEMA = "io.confluent.connect.json.JsonSchemaConverter"
CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter"


def written(
    line: Line, source: Source, spark: SparkSession, kafka: EmbeddedKafka, prefix: str, table: str
) -> list[Message]:
    """Two rows of a snapshot, then a create and a delete with its tombstone."""
    name = topic(kafka, name=f"{prefix}.{source.id(table)}")
    line.once(spark)
    source.commit(Insert(table, {KEY: 3, VALUE: 0, NOTE: None}))
    source.commit(Delete(table, 1))
    line.once(spark)
    return list(consumed(kafka, name))


def started(
    subject: Subject, source: Source, folder: Path, kafka: EmbeddedKafka, own: dict[str, str]
) -> tuple[Line, str, str]:
    table, prefix = f"sold{uuid4().hex[:6]}", f"kafka{uuid4().hex[:8]}"
    source.create(table)
    source.commit(*(Insert(table, {KEY: key, VALUE: 0, NOTE: None}) for key in (1, 2)))
    sink = {"kafka": {"bootstrap.servers": kafka.bootstrap}}
    properties = {"topic.prefix": prefix, "schema.name.adjustment.mode": "avro", **own}
    return Line(subject, source, folder / table, sink, tables=[table], properties=properties), prefix, table


OPERATIONS = [(1, "r"), (2, "r"), (3, "c"), (1, "d"), (1, None)]


@pytest.mark.long
@pytest.mark.parametrize("converter", [AVRO, JSON_SCHEMA])
def test_keys_and_values_with_schemas_in_a_registry(
    subject: Subject,
    source: Source,
    folder: Path,
    spark: SparkSession,
    kafka: EmbeddedKafka,
    registry: Registry,
    converter: str,
) -> None:
    own = {f"{part}.converter": converter for part in ("key", "value")}
    own |= {f"{part}.converter.schema.registry.url": registry.confluent for part in ("key", "value")}
    line, prefix, table = started(subject, source, folder, kafka, own)

    def value(raw: bytes | None) -> Any:
        if converter == AVRO or raw is None:
            return read(registry, raw)
        assert registry.schema(int.from_bytes(raw[1:5], "big"))
        return json.loads(raw[5:])

    found = []
    for message in written(line, source, spark, kafka, prefix, table):
        event = value(message.value())
        found.append((source.key(value(message.key())), event and event["op"]))
    assert sorted(found[:2]) + found[2:] == OPERATIONS


@pytest.mark.long
def test_cloud_events_whose_data_are_avro(
    subject: Subject, source: Source, folder: Path, spark: SparkSession, kafka: EmbeddedKafka, registry: Registry
) -> None:
    own = {"serializer.type": "avro", "data.serializer.type": "avro", "avro.schema.registry.url": registry.confluent}
    properties = {"value.converter": CLOUD_EVENTS, **{f"value.converter.{name}": each for name, each in own.items()}}
    line, prefix, table = started(subject, source, folder, kafka, properties)
    found = []
    for message in written(line, source, spark, kafka, prefix, table):
        key = source.key(json.loads(message.key() or b"")["payload"])
        event = read(registry, message.value())
        if event is None:
            found.append((key, None))
            continue
        assert event["source"].endswith(f"/{prefix}")
        data = datum(httpx.get(event["dataschema"], timeout=30).json()["schema"], event["data"][5:])
        assert (data["after"] is None) == (event["iodebeziumop"] == "d")
        found.append((key, event["iodebeziumop"]))
    assert sorted(found[:2], key=str) + found[2:] == OPERATIONS
