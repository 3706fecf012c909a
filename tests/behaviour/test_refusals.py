"""The meaning of an error is derived from its SQLSTATE, as its text is in the server's language."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import pq

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.log.refusals import Interrupted, Refused, stream_error
from tailrace.connectors.postgres.position import LogClaim
from tailrace.connectors.postgres.server.connect import connect, is_transient, refused
from tailrace.errors import SourceError
from tailrace.testing.postgres import EmbeddedPostgres

WHERE = {"database.hostname": "h", "database.user": "u", "database.dbname": "d"}


@pytest.fixture
def closed_standby() -> Iterator[EmbeddedPostgres]:
    """A server in recovery that takes no connections, as one that starts does for a moment."""
    with EmbeddedPostgres() as server:
        server.stop()
        (server.data_dir / "standby.signal").touch()
        server.settings |= {"hot_standby": "off"}
        server._serve()
        deadline = time.monotonic() + 120
        while pq.PGconn.ping(server.dsn().encode()) != pq.Ping.REJECT:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield server


def test_a_server_that_is_not_ready_is_worth_another_try(closed_standby: EmbeddedPostgres) -> None:
    config = resolve({**closed_standby.properties(), "topic.prefix": "t"})
    with pytest.raises(SourceError, match=r"cannot connect: .*not accepting connections") as raised:
        connect(config)
    assert raised.value.remedy == "wait until the server accepts connections"
    assert is_transient(raised.value)
    assert isinstance(raised.value.__cause__, psycopg.errors.CannotConnectNow)


def test_a_slot_that_another_reader_has_is_worth_another_try() -> None:
    """The words are those of a server that speaks German."""
    error = Refused("Replikations-Slot »s« ist aktiv für PID 1")
    error.__cause__ = psycopg.errors.ObjectInUse()
    config = resolve({**WHERE, "topic.prefix": "t"})
    assert isinstance(stream_error(config, LogClaim(0, 1), error), Interrupted)


@pytest.mark.parametrize(
    ("said", "state", "remedy"),
    [
        ("keine Berechtigung für Tabelle t", "42501", "GRANT SELECT ON s.t TO database.user"),
        ("ungültige Byte-Sequenz", "22021", "fix the values that are not valid UTF-8, or exclude the column"),
        ("Division durch Null", "22012", "correct the SELECT of the table"),
        ("server closed the connection unexpectedly", None, "the server's log says"),
    ],
)
def test_remedies_for_rows_that_cannot_be_read(said: str, state: str | None, remedy: str) -> None:
    error = refused("s.t", said, state)
    assert (error.remedy or "").startswith(remedy)
    assert str(error).startswith(f"s.t: the snapshot cannot read the table: {said}")
