"""A checkpoint whose file `metadata` is damaged: the remedy names the id under which the sink knows the pipeline."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.errors import OffsetError
from tailrace.operate.status import look
from tailrace.pipeline.preflight import findings
from tailrace.pipeline.runner import Pipeline
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import consumed
from tests.behaviour.test_rewound import FIRST, WRITTEN, Case
from tests.conftest import Database


@pytest.fixture(params=["replica", "kafka"])
def case(request: pytest.FixtureRequest, database: Database, spark: SparkSession, tmp_path: Path) -> Case:
    """A pipeline that has written a micro-batch which its checkpoint does not know as committed."""
    sink: dict[str, Any] = {"replica": {"path": "lake"}}
    if request.param == "kafka":
        broker: EmbeddedKafka = request.getfixturevalue("kafka")
        sink = {"kafka": {"bootstrap.servers": broker.bootstrap, "state.topic": f"state-{database.name}"}}
    case = Case(database, spark, tmp_path, sink)
    case.properties["topic.prefix"] = database.name
    database.execute(*FIRST)
    case.run()
    database.execute(*WRITTEN)
    case.run()
    case.delete("commits")
    return case


def follow(error: OffsetError) -> None:
    """Run the command of a remedy."""
    command = "printf " + (error.remedy or "").partition("printf ")[2]
    subprocess.run(["bash", "-c", command], check=True)


@pytest.mark.parametrize("damage", ["is empty", pytest.param("is missing", marks=pytest.mark.long)])
def test_the_remedy_writes_the_same_id_and_nothing_is_doubled(
    case: Case, damage: str, request: pytest.FixtureRequest
) -> None:
    file, definition = case.folder / "state" / "metadata", case.definition()
    before = json.loads(file.read_text(encoding="utf-8"))["id"]
    if damage == "is empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    for ask in (findings, look):
        with pytest.raises(OffsetError) as told:
            ask(definition)
        assert damage in told.value.what
        assert f'{{"id":"{before}"}}' in (told.value.remedy or "")
        assert "delete" not in (told.value.remedy or "")
    with pytest.raises(OffsetError, match=before):
        Pipeline(definition, case.spark).start()
    follow(told.value)
    case.run()
    if definition.sink.replica is not None:
        case.check()
        return
    broker = request.getfixturevalue("kafka")
    bag = [message.value() for message in consumed(broker, f"{case.database.name}.public.bag")]
    assert len(bag) == 20 + 3 + 2 * 2, "rows, inserts, and each delete with its tombstone"
