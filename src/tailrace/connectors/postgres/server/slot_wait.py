"""Names the transactions that keep a replication slot from being made: open ones, and prepared ones that nobody ended.

The server makes a slot when all transactions have ended that had written before, in any of its databases.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

_OPEN = """
SELECT pid, application_name, coalesce(usename, ''), datname, extract(epoch FROM clock_timestamp() - xact_start)::int8
FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids(%s)) ORDER BY pid
"""
# No server process holds the lock of a prepared transaction, so that pg_blocking_pids does not name it.
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


def _shown(age: int | None) -> str:
    """Seconds, as 2 days, 3:04:05."""
    return "an unknown time" if age is None else str(timedelta(seconds=age))
