"""Names the transactions that the server waits for: open ones, and prepared ones that nobody ended.

It makes a replication slot when all transactions have ended that had written before, in any of its databases. To
describe a table of its catalog it waits for one that has locked it, such as an ALTER TABLE.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.connectors.postgres.server.connect import connect, first_line
from tailrace.errors import SourceError

log = logging.getLogger(__name__)

# A warning names what a statement waits for after so many seconds.
WAIT_SECONDS = 3.0  # guessed
_OPEN = """
SELECT pid, application_name, coalesce(usename, ''), datname, extract(epoch FROM clock_timestamp() - xact_start)::int8
FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(%s)) ORDER BY pid
"""
# No server process holds the lock of a prepared transaction: pg_blocking_pids has 0 for it.
_BY_PREPARED = "SELECT 0 = ANY(pg_blocking_pids(%s))"
_PREPARED = """
SELECT gid, owner::text, database::text, extract(epoch FROM clock_timestamp() - prepared)::int8
FROM pg_prepared_xacts WHERE prepared < clock_timestamp() - make_interval(secs => %s) ORDER BY prepared
"""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A transaction, what it is to be named by, and how to end it."""

    what: str
    remedy: str


def open_transactions(connection: psycopg.Connection[Any], process: int) -> list[Blocker]:
    """The open transactions that a server process waits for."""
    rows = connection.cursor(row_factory=tuple_row).execute(_OPEN, [process])
    return [
        Blocker(
            f"the open transaction of server process {pid}, application {application!r} (role {role}, database "
            f"{database}, for {_shown(age)})",
            f"end it, or SELECT pg_terminate_backend({pid})",
        )
        for pid, application, role, database, age in rows
    ]


def prepared_transactions(connection: psycopg.Connection[Any], seconds: float) -> list[Blocker]:
    """The prepared transactions of all databases that are older than so many seconds."""
    rows = connection.cursor(row_factory=tuple_row).execute(_PREPARED, [seconds])
    return [_prepared(sql.Literal(gid).as_string(), *rest) for gid, *rest in rows]


def _prepared(gid: str, owner: str, database: str, age: int) -> Blocker:
    what = f"the prepared transaction {gid} of {owner} in the database {database}, for {_shown(age)}"
    ends = f"ROLLBACK PREPARED {gid}, or COMMIT PREPARED {gid} if its program had decided so"
    return Blocker(what, f"in the database {database}, as {owner} or a superuser: {ends}")


@contextmanager
def after(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Act after so many seconds (0 or less: never), unless the block has ended by then."""
    if seconds <= 0:
        yield
        return
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def tell_wait(config: Config, process: int, doing: str) -> list[Blocker]:
    """The transactions that a server process waits for, which are logged."""
    try:
        with connect(config, application="tailrace control") as connection:
            blockers = open_transactions(connection, process)
            (is_prepared,) = connection.cursor(row_factory=tuple_row).execute(_BY_PREPARED, [process]).fetchone() or (
                False,
            )
            blockers += prepared_transactions(connection, 0.0) if is_prepared else []
    except (SourceError, psycopg.Error) as error:
        log.info("what %s waits for cannot be queried: %s", doing, first_line(error))
        return []
    for blocker in blockers:
        log.warning("%s waits for %s; remedy: %s", doing, blocker.what, blocker.remedy)
    return blockers


def _shown(age: int | None) -> str:
    """Seconds, as 2 days, 3:04:05."""
    return "an unknown time" if age is None else str(timedelta(seconds=age))
