"""The planner's connection: holds the lock that allows one run for each slot, and reconnects when it is lost."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.connectors.postgres.options import SLOT_MAX_RETRIES, SLOT_NAME, SLOT_RETRY_DELAY_MS
from tailrace.connectors.postgres.server.connect import connect, is_transient, planner_application, server_errors
from tailrace.connectors.postgres.server.history import LogEnd, log_end
from tailrace.connectors.postgres.server.slot_wait import WAIT_SECONDS, after, tell_wait
from tailrace.connectors.retry import retrying
from tailrace.errors import SourceError
from tailrace.override import override

log = logging.getLogger(__name__)

T = TypeVar("T")

# By these the server ends the connection of a machine that is gone within half a minute, and with it the lock.
_KEEPALIVES = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
# How long a server may take to notice that a connection was closed, at least.
_GRACE_SECONDS, _LOOK_SECONDS = 5.0, 0.1
_SELF = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
_HOLDER = """
SELECT l.pid, coalesce(a.application_name, ''), coalesce(a.usename, ''), a.backend_start::timestamptz(0)::text
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (l.classid::bigint << 32) | l.objid::bigint = %s
"""


@dataclass(frozen=True, slots=True)
class Holder:
    """The server process that holds the lock of a slot, for the planner of a pipeline that runs."""

    pid: int
    application: str
    role: str
    since: str | None

    @override
    def __str__(self) -> str:
        since = "" if self.since is None else f", connected since {self.since}"
        return f"server process {self.pid} (application {self.application!r}, role {self.role}{since})"


class Control:
    """A connection for queries, one at a time. `is_new` is true until somebody sets it to false: see `ask`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._connection: psycopg.Connection | None = None
        self._process: tuple[Any, ...] | None = None
        self._application: str | None = None
        self._has_timelines = True
        self.is_new = True

    def hold(self, application: str) -> None:
        """Keep other runs from planning with the slot, from here on. Raises SourceError if one does already.

        The lock ends with the connection, and is taken again with each new one.
        """
        if self._application is not None:
            return
        self._application = application
        try:
            self.ask(self._lock)
        except BaseException:
            self._application = None
            raise

    def ask(self, query: Callable[[psycopg.Connection], T]) -> T:
        """Run a query. Raises SourceError.

        A server that went away is waited for; one that was never reached is more likely a wrong address. Then `is_new`
        is true again, as it may be another server.
        """
        if self._connection is None:
            self._connect()

        def attempt() -> T:
            if self._connection is None or self._connection.closed:
                self._connect()
            assert self._connection is not None
            process = self._connection.info.backend_pid
            with after(WAIT_SECONDS, lambda: tell_wait(self._config, process, "reading the server's catalog")):
                return query(self._connection)

        with server_errors("the server's catalog cannot be read"):
            return retrying(self._config, attempt, is_transient)

    def log_end(self, *, with_timeline: bool = True) -> LogEnd:
        """Where the log ends, with the timeline if the server has a function that tells it (Aurora keeps no files)."""
        name, with_timeline = self._config[SLOT_NAME], with_timeline and self._has_timelines
        try:
            return self.ask(lambda connection: log_end(connection, name, with_timeline=with_timeline))
        except SourceError as error:
            if not isinstance(error.__cause__, psycopg.errors.FeatureNotSupported):
                raise
            self._has_timelines = False
            return self.log_end()

    def close(self) -> None:
        """Close the connection; the lock is free then."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> None:
        self.is_new = True
        connection = connect(self._config, application="tailrace planner")
        try:
            self._end_predecessor(connection)
            self._lock(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _end_predecessor(self, connection: psycopg.Connection) -> None:
        """End the server process of a connection that was lost: the server may not know, and would keep its lock."""
        if self._process is not None:
            connection.execute(_END, self._process)
        self._process = connection.execute(_SELF).fetchone()

    def _lock(self, connection: psycopg.Connection) -> None:
        if self._application is not None:
            take(connection, self._config, planner_application(self._application))


def holder(connection: psycopg.Connection[Any], slot: str) -> Holder | None:
    """Who holds the lock of a slot, None if nobody does."""
    row = connection.cursor(row_factory=tuple_row).execute(_HOLDER, [_key(slot)]).fetchone()
    return None if row is None else Holder(*row)


def take(connection: psycopg.Connection, config: Config, application: str) -> None:
    """Take the lock of the slot, waiting for it as slot.max.retries and slot.retry.delay.ms say. Raises SourceError."""
    connection.execute("SELECT set_config('application_name', %s, false)", [application])
    for name, seconds in _KEEPALIVES.items():
        connection.execute(f"SET {name} = {seconds}".encode())
    slot = config[SLOT_NAME]
    wait = config[SLOT_MAX_RETRIES] * config[SLOT_RETRY_DELAY_MS] / 1000
    deadline = time.monotonic() + max(wait, _GRACE_SECONDS)
    has_logged = False
    while connection.execute("SELECT pg_try_advisory_lock(%s)", [_key(slot)]).fetchone() != (True,):
        owner = holder(connection, slot)
        if owner is not None and time.monotonic() >= deadline:
            raise _in_use(slot, owner, application)
        if not has_logged:
            log.warning("slot %s is in use by another run: %s; waiting for it to end", slot, owner)
            has_logged = True
        time.sleep(_LOOK_SECONDS)


def _in_use(slot: str, owner: Holder, application: str) -> SourceError:
    if owner.application == application:
        what = f"another run of this checkpoint is going on: {owner}"
        remedy = "stop that run; each checkpoint takes one (a copy of a checkpoint counts as the same one)"
    else:
        what = f"a run of another checkpoint uses the slot: {owner}"
        remedy = "give this pipeline a slot.name of its own, or stop that run"
    return SourceError(what, where=f"slot {slot}", remedy=remedy)


def _key(slot: str) -> int:
    """The number of the advisory lock of a slot; such locks are those of one database, as logical slots are."""
    return int.from_bytes(hashlib.blake2b(f"tailrace slot {slot}".encode(), digest_size=8).digest(), "big", signed=True)
