"""Detects half-open connections.

A network or a proxy may lose a connection, or stop to forward, without a word to either end. TCP's own probes find a
host that is gone, but not a proxy that takes bytes and forwards none. Nor does silence alone tell: a query may wait for
a lock, or work for hours. So once a server has been silent for a while, another connection asks it what it does: if it
waits for its client, or is gone, then what it had to say was lost on the way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from contextlib import closing
from typing import Any, TypeVar

import psycopg
from psycopg import generators
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Wait

from tailrace.connectors.ahead import Patience
from tailrace.override import override

log = logging.getLogger(__name__)

T = TypeVar("T")

# How long a server may be silent before its state is queried, and how long that may take.
QUIET_SECONDS = 30.0
_PROBE_SECONDS = 10
# How long an answer that the server has sent may take to arrive.
_ARRIVAL_SECONDS = 2.0
_WAITS_FOR_CLIENT = "wait_event IN ('ClientRead', 'ClientWrite')"
_STATE = f"SELECT {_WAITS_FOR_CLIENT} FROM pg_stat_activity WHERE {{}} = %s"
# What it holds, a lock or a slot, would keep its successor waiting.
_END = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {{}} = %s AND {_WAITS_FOR_CLIENT}"


class Limit(Patience):
    """So many seconds of silence, whatever the reason."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begin()

    @override
    def begin(self) -> None:
        self.since = time.monotonic()

    @override
    def look(self) -> None:
        if time.monotonic() - self.since > self.seconds:
            raise lost(self.seconds)


class Watch(Patience):
    """As long as the server works. `given` are the parameters of another connection to it.

    It finds the server's process in pg_stat_activity by a column (pid, application_name) and its value.
    """

    def __init__(self, given: dict[str, Any], column: str, value: object) -> None:
        self.given = {**given, "application_name": "tailrace probe", "connect_timeout": _PROBE_SECONDS}
        self.given.pop("replication", None)
        self.column, self.value = column, value
        self.begin()

    @override
    def begin(self) -> None:
        self.since = self.asked = time.monotonic()
        self.suspected: float | None = None

    @override
    def look(self) -> None:
        now = time.monotonic()
        if self.suspected is not None:
            if now - self.suspected > _ARRIVAL_SECONDS:
                self._probe(_END)
                raise lost(now - self.since)
        elif now - self.asked > QUIET_SECONDS:
            self.asked = now
            if not self._is_at_work():
                self.suspected = time.monotonic()

    def _is_at_work(self) -> bool:
        try:
            row = self._probe(_STATE)
        except psycopg.OperationalError as error:
            # With a code it is the server that refuses, for too many connections, say: so it is there.
            if error.sqlstate and not error.sqlstate.startswith("57P"):
                log.warning("whether the server still works for %s is unknown: %s", self.value, error)
                return True
            raise lost(time.monotonic() - self.since) from error
        return row is not None and row[0] is not True

    def _probe(self, query: str) -> tuple[Any, ...] | None:
        with closing(Connection.connect(autocommit=True, **self.given)) as probe:
            probe.patience = Limit(_PROBE_SECONDS)
            return probe.execute(query.format(self.column).encode(), [self.value]).fetchone()


def lost(seconds: float) -> psycopg.OperationalError:
    """The error for a server that answers no more."""
    return psycopg.OperationalError(f"the connection is lost: the server has not answered for {seconds:.0f} s")


class Connection(psycopg.Connection[Any]):
    """A connection that ends with OperationalError once its patience has."""

    patience: Patience | None = None

    @override
    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        if self.patience is None:
            return super().wait(gen, *args, **kwargs)
        self.patience.begin()
        try:
            return super().wait(_patient(gen, self.patience), *args, **kwargs)
        except psycopg.OperationalError:
            # It waits for an answer for ever, so it serves no more.
            if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                self.close()
            raise


def begin_copy(connection: psycopg.Connection, command: bytes, *, extended: bool = False) -> PGresult:
    """The result of a command that begins a COPY, which psycopg's own `copy` takes apart row by row.

    The extended protocol refuses a second statement; connections for replication do not know it.
    """
    if extended:
        connection.pgconn.send_query_params(command, None)
    else:
        connection.pgconn.send_query(command)
    results: list[PGresult] = connection.wait(generators.execute(connection.pgconn))
    return results[-1]


def end_copy(connection: psycopg.Connection) -> list[PGresult]:
    """What comes behind a COPY's data."""
    return connection.wait(generators.fetch_many(connection.pgconn))


def await_bytes(connection: psycopg.Connection) -> None:
    """Wait for bytes, and take them."""
    connection.wait(_bytes(connection.pgconn))


def _patient(gen: Generator[Any, Any, T], patience: Patience) -> Generator[Any, Any, T]:
    """The same generator, with a look at each moment in which nothing has come."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                patience.begin()
            else:
                patience.look()
            wanted = gen.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


def _bytes(pgconn: PGconn) -> Generator[Any, Any, None]:
    while not (yield Wait.R):
        pass
    pgconn.consume_input()
