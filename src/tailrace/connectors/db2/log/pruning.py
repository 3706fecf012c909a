"""Detects changes that were removed before they were read: by their age, after Apply, by hand, or by a cold start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.change_tables import gap
from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.db2.failures import FAILURES
from tailrace.connectors.db2.log.end import control, log_end, server_time
from tailrace.connectors.db2.position import literal_of
from tailrace.connectors.lost_log_remedies import NEW_SNAPSHOT
from tailrace.connectors.shared_log import LogGap
from tailrace.connectors.sql_tables.tables import Connection
from tailrace.errors import OffsetError

_UNIT = "SELECT IBMSNAP_COMMITSEQ, IBMSNAP_UOWID, IBMSNAP_LOGMARKER FROM {control}.IBMSNAP_UOW WHERE IBMSNAP_COMMITSEQ"
_OLDEST = "SELECT MIN(IBMSNAP_COMMITSEQ) FROM {table} WITH CS"
_RETENTION = "SELECT RETENTION_LIMIT FROM {control}.IBMSNAP_CAPPARMS WITH CS"
# Up to where all subscription sets of Apply have come: the capture program prunes what each of them has read.
_APPLIED = "SELECT MIN(SYNCHPOINT) FROM {control}.IBMSNAP_PRUNE_SET WITH CS"
_RETENTION_MINUTES = 10080  # the capture program's default, in minutes
LONGER = "raise RETENTION_LIMIT in IBMSNAP_CAPPARMS"


@dataclass(frozen=True)
class Unit:
    """A unit of work that was read: its commit, its id, and the server's local time then, as ISO text."""

    lsn: str
    id: str
    time: str

    def to_json(self) -> list[str]:
        """For the offset."""
        return [self.lsn, self.id, self.time]

    @staticmethod
    def of(row: Sequence[Any]) -> Unit:
        """From a row of IBMSNAP_UOW."""
        lsn, identity, time = row
        printed = time.isoformat() if isinstance(time, datetime) else str(time)
        return Unit(text_of(lsn), identity.hex() if isinstance(identity, bytes) else str(identity), printed)


def newest_unit(connection: Connection, config: Config, lsn: str) -> Unit | None:
    """The last unit of work up to a position, None if none is left."""
    query = f"{_UNIT.format(control=control(config))} <= {literal_of(lsn)}"
    rows = connection.rows(f"{query} ORDER BY IBMSNAP_COMMITSEQ DESC FETCH FIRST 1 ROWS ONLY WITH CS")
    return Unit.of(rows[0]) if rows else None


def applied(connection: Connection, config: Config) -> str | None:
    """Up to where Apply has copied all changes; None if it is not in use, or the user may not know."""
    try:
        lsn = connection.value(_APPLIED.format(control=control(config)))
    except FAILURES.driver_error as error:
        # The table exists where Apply was set up, and the right to read it is asked for by `check`.
        if FAILURES.is_transient(error):
            raise
        return None
    return None if lsn is None else text_of(lsn)


def is_aged(connection: Connection, config: Config, since: str) -> bool:
    """Whether a time of the server, as ISO text, is longer ago than changes are kept."""
    limit = connection.value(_RETENTION.format(control=control(config)))
    retention = timedelta(minutes=_RETENTION_MINUTES if limit is None else int(limit))
    return server_time(connection) - datetime.fromisoformat(since) >= retention


def is_emptied_behind(connection: Connection, config: Config, lsn: str) -> bool:
    """Whether the log goes on behind a position, and no unit of work up to there is left.

    Units are pruned with their changes, the oldest first: while one at or before the position is there, nothing behind
    it is missing.
    """
    oldest = connection.value(_OLDEST.format(table=f"{control(config)}.IBMSNAP_UOW"))
    if oldest is not None and text_of(oldest) <= lsn:
        return False
    return log_end(connection, config).lsn(config[DATABASE_DBNAME]) > lsn


@dataclass(frozen=True)
class Witness:
    """What an offset has of the log at its position: when that was read (ISO text), and the last unit of work then.

    `was_behind`: changes behind the position may have been there for a while.
    """

    lsn: str
    read: str | None
    unit: Unit | None
    was_behind: bool

    def gap(self, connection: Connection, config: Config) -> LogGap | None:
        """What is missing behind the position, or may be; None if nothing is. May raise the driver's errors."""
        if not self.lsn or self.read is None:
            return None
        # Taken over from another program, a position may be behind the unit.
        if self.unit is not None and self.unit.lsn <= self.lsn:
            rows = connection.rows(f"{_UNIT.format(control=control(config))} = {literal_of(self.unit.lsn)} WITH CS")
            now = Unit.of(rows[0]).id if rows else None
            if now == self.unit.id:
                return None
            # Pruning takes the oldest first: a unit that is gone while older ones are there was never made.
            if now is not None or self._has_older(connection, config, self.unit.lsn):
                return gap.another(config[DATABASE_DBNAME], self.unit.lsn, self.unit.id, now)
        if not is_emptied_behind(connection, config, self.lsn):
            return None
        return self._removed(connection, config, self.read)

    @staticmethod
    def _has_older(connection: Connection, config: Config, lsn: str) -> bool:
        oldest = connection.value(_OLDEST.format(table=f"{control(config)}.IBMSNAP_UOW"))
        return oldest is not None and text_of(oldest) < lsn

    def _removed(self, connection: Connection, config: Config, read: str) -> LogGap | None:
        """Why no unit of work is left up to the position, and whether later ones may be gone as well."""
        if is_aged(connection, config, read):
            return pruned(self.lsn)
        copied = applied(connection, config)
        if copied is not None and copied > self.lsn and self.was_behind:
            return _after_apply(self.lsn, copied)
        if self.unit is None or is_aged(connection, config, self.unit.time):
            return None
        # What was read may be pruned as soon as Apply has copied it.
        return None if copied is not None and copied >= self.unit.lsn else _emptied(self.lsn)


def pruned(lsn: str) -> LogGap:
    """The gap where changes were too old to be kept."""
    return LogGap(
        OffsetError(
            f"pruning has removed changes that were not read, from LSN {lsn} on",
            where="IBMSNAP_UOW",
            remedy=f"{NEW_SNAPSHOT}. To keep changes longer: {LONGER}",
        )
    )


def _after_apply(lsn: str, copied: str) -> LogGap:
    own = "Give the pipeline a capture schema of its own, which Apply does not use"
    return LogGap(
        OffsetError(
            f"pruning has removed changes that Apply has copied and that were not read: from LSN {lsn} to {copied}",
            where="IBMSNAP_UOW",
            remedy=f"{NEW_SNAPSHOT}. {own}",
        )
    )


def _emptied(lsn: str) -> LogGap:
    return LogGap(
        OffsetError(
            "units of work are gone long before RETENTION_LIMIT: the change tables were emptied by hand or by a cold "
            f"start of the capture program, and changes from LSN {lsn} on may be lost",
            where="IBMSNAP_UOW",
            remedy=f"{NEW_SNAPSHOT}. Start asncap with startmode=warmsi, and leave pruning to it",
        )
    )
