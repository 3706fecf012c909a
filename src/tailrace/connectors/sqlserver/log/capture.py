"""Waits until the capture process has had the time to read what is committed by now."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.failures import FAILURES
from tailrace.connectors.sqlserver.platform import Platform, platform
from tailrace.connectors.sqlserver.statements import name, text

log = logging.getLogger(__name__)

# A scan that lags is waited for so long.
_LONGEST_S, _STEP_S = 120.0, 0.2
_NOW = "SELECT CONVERT(varchar(30), GETDATE(), 126)"
# A scan that has begun later and has ended; of scans that find nothing one row tells, with the end of the last.
_SCANNED = """
SELECT COUNT(*) FROM {db}.sys.dm_cdc_log_scan_sessions s
WHERE s.session_id <> 0 AND s.end_time > CONVERT(datetime, N'{now}', 126)
AND (s.empty_scan_count > 0 OR s.start_time > CONVERT(datetime, N'{now}', 126))
"""


def wait_for_capture(connection: Connection, databases: Sequence[str]) -> None:
    """Wait for a scan of each database, or where the login may not see scans for the pause of the slowest job."""
    place, now = platform(connection), str(connection.value(_NOW))
    begun = time.monotonic()
    unseen = [each for each in databases if not _is_scanned(connection, each, now, begun)]
    pause = max((_pause(connection, place, each) for each in unseen), default=0.0)
    time.sleep(max(0.0, begun + pause - time.monotonic()))


def _is_scanned(connection: Connection, database: str, now: str, begun: float) -> bool:
    """Wait for a scan; False if scans cannot be seen, as without VIEW DATABASE STATE and at a readable replica."""
    statement = _SCANNED.format(db=name(database), now=now)
    try:
        if not connection.value(f"SELECT COUNT(*) FROM {name(database)}.sys.dm_cdc_log_scan_sessions"):
            return False
        while not connection.value(statement):
            if time.monotonic() - begun > _LONGEST_S:
                log.warning("the capture job of %s has scanned nothing for %.0f s: it may lag", database, _LONGEST_S)
                return True
            time.sleep(_STEP_S)
    except FAILURES.driver_error:
        return False
    return True


def _pause(connection: Connection, place: Platform, database: str) -> float:
    """The pause between two scans, in seconds."""
    query = (
        f"SELECT MAX(pollinginterval) FROM {place.jobs(database)} "
        f"WHERE job_type = N'capture' AND database_id = DB_ID({text(database)})"
    )
    try:
        pause = connection.value(query) if place.has_agent else None
    except FAILURES.driver_error:
        return place.pause_s
    return place.pause_s if pause is None else float(pause)
