"""Finds how far the capture program has read: sequence number and time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.db2.failures import FAILURES
from tailrace.connectors.db2.position import literal_of
from tailrace.connectors.db2.statements import control_schema, name
from tailrace.connectors.sql_tables.tables import Connection

# WITH CS: a snapshot's isolation level would keep locks that the capture program waits for. Below CS a change of the
# register is seen before the rows it stands for.
END = """
SELECT MAX(t.SYNCHPOINT) FROM (SELECT CD_NEW_SYNCHPOINT AS SYNCHPOINT FROM {control}.IBMSNAP_REGISTER
UNION ALL SELECT SYNCHPOINT FROM {control}.IBMSNAP_REGISTER) t WITH CS
"""
_TIME = "SELECT MAX(SYNCHTIME) FROM {control}.IBMSNAP_REGISTER WHERE GLOBAL_RECORD = 'Y' WITH CS"
_TIME_UTC = "SELECT MAX(SYNCHTIME) - CURRENT TIMEZONE FROM {control}.IBMSNAP_REGISTER WHERE GLOBAL_RECORD = 'Y' WITH CS"
_NOW = "SELECT CURRENT TIMESTAMP FROM SYSIBM.SYSDUMMY1"
_INTERVALS = "SELECT COMMIT_INTERVAL, SLEEP_INTERVAL FROM {control}.IBMSNAP_CAPPARMS WITH CS"
# Defaults of the capture program, in seconds, where its parameters cannot be read.
_COMMITS_S, _SLEEPS_S = 30, 5
_LOOK_S = 0.05


def control(config: Config) -> str:
    """The schema of the control tables, quoted."""
    return name(control_schema(config))


def log_end(connection: Connection, config: Config) -> LsnPosition:
    """How far the log is captured: every commit up to there is in the change tables."""
    lsn = connection.value(END.format(control=control(config)))
    return LsnPosition.of({config[DATABASE_DBNAME]: text_of(lsn)})


def server_time(connection: Connection) -> datetime:
    """The server's local time."""
    now: datetime = connection.value(_NOW)
    return now


def captured_time(connection: Connection, config: Config) -> datetime | None:
    """Up to which local time the capture program has read the log; None if it never ran."""
    captured: datetime | None = connection.value(_TIME.format(control=control(config)))
    return captured


def captured_us(connection: Connection, config: Config) -> int | None:
    """Up to when commits are captured: SYNCHTIME of the global record, set when the program has read that far."""
    captured: datetime | None = connection.value(_TIME_UTC.format(control=control(config)))
    return None if captured is None else round(captured.replace(tzinfo=timezone.utc).timestamp() * 1_000_000)


def intervals(connection: Connection, config: Config) -> float:
    """Seconds within which a commit is captured, as the program's parameters say."""
    try:
        rows = connection.rows(_INTERVALS.format(control=control(config)))
    except FAILURES.driver_error:
        rows = []
    commits, sleeps = rows[0] if rows else (None, None)
    return float((commits or _COMMITS_S) + (sleeps or _SLEEPS_S))


def wait_for_capture(connection: Connection, config: Config, limit: float) -> bool:
    """Wait until all that is committed by now is captured, for so many seconds at most; whether it is."""
    now, deadline = server_time(connection), time.monotonic() + limit
    while (captured_time(connection, config) or datetime.min) < now:
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def end_of_span(connection: Connection, config: Config, lsn: str, seconds: int) -> str | None:
    """The last commit within so many seconds after a position, or after the first one behind it; None for no later one.

    That is Debezium's `streaming.query.timespan.seconds`, as it is documented.
    """
    units = f"FROM {control(config)}.IBMSNAP_UOW WHERE IBMSNAP_COMMITSEQ"
    at_lsn = connection.value(f"SELECT IBMSNAP_LOGMARKER {units} = {literal_of(lsn)} WITH CS")
    following = f"{units} > {literal_of(lsn)}"
    for begin in (at_lsn, connection.value(f"SELECT MIN(IBMSNAP_LOGMARKER) {following} WITH CS")):
        if begin is not None:
            until = (begin + timedelta(seconds=seconds)).isoformat(sep=" ", timespec="microseconds")
            inside = f"{following} AND IBMSNAP_LOGMARKER <= TIMESTAMP('{until}')"
            last = connection.value(f"SELECT MAX(IBMSNAP_COMMITSEQ) {inside} WITH CS")
            if last is not None:
                return text_of(last)
    return None
