"""A pipeline into Kafka: every event once, also after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import consumed, topic
from tests.conformance.pipelines import Line
from tests.conformance.subject import KEY, NOTE, VALUE, Delete, Insert, Source, Subject


def test_kafka_has_each_event_once(
    subject: Subject, source: Source, folder: Path, spark: SparkSession, kafka: EmbeddedKafka
) -> None:
    source.create("sold")
    source.commit(*(Insert("sold", {KEY: key, VALUE: 0, NOTE: None}) for key in (1, 2)))
    prefix = f"kafka{uuid4().hex[:8]}"
    sink = {"kafka": {"bootstrap.servers": kafka.bootstrap}}
    line = Line(subject, source, folder / "kafka", sink, tables=["sold"], properties={"topic.prefix": prefix})
    name = topic(kafka, name=f"{prefix}.{source.id('sold')}")
    line.once(spark)
    source.commit(Insert("sold", {KEY: 3, VALUE: 0, NOTE: None}))
    source.commit(Delete("sold", 1))
    started = line.starts(spark)
    started.to_end()
    assert started.run.progress().topics == (name,)
    line.once(spark)
    found = [
        (source.key(json.loads(message.key() or b"")["payload"]), _operation(message.value()))
        for message in consumed(kafka, name)
    ]
    assert sorted(found[:2]) == [(1, "r"), (2, "r")]
    assert found[2:] == [(3, "c"), (1, "d"), (1, None)]


def _operation(value: bytes | None) -> str | None:
    """The operation of an event; None for a tombstone."""
    return None if value is None else str(json.loads(value)["payload"]["op"])
