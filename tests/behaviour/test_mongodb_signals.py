"""A condition on documents that the server works on for too long is given up by name, and the log goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.conformance.mongodb import MongoSource, MongoSubject
from tests.conformance.stepped import pipeline, row
from tests.conformance.subject import Insert
from tests.servers.mongodb.server import ReplicaSet

# Some 0.1 s of the server's time for each document.
SLOW = "{$expr: {$lt: [{$reduce: {input: {$range: [0, 300000]}, initialValue: 0, in: {$add: ['$$value', 1]}}}, 0]}}"


@pytest.fixture
def source(mongodb: ReplicaSet) -> Iterator[MongoSource]:
    source = MongoSource(mongodb, f"c{uuid4().hex[:8]}")
    yield source
    source.client.drop_database(source.name)
    source.client.close()


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_a_slow_condition_is_given_up(source: MongoSource, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    with pipeline(MongoSubject(), source, mongodb__socket__timeout__ms="2000") as line:
        source.commit(*(Insert(line.table, row(key)) for key in range(2, 100)))
        line.steps()
        began = time.monotonic()
        line.ask("slow", SLOW, kind)
        assert line.steps() == []
        assert time.monotonic() - began < 60, "it takes no end"
        assert "exceeded time limit" in caplog.text
        source.commit(Insert(line.table, row(200)))
        line.ask("good", "{_id: 200}", kind)
        assert {*line.steps()} == {("c", 200), ("r", 200)}
