"""Each fault of a running pipeline shows in the console, in metrics, in Connect's REST and in `tailrace status`, soon.

`pytest -m "long or not long" -s tests/behaviour/test_faults.py | grep shown:` prints after how many seconds. What
captures changes on a server of SQL Server or Db2 stops in test_capture_stops.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest
import yaml
from pyspark.sql import SparkSession

from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.postgres.options import SLOT_NAME
from tailrace.pipeline.definition import load
from tailrace.pipeline.restarts import ClockWatch
from tailrace.testing.kafka import EmbeddedKafka
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.operated import PATIENCE, Operated, operated
from tests.behaviour.test_operate import ALL, dropped, execute
from tests.behaviour.test_restarts import planner
from tests.behaviour.told import Showing, printed, told


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of this module's own, whose roles change."""
    with EmbeddedPostgres(18) as server:
        yield server


# The role of the pipeline sees this clock in place of the server's: a sequence says by how much it is ahead.
CLOCK = (
    "CREATE SCHEMA fake",
    "CREATE SEQUENCE fake.ahead MINVALUE 0 START 0",
    *(
        f"CREATE FUNCTION fake.{clock}_timestamp() RETURNS timestamptz LANGUAGE sql AS "
        f"$$ SELECT pg_catalog.{clock}_timestamp() + make_interval(secs => last_value) FROM fake.ahead $$"
        for clock in ("clock", "statement")
    ),
    "GRANT USAGE ON SCHEMA fake TO {role}",
    "GRANT SELECT ON SEQUENCE fake.ahead TO {role}",
    "ALTER ROLE {role} SET search_path = fake, pg_catalog, public",
)


@pytest.fixture
def pipeline(server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Path]:
    """A replica of two tables, read by a role of its own."""
    name = f"shop_{time.time_ns()}"
    server.create_database(name)
    server.create_role(name, "secret")
    with server.connect(name) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        connection.execute("CREATE TABLE other (id int PRIMARY KEY)")
        connection.execute("INSERT INTO orders VALUES (1, 'a')")
        connection.execute("CREATE PUBLICATION pub FOR ALL TABLES")
        connection.execute(f"GRANT SELECT ON orders, other TO {name}".encode())
        for statement in CLOCK:
            connection.execute(statement.replace("{role}", name).encode())
    own = {"topic.prefix": "shop", "slot.name": name, "publication.name": "pub", "database.user": name}
    own |= {"database.password": "secret", "publication.autocreate.mode": "disabled"}
    content = {
        "name": "shop",
        "source": {"config": {**server.properties(name), **own}},
        "sink": {"replica": {"path": "lake", "on_incomplete": "tell"}},
        "checkpoint": "state",
        "trigger": "200ms",
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    yield file
    server.drop_database(name)


@dataclass(frozen=True)
class Shop:
    """A running pipeline, and its server."""

    server: EmbeddedPostgres
    pipeline: Path
    asked: Operated
    spark: SparkSession

    def execute(self, *statements: str) -> None:
        """Run statements in its database."""
        for statement in statements:
            execute(self.server, self.pipeline, statement)

    @property
    def slot(self) -> str:
        """The name of its slot, and of its role."""
        return str(load(self.pipeline).config()[SLOT_NAME])


Cause = Callable[[Shop], AbstractContextManager[None]]
"""Causes a fault; what stays of it beyond the database of the pipeline is repaired at the exit."""


def by(*statements: str) -> Cause:
    """A fault that statements cause; `{role}` stands for the role of the pipeline."""

    @contextmanager
    def cause(shop: Shop) -> Iterator[None]:
        shop.execute(*(each.replace("{role}", shop.slot) for each in statements))
        yield

    return cause


@contextmanager
def stopped(shop: Shop) -> Iterator[None]:
    shop.server.stop("immediate")
    try:
        yield
    finally:
        shop.server.start()


@contextmanager
def hanging(shop: Shop) -> Iterator[None]:
    postmaster = int((shop.server.data_dir / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    os.kill(postmaster, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(postmaster, signal.SIGCONT)


@contextmanager
def slot_dropped(shop: Shop) -> Iterator[None]:
    shop.asked.eventually(lambda: dropped(shop.server, shop.slot), 30)
    yield


@contextmanager
def slot_invalidated(shop: Shop) -> Iterator[None]:
    """A transaction that stays open holds the slot back, until the server needs the room."""
    shop.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()")
    database = load(shop.pipeline).config()[DATABASE_DBNAME]
    with shop.server.connect(database) as holding, shop.server.connect(database) as other:
        holding.autocommit = False
        holding.execute("INSERT INTO orders VALUES (9, 'open')")
        for _ in range(4):
            other.execute("SELECT pg_logical_emit_message(false, 'fill', 'x'), pg_switch_wal()")
        other.execute("CHECKPOINT")
        query = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s"
        assert other.execute(query, [shop.slot]).fetchone() == ("lost",)
        try:
            yield
        finally:
            holding.rollback()
            other.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            other.execute("SELECT pg_reload_conf()")


@contextmanager
def folder_deleted(shop: Shop) -> Iterator[None]:
    shutil.rmtree(shop.pipeline.parent / "lake" / "public.orders")
    shop.execute(CHANGE)
    yield


@contextmanager
def worker_killed(shop: Shop) -> Iterator[None]:
    """The process that plans micro-batches."""
    os.kill(planner(shop.spark), signal.SIGKILL)
    yield


@contextmanager
def clock_set_back(shop: Shop) -> Iterator[None]:
    jump = [0.0]
    shop.asked.run._clock = ClockWatch(wall=lambda: time.time() + jump[0])
    jump[0] = -3600.0
    yield


class Ended(TypedDict):
    """How a run that ended is shown: the exit code of `status`, and the state of a connector."""

    code: int
    connect: str


CHANGE = "INSERT INTO orders VALUES (2, 'b')"
DROPPED = ("DROP PUBLICATION pub", CHANGE)
LESS = ("ALTER PUBLICATION pub SET (publish = 'insert')", CHANGE)
ALTERED = ("ALTER TABLE orders ALTER note TYPE int USING 1", "INSERT INTO orders VALUES (2, 2)")
WAITS = "nothing: the pipeline waits for it, and goes on by itself"
RESTART = ("tailrace_warnings", {"about": "restart"}, 1.0)
PASSED = ("restarting", "starting", "streaming")
AWAY: tuple[str, dict[str, str], float] = ("tailrace_source_up", {}, 0.0)
LOST = Ended(code=1, connect="FAILED")

FAULTS: dict[str, tuple[Cause, Showing]] = {
    "database stopped": (stopped, Showing(("source away",), "cannot connect", WAITS, series=AWAY)),
    "database hangs": (hanging, Showing(("source away",), "the database has not answered", "", series=AWAY)),
    "password changed": (
        by("ALTER ROLE {role} PASSWORD 'another'"),
        Showing(("stuck",), "password authentication failed", "database.password", **LOST),
    ),
    "slot dropped": (
        slot_dropped,
        Showing(("failed", "stuck"), "the slot does not exist", "snapshot.mode=when_needed", **LOST),
    ),
    "slot invalidated": (
        slot_invalidated,
        Showing(("failed", "stuck"), "the server has invalidated the slot", "snapshot.mode=when_needed", **LOST),
    ),
    "publication dropped": (
        by(*DROPPED),
        Showing(("failed", "stuck"), "does not exist", "create the publication", **LOST),
    ),
    "publication publishes less": (
        by(*LESS),
        Showing(("incomplete",), "pub does not send updates, deletes", "`tailrace check` shows where", code=1),
    ),
    "table dropped": (
        by("DROP TABLE other", CHANGE),
        Showing(("streaming",), "gone", "public.other", series=("tailrace_tables", {"state": "gone"}, 1.0)),
    ),
    "type changed": (
        by(*ALTERED),
        Showing(
            ("incomplete",),
            "public.orders is set aside",
            "fix the cause, then run `tailrace retry`",
            series=("tailrace_tables", {"state": "aside"}, 1.0),
            code=1,
        ),
    ),
    "folder of a table deleted": (
        folder_deleted,
        Showing(("incomplete",), "the replica's table was deleted", "execute-snapshot", code=1),
    ),
    "SELECT revoked": (
        by("REVOKE SELECT ON orders FROM {role}"),
        Showing(
            ("streaming",),
            "the right to read public.orders is missing",
            'GRANT SELECT ON "public"."orders" TO',
            series=("tailrace_warnings", {"about": "select"}, 1.0),
        ),
    ),
    "worker killed": (
        worker_killed,
        Showing(
            ("restarting", "starting", "streaming"), "the query was started again once in this run", "", series=RESTART
        ),
    ),
    "server's clock ahead": (
        by("SELECT setval('fake.ahead', 3600)", CHANGE),
        Showing(
            ("streaming",),
            "s ahead of the clock of this machine",
            "have both clocks follow NTP",
            series=("tailrace_warnings", {"about": "clock"}, 1.0),
        ),
    ),
    "clock set back": (
        clock_set_back,
        Showing(
            PASSED,
            "the clock of this machine was set back by 3,600 s",
            "let the clock be slewed, not stepped",
            series=RESTART,
        ),
    ),
}


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=() if name == "publication dropped" else pytest.mark.long) for name in FAULTS]
)
def test_a_fault_is_told_alike_in_ten_seconds(
    server: EmbeddedPostgres, pipeline: Path, spark: SparkSession, fault: str
) -> None:
    cause, showing = FAULTS[fault]
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 1, PATIENCE)
        asked.eventually(lambda: asked.metric("tailrace_tables", state="complete") == 2, PATIENCE)
        with cause(Shop(server, pipeline, asked, spark)):
            told(asked, pipeline, showing, fault)
    assert "secret" not in str(printed(pipeline))


@pytest.mark.long
def test_kafka_that_is_killed(server: EmbeddedPostgres, pipeline: Path, spark: SparkSession) -> None:
    broker = EmbeddedKafka()
    broker.start()
    content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["sink"] = {"kafka": {"bootstrap.servers": broker.bootstrap}}
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    try:
        with operated(load(pipeline), spark) as asked:
            asked.until("streaming", ALL)
            asked.eventually(lambda: asked.metric("tailrace_events_total") == 1, PATIENCE)
            broker.kill()
            away, words = ("tailrace_sink_up", {}, 0.0), f"Kafka at {broker.bootstrap} does not answer"  # type: ignore[var-annotated]
            told(asked, pipeline, Showing(("sink away",), words, "bootstrap.servers", series=away), "Kafka killed")
            broker.start()
            asked.until("streaming", ALL)
    finally:
        broker.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.long
def test_a_disk_that_is_full(server: EmbeddedPostgres, pipeline: Path, spark: SparkSession, small_disk: Path) -> None:
    content: dict[str, Any] = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["checkpoint"] = str(small_disk / "state")
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 1, PATIENCE)
        filled = subprocess.run(["dd", "if=/dev/zero", f"of={small_disk / 'filler'}"], capture_output=True, check=False)
        assert b"No space left" in filled.stderr
        execute(server, pipeline, "INSERT INTO orders VALUES (2, 'b')")
        told(asked, pipeline, Showing(("failed",), "a disk is full", "free space", **LOST), "disk full")
