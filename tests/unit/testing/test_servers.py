"""The embedded servers start, keep their data over a stop and a kill, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Consumer, Producer

from tailrace.errors import TailraceError
from tailrace.testing.jars import resolve_jars
from tailrace.testing.kafka import EmbeddedKafka
from tailrace.testing.postgres import EmbeddedPostgres, PostgresServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize("version", [16, 18])
def test_postgres_survives_its_ends(version: int) -> None:
    with EmbeddedPostgres(version) as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
            assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
            assert connection.info.server_version // 10000 == version
        server.stop()
        assert not server.running
        server.start()
        server.restart("immediate")
        server.kill()
        server.start()
        with server.connect() as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
        folder = server.data_dir
    assert not server.running
    assert not folder.exists()


def test_postgres_keeps_a_data_dir_that_was_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:  # pytest's own folders are closed to the server's account
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
                folder.chmod(0o711)
    with EmbeddedPostgres(data_dir=tmp_path / "data") as server:
        server.create_database("shop")
    with EmbeddedPostgres(data_dir=tmp_path / "data") as server, server.connect("shop") as connection:
        assert connection.info.dbname == "shop"
    assert "database system is shut down" in server.log.read_text(encoding="utf-8")


ORPHAN = """
import os, signal, sys
from tailrace.testing.postgres import EmbeddedPostgres
server = EmbeddedPostgres().start()
print(server.data_dir, server.dsn(), sep="\\n", flush=True)
if "hangs" in sys.argv:
    os.kill(server.pid, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("state", ["works", pytest.param("hangs", marks=pytest.mark.long)])
def test_a_server_does_not_outlive_the_process_that_started_it(state: str) -> None:
    done = subprocess.run([sys.executable, "-c", ORPHAN, state], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    folder, dsn = done.stdout.splitlines()
    deadline = time.monotonic() + 60
    while Path(folder).parent.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(folder).parent.exists()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(dsn, connect_timeout=60)


def test_settings_are_those_of_the_server() -> None:
    with (
        EmbeddedPostgres(settings={"wal_level": "replica", "work_mem": "7MB"}) as server,
        server.connect() as connection,
    ):
        shown = connection.execute("SELECT current_setting('wal_level'), current_setting('work_mem')").fetchone()
    assert shown == ("replica", "7MB")


def test_an_error_shows_the_end_of_the_log() -> None:
    server = EmbeddedPostgres(settings={"wal_level": "nonsense"})
    with pytest.raises(TailraceError, match="invalid value for parameter") as error:
        server.start()
    server.close()
    assert error.value.where == str(server.log)


def test_a_connection_needs_the_password(postgres18: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(postgres18.dsn(password="wrong"), connect_timeout=60)
    assert postgres18.password not in repr(postgres18)


def test_roles_log_in_with_theirs(postgres18: PostgresServer) -> None:
    postgres18.create_role("reader of logs", "it's \\secret")
    with psycopg.connect(postgres18.dsn(user="reader of logs", password="it's \\secret")) as connection:
        role = connection.execute("SELECT rolname, rolreplication, rolsuper FROM pg_roles WHERE rolname = current_user")
        assert role.fetchone() == ("reader of logs", True, False)


def test_dropping_a_database_takes_its_slots_along(postgres18: PostgresServer) -> None:
    postgres18.create_database("doomed")
    with postgres18.connect("doomed") as busy:
        busy.execute("SELECT pg_create_logical_replication_slot('doomed_slot', 'pgoutput')")
        postgres18.drop_database("doomed")
        with postgres18.connect() as admin:
            assert (
                admin.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = 'doomed_slot'").fetchone() is None
            )
    postgres18.drop_database("doomed")


def test_a_version_that_is_not_there() -> None:
    with pytest.raises(TailraceError, match="no embedded PostgreSQL 9"):
        EmbeddedPostgres(9)


def test_kafka_is_closed_without_waiting_for_it() -> None:
    with EmbeddedKafka() as broker:
        pid = broker.pid
        os.kill(pid, signal.SIGSTOP)  # as a broker that does not stop when it is asked to
        began = time.monotonic()
    assert time.monotonic() - began < 30
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not broker.log.parent.exists()


@pytest.mark.long
def test_kafka_keeps_its_topics_over_a_kill() -> None:
    with EmbeddedKafka() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("kept", key=b"key", value=None)
        assert producer.flush(30) == 0
        del producer
        broker.kill()
        broker.start()
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "test", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["kept"])
        message = consumer.poll(60)
        consumer.close()
        folder = broker.log.parent
    assert message is not None
    assert (message.key(), message.value()) == (b"key", None)
    assert not folder.exists()


def test_jars_that_do_not_exist_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # no Maven, no Java
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(TailraceError, match="install Java 17"):
        resolve_jars(["org.slf4j:slf4j-simple:1.7.36"])
