"""Finds the ends of each database's log: what the capture job has read, and what clean-up has removed."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone

from tailrace.config import Config
from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.failures import FAILURES
from tailrace.connectors.sqlserver.options import DATABASE_SQLSERVER_AGENT_STATUS_QUERY
from tailrace.connectors.sqlserver.position import literal_of
from tailrace.connectors.sqlserver.statements import name

log = logging.getLogger(__name__)

AGENT_DOWN = "No maximum LSN recorded in the database; SQL Server Agent is not running"
_NEWEST = """
SELECT TOP 1 CONVERT(varchar(30), tran_end_time, 126), CONVERT(varchar(30), GETDATE(), 126),
(SELECT DATEPART(TZOFFSET, SYSDATETIMEOFFSET())) FROM {db}.cdc.lsn_time_mapping ORDER BY start_lsn DESC
"""
_ROUNDED, _AHEAD = timedelta(milliseconds=4), timedelta(minutes=10)
_IDLE = (
    "no maximum LSN is recorded in %s: SQL Server Agent does not run, nothing was captured yet, or clean-up has "
    "emptied the change tables of a quiet database. Which of these is unknown, because the Agent's state cannot be "
    "queried (%s); grant VIEW SERVER STATE, or set database.sqlserver.agent.status.query"
)


def log_end(connection: Connection, config: Config) -> LsnPosition:
    """How far the log of each database is captured."""
    return LsnPosition.of({database: maximum(connection, database) for database in databases(connection, config)})


def maximum(connection: Connection, database: str) -> str:
    """The highest LSN that the capture job has reached; it notes one now and then in a quiet database, too."""
    return text_of(connection.value(f"SELECT {name(database)}.sys.fn_cdc_get_max_lsn()"))


def captured_us(connection: Connection, config: Config) -> int | None:
    """Up to when commits are captured: when the newest transaction ended that the capture job has noted.

    Transactions are captured in the order of their commits. A time is the server's local one, rounded to a 300th of a
    second. One that is ahead of the clock was noted before this was set back, and says nothing.
    """
    times = []
    for database in databases(connection, config):
        rows = connection.rows(_NEWEST.format(db=name(database)))
        if not rows:
            return None
        ended, now, minutes = rows[0]
        at, present = (datetime.fromisoformat(str(each)) for each in (ended, now))
        if at - present > _AHEAD:
            return None
        utc = at - timedelta(minutes=int(minutes)) - _ROUNDED
        times.append(round(utc.replace(tzinfo=timezone.utc).timestamp() * 1_000_000))
    return min(times, default=None)


def end_of_transactions(connection: Connection, database: str, start: str, end: str, most: int) -> str:
    """Where so many transactions after `start` end; `end` if there are fewer up to there."""
    query = (
        f"SELECT COUNT(*), MAX(start_lsn) FROM (SELECT TOP ({most}) start_lsn "
        f"FROM {name(database)}.cdc.lsn_time_mapping WHERE start_lsn > {literal_of(start)} AND tran_id <> 0x00 "
        "ORDER BY start_lsn) AS transactions"
    )
    ((count, last),) = connection.rows(query)
    return end if count < most else min(end, text_of(last))


def commit(connection: Connection, database: str, lsn: str) -> str | None:
    """What lsn_time_mapping says of a commit: when it ended, and its transaction; None if it does not have it."""
    rows = connection.rows(
        "SELECT CONVERT(varchar(30), tran_end_time, 126), CONVERT(varchar(30), tran_id, 1) "
        f"FROM {name(database)}.cdc.lsn_time_mapping WHERE start_lsn = {literal_of(lsn)}"
    )
    return " ".join(map(str, rows[0])) if rows else None


def has_log_around(connection: Connection, database: str, lsn: str) -> bool:
    """Whether lsn_time_mapping has commits before this one and behind it. Clean-up takes the oldest ones."""
    mapping, at_lsn = f"{name(database)}.cdc.lsn_time_mapping", literal_of(lsn)
    sides = (f"SELECT TOP 1 1 AS one FROM {mapping} WHERE start_lsn {sign} {at_lsn}" for sign in "<>")
    return all(bool(connection.rows(each)) for each in sides)


def databases(connection: Connection, config: Config) -> list[str]:
    """The names of the databases, as the server writes them."""
    return Catalog(connection, config).databases()


class AgentCheck:
    """Logs once, for a database without a maximum LSN, that SQL Server Agent is down or cannot be queried."""

    def __init__(self, config: Config) -> None:
        self._query = config[DATABASE_SQLSERVER_AGENT_STATUS_QUERY]
        self._logged: set[str] = set()

    def look(self, connection: Connection, database: str, end: str) -> None:
        """Log it, unless the database has an end, or it was logged already."""
        if end:
            self._logged.discard(database)
        elif database not in self._logged:
            self._logged.add(database)
            self._log(connection, database)

    def _log(self, connection: Connection, database: str) -> None:
        try:
            runs = is_agent_running(connection, self._query, database)
        except FAILURES.driver_error as error:
            log.warning(_IDLE, database, FAILURES.line(error))
            return
        if not runs:
            log.error(AGENT_DOWN)


def is_agent_running(connection: Connection, query: str, database: str) -> bool:
    """Whether SQL Server Agent runs. `[#db]` and `#db` in the query stand for the database. Raises pymssql.Error."""
    quoted = name(database)
    return bool(connection.value(query.replace("[#db]", quoted).replace("#db", quoted)))
