"""Snapshots that a signal asks of a running pipeline, of each kind by each channel. All tests share the pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

import tailrace
from tailrace.pipeline.runner import Run
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import topic
from tests.conformance.pipelines import Line
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Row, Source, Subject

CHANNELS = ("source", "file", "kafka", "in-process")
KINDS = ("incremental", "blocking")
ROWS = 10


def row(key: int) -> Row:
    return {KEY: key, VALUE: 0, NOTE: None}


def table_of(channel: str, kind: str) -> str:
    """Each test has a table of its own."""
    return f"{kind}_{channel.replace('-', '')}"


class Asked:
    """A pipeline that runs and the ways to send it a signal."""

    def __init__(self, line: Line, run: Run, kafka: EmbeddedKafka, topic: str) -> None:
        self.line, self.run, self.kafka, self.topic = line, run, kafka, topic

    def send(self, channel: str, kind: str, data: dict[str, object]) -> int:
        """Send a signal by a channel; how many notifications there were before."""
        id_, before = uuid4().hex, len(self.notices())
        text = json.dumps({"id": id_, "type": kind, "data": data})
        if channel == "source":
            self.line.source.signal(id_, kind, json.dumps(data))
        elif channel == "file":
            with (self.line.folder / "signals.txt").open("a", encoding="utf-8") as file:
                file.write(text + "\n")
        elif channel == "kafka":
            producer = Producer({"bootstrap.servers": self.kafka.bootstrap})
            producer.produce(self.topic, text, "shop")
            assert producer.flush(30) == 0
        else:
            tailrace.signal(self.line.file, kind, data, id=id_)
        return before

    def notices(self, since: int = 0) -> list[str]:
        """The types of the notifications about snapshots, from one on."""
        file = self.line.folder / "notices.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [json.loads(line)["type"] for line in lines][since:]


@pytest.fixture(scope="module")
def asked(subject: Subject, source: Source, folder: Path, spark: SparkSession, kafka: EmbeddedKafka) -> Iterator[Asked]:
    """A pipeline that has begun without a snapshot, over tables that have rows."""
    tables = [table_of(channel, kind) for channel in CHANNELS for kind in KINDS]
    source.create(*tables, "stopped")
    source.commit(*(Insert(table, row(key)) for table in (*tables, "stopped") for key in range(1, ROWS + 1)))
    name = topic(kafka)
    properties = {
        "snapshot.mode": "no_data",
        "incremental.snapshot.chunk.size": "4",
        "signal.data.collection": str(source.id(source.signals)),
        "signal.enabled.channels": "source,kafka,file",
        "signal.file": str(folder / "signals" / "signals.txt"),
        "signal.kafka.topic": name,
        "signal.kafka.bootstrap.servers": kafka.bootstrap,
        "signal.kafka.groupId": name,
        "topic.prefix": "shop",
        "notification.enabled.channels": "file",
        "notification.file": str(folder / "signals" / "notices.jsonl"),
    }
    line = Line(subject, source, folder / "signals", properties=properties)
    with line.running(spark) as run:
        yield Asked(line, run, kafka, name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channel", CHANNELS)
def test_a_signal_has_a_table_read(source: Source, asked: Asked, channel: str, kind: str) -> None:
    """Each row once, beside a change that is made meanwhile, with the notifications of the snapshot."""
    table = table_of(channel, kind)
    assert asked.line.events(table) == []
    before = asked.send(channel, "execute-snapshot", {"data-collections": [str(source.id(table))], "type": kind})
    source.commit(Insert(table, row(50)))
    asked.line.until(lambda: "COMPLETED" in asked.notices(before), asked.run)
    # The order of the two is not certain, and the snapshot may have read the new row as well.
    asked.line.until(lambda: len(asked.line.events(table)) > ROWS, asked.run)
    asked.line.until(lambda: ("c", 50) in asked.line.keys(table), asked.run)
    keys = asked.line.keys(table)
    assert [key for op, key in keys if op == "r" and key != 50] == list(range(1, ROWS + 1))
    assert [key for op, key in keys if op == "c"] == [50]
    assert asked.notices(before)[0] == "STARTED"


def test_a_signal_of_an_unknown_table_does_no_harm(source: Source, asked: Asked) -> None:
    before = asked.send("in-process", "execute-snapshot", {"data-collections": [str(source.id("nowhere"))]})
    asked.line.until(lambda: "COMPLETED" in asked.notices(before), asked.run)
    source.commit(Insert("stopped", row(60)))
    asked.line.until(lambda: ("c", 60) in asked.line.keys("stopped"), asked.run)


def test_a_paused_snapshot_resumes_and_a_stopped_one_ends(source: Source, asked: Asked) -> None:
    name = str(source.id("stopped"))
    asked.send("in-process", "pause-snapshot", {"type": "incremental"})
    before = asked.send("in-process", "execute-snapshot", {"data-collections": [name]})
    asked.send("in-process", "resume-snapshot", {"type": "incremental"})
    asked.line.until(lambda: "COMPLETED" in asked.notices(before), asked.run)
    asked.send("in-process", "stop-snapshot", {"type": "incremental", "data-collections": [name]})
    source.commit(Insert("stopped", row(61)))
    asked.line.until(lambda: ("c", 61) in asked.line.keys("stopped"), asked.run)
