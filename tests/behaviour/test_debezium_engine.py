"""From a real Debezium and back under traffic, on all databases: no change is missing, few come twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.behaviour.streams import eventually
from tests.conformance.db2 import Db2Subject
from tests.conformance.debezium import Debezium, connect, program
from tests.conformance.mongodb import MongoSubject
from tests.conformance.pipelines import READY, Line
from tests.conformance.postgres import PostgresSource, PostgresSubject
from tests.conformance.sqlserver import SqlServerSubject
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Source, Subject

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]
TABLE = "orders"
SUBJECTS: list[Subject] = [PostgresSubject(), MongoSubject(), SqlServerSubject()]
if find_spec("ibm_db"):
    SUBJECTS.append(Db2Subject())


@pytest.fixture(params=SUBJECTS, ids=lambda subject: subject.connector)
def subject(request: pytest.FixtureRequest) -> Subject:
    """A database that Debezium has a connector for."""
    program()  # skips without the engine
    subject: Subject = request.param
    subject.start(request)
    return subject


@pytest.fixture
def source(subject: Subject) -> Iterator[Source]:
    with subject.source() as source:
        source.create(TABLE)
        yield source


class Writer:
    """Commits transactions of two rows with ascending keys, for the length of a block."""

    def __init__(self, source: Source) -> None:
        self.source, self.keys = source, list[int]()

    @contextmanager
    def writing(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._write, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _write(self, over: threading.Event) -> None:
        while not over.wait(0.02):
            self.write()

    def write(self) -> None:
        """One transaction."""
        first = len(self.keys) + 1
        self.source.commit(*(Insert(TABLE, {KEY: key, VALUE: 0, NOTE: "x"}) for key in (first, first + 1)))
        self.keys += [first, first + 1]


def keys_of(source: Source, debezium: Debezium, *ops: str) -> list[int]:
    """The keys of the rows in its events, or in those of some operations."""
    values = [event["value"] for event in debezium.events() if TABLE in event["topic"].lower()]
    payloads = [value.get("payload", value) for value in values if value]
    wanted = [each for each in payloads if each.get("after") and (not ops or each["op"] in ops)]
    return [(source.image(each["after"]) or {})[KEY] for each in wanted]


def continuing(subject: Subject, source: Source, folder: Path, debezium: Debezium) -> Line:
    """The pipeline of docs/from-debezium.md."""
    same = {name: debezium.config[name] for name in ("slot.name", "publication.name") if name in debezium.config}
    own: dict[str, Any] = {"snapshot.mode": "no_data", "offset.takeover": connect(debezium.offsets()), **same}  # type: ignore[dict-item]
    if subject.connector == "postgres":
        own |= {"slot.takeover": "true", "publication.autocreate.mode": "disabled"}
    return Line(subject, source, folder, tables=[TABLE], properties=own)


def is_left_behind(source: Source, debezium: Debezium, sent: int | None) -> bool:
    """Whether PostgreSQL's slot has left Debezium's own offset behind; checkpoints let slots move."""
    if not isinstance(source, PostgresSource):
        return True
    query = "SELECT (restart_lsn - '0/0'::pg_lsn)::int8 > %s FROM pg_replication_slots WHERE slot_name = %s"
    with source.server.connect(source.name) as connection:
        connection.execute("CHECKPOINT")
        return connection.execute(query, [sent, debezium.config["slot.name"]]).fetchone() == (True,)


def test_from_debezium_and_back_under_traffic(
    subject: Subject, source: Source, spark: SparkSession, tmp_path: Path
) -> None:
    writer, debezium = Writer(source), Debezium(subject, source, tmp_path / "debezium", [TABLE])
    seen: dict[str, list[int]] = {}
    writer.write()
    with writer.writing():
        with debezium.running():
            eventually(lambda: len(keys_of(source, debezium, "c")) > 60)
        seen["debezium"], before = keys_of(source, debezium), debezium.offsets()
        line = continuing(subject, source, tmp_path / "line", debezium)
        eventually(lambda: "is in use" not in line.command("check", code=(*READY, 1)))
        line.command("check", code=READY)
        with line.running(spark) as run:
            sent = before[0]["offset"].get("lsn")
            line.until(lambda: len(line.keys(TABLE)) > 200 and is_left_behind(source, debezium, sent), run)
        seen["tailrace"] = [key for _, key in line.keys(TABLE)]
        if isinstance(source, PostgresSource):
            assert_refused(source, debezium)
        debezium.store(json.loads(line.command("offset").splitlines()[-1])["offsets"])
        with debezium.running():
            eventually(lambda: len(keys_of(source, debezium)) > 60)
        seen["debezium again"] = keys_of(source, debezium)
    with debezium.running():
        writer.write()
        eventually(lambda: writer.keys[-1] in keys_of(source, debezium))
    seen["at last"] = keys_of(source, debezium)
    assert len(seen["tailrace"]) == len({*seen["tailrace"]})
    missing = set(writer.keys).difference(*seen.values())
    assert not missing, {program_: (min(keys), max(keys), len(keys)) for program_, keys in seen.items()}
    parts = [set(keys) for keys in seen.values()]
    twice = [len(one & other) for one, other in pairwise(parts)]
    assert max(twice) < 60, twice


def assert_refused(source: PostgresSource, debezium: Debezium) -> None:
    """By its own offset Debezium does not start any more, as the slot has left that behind."""
    query = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    with source.server.connect(source.name) as connection:
        eventually(lambda: connection.execute(query, [debezium.config["slot.name"]]).fetchone() == (False,))
    said = "no longer available on the server"
    with pytest.raises(AssertionError, match=said), debezium.running():
        pass


def test_a_snapshot_that_debezium_has_not_finished_is_refused(subject: Subject, source: Source, tmp_path: Path) -> None:
    for first in range(0, 6000, 500):
        source.commit(*(Insert(TABLE, {KEY: key, VALUE: 0, NOTE: "x"}) for key in range(first, first + 500)))
    slow = {
        "max__batch__size": "8",
        "max__queue__size": "16",
        "poll__interval__ms": "50",
        "snapshot__fetch__size": "10",
    }
    debezium = Debezium(subject, source, tmp_path / "debezium", [TABLE], **slow)
    with debezium.running(until_streaming=False):
        eventually(lambda: len(keys_of(source, debezium)) > 50)
    assert len(keys_of(source, debezium)) < 6000
    line = continuing(subject, source, tmp_path / "line", debezium)
    assert "snapshot is not finished" in line.command("check", code=1)
