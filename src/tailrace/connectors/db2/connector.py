"""Implements Connector (connectors/log_ports.py) for Db2."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tailrace.config import Config
from tailrace.connectors.change_tables.connector import ChangeTableConnector
from tailrace.connectors.change_tables.connector import LogEnd as CapturedEnd
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.change_tables.takeover import after
from tailrace.connectors.db2.log.end import end_of_span, is_pruned, server_time
from tailrace.connectors.db2.record_format import source_block
from tailrace.connectors.db2.snapshot import DIALECT
from tailrace.connectors.lost_log_remedies import NEW_SNAPSHOT
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS, Gap
from tailrace.errors import OffsetError
from tailrace.model.source import SourceBlock

# In the `log` of an offset: the server's time when its log was read up to there.
READ = "read"
# How often the server is queried for it, in seconds: RETENTION_LIMIT is given in minutes.
_ASKED_S = 30.0
_LONG_AGO = "0001-01-01T00:00:00"


class Db2Connector(ChangeTableConnector):
    """Implements Connector."""

    dialect = DIALECT
    instance = "registration for capture"
    longer = "raise RETENTION_LIMIT in IBMSNAP_CAPPARMS"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._time: tuple[float, str] | None = None

    @property
    def source(self) -> SourceBlock:  # type: ignore[override]  # it depends on compat.version
        """See Connector.source."""
        return source_block(self.config)

    @cached_property
    def identity(self) -> str:
        """See Connector.identity: the database's name as the server has it."""
        server = self._server.ask(lambda connection: connection.value("SELECT CURRENT SERVER FROM SYSIBM.SYSDUMMY1"))
        return str(server).strip()

    def within(self, start: Reading, end: Reading, limit: int) -> Reading:
        """See Connector.within: by the times of commits, if the configuration says so."""
        seconds = self.config.number("streaming.query.timespan.seconds")
        if not seconds:
            return end
        database = self.config.text("database.dbname")
        lsn = start.lsn(database)
        last = self._server.ask(lambda connection: end_of_span(connection, self.config, lsn, seconds))
        return end if last is None else min(end, Reading.of({database: last}))

    def first(self, end: CapturedEnd, *, reads_tables: bool) -> tuple[Reading | None, Mapping[str, Any]]:
        """See Connector.first."""
        position, log = super().first(end, reads_tables=reads_tables)
        return position, {**log, READ: self._now()}

    def taken_over(self, end: CapturedEnd) -> tuple[None, Mapping[str, Any]] | None:
        """See Connector.taken_over. Nobody knows when Debezium read the log, so what is pruned is looked at."""
        taken = super().taken_over(end)
        if taken is not None:
            lsn = after(self.parse(taken[1][BEGINS]).lsn(self.config.text("database.dbname")))
            if self._server.ask(lambda connection: is_pruned(connection, self.config, lsn, _LONG_AGO)):
                raise _pruned(lsn, self.longer)
        return taken

    def advanced(
        self, config: Config, here: Reached, start: Reading, to: Reading, end: CapturedEnd | None
    ) -> Mapping[str, Any]:
        """See Connector.advanced."""
        log = super().advanced(config, here, start, to, end)
        return log if end is None else {**log, READ: self._now()}

    def _now(self) -> str:
        """The server's time, or one that is a little older: then pruning is looked for earlier than it has to be."""
        if self._time is None or time.monotonic() - self._time[0] >= _ASKED_S:
            now = self._server.ask(server_time)
            self._time = time.monotonic(), now.isoformat(timespec="seconds")
        return self._time[1]

    def _is_unpruned(self, here: Reached, at: Reading) -> bool:
        """Whether nothing was captured behind a position, or this process has read up to there seconds ago."""
        if self._end is not None and self._end.position == at:
            return True
        is_recent = self._time is not None and time.monotonic() - self._time[0] < _ASKED_S
        return is_recent and self._time is not None and here.log.get(READ) == self._time[1]

    def lost(
        self, here: Reached, end: Reached | None = None, *, position: Reading | None = None, is_routine: bool = False
    ) -> Gap | None:
        """See Connector.lost: change tables were created again, or pruning has passed the position."""
        lost = super().lost(here, end, position=position, is_routine=is_routine)
        at: Reading | None = self.needed(here, position)
        if lost is not None or at is None or (is_routine and self._is_unpruned(here, at)):
            return lost
        lsn = at.lsn(self.config.text("database.dbname"))
        if self._server.ask(lambda connection: is_pruned(connection, self.config, lsn, here.log.get(READ))):
            return Gap(_pruned(lsn, self.longer))
        return None


def _pruned(lsn: str, longer: str) -> OffsetError:
    return OffsetError(
        f"pruning has removed changes that were not read, from LSN {lsn} on",
        where="IBMSNAP_UOW",
        remedy=f"{NEW_SNAPSHOT}. To keep changes longer: {longer}",
    )
