"""Implements Connector (connectors/log_ports.py) for Db2."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.change_tables.connector import ChangeTableConnector
from tailrace.connectors.change_tables.entries import INSTANCES
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.ranges import LogEnd as CapturedEnd
from tailrace.connectors.change_tables.ranges import LogRange
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.change_tables.takeover import after
from tailrace.connectors.db2.catalog import Catalog
from tailrace.connectors.db2.client import Connection
from tailrace.connectors.db2.log.end import end_of_span, server_time
from tailrace.connectors.db2.log.pruning import LONGER, Unit, Witness, is_emptied_behind, newest_unit, pruned
from tailrace.connectors.db2.log.registrations import Name, Registration, left_out, registrations, resumed, stopped
from tailrace.connectors.db2.options import DB2_PLATFORM, STREAMING_QUERY_TIMESPAN_SECONDS, ZOS
from tailrace.connectors.db2.record_format import source_block
from tailrace.connectors.db2.snapshot import DIALECT
from tailrace.connectors.db2.structures import structures
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS, LogGap
from tailrace.model.source import SourceBlock
from tailrace.model.structure import Structure
from tailrace.model.table_id import SCHEMA_TABLE, TableId
from tailrace.override import override

log = logging.getLogger(__name__)

# In the `log` of an offset: the server's time when its log was read up to there.
READ = "read"
# And the last unit of work up to there, as Unit.to_json has it.
UNIT = "unit"
# And the tables that were not captured there, see registrations.stopped.
STOPPED = "stopped"
# How often the server is queried for it, in seconds: RETENTION_LIMIT is given in minutes.
_ASKED_S = 30.0


class Db2Connector(ChangeTableConnector):
    """Implements Connector."""

    dialect = DIALECT
    instance = "registration for capture"
    longer = LONGER

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._time: tuple[float, str] | None = None
        self._states: Mapping[Name, Registration] | None = None
        self._told: list[str] = []
        # Where the log ended before it was queried last.
        self._end_before: LsnPosition | None = None

    @property
    @override
    def source(self) -> SourceBlock:  # type: ignore[override]  # it depends on compat.version
        return source_block(self.config)

    @cached_property
    @override
    def identity(self) -> str:
        """The database's name as the server has it."""
        server = self._server.ask(lambda connection: connection.value("SELECT CURRENT SERVER FROM SYSIBM.SYSDUMMY1"))
        return str(server).strip()

    @override
    def _instances(self, connection: Any, end: LsnPosition) -> tuple[Instance, ...]:
        self._states = registrations(connection, self.config)
        return super()._instances(connection, end)

    @override
    def warnings(self, connection: Connection, config: Config) -> Sequence[str]:
        captured = {(each.schema, each.table): each for each in Catalog(connection, config).captured()}
        sentences = [
            f"{captured[name]}: {each.why}, so its changes are not captured"
            for name, each in sorted(registrations(connection, config).items())
            if name in captured and not each.is_active
        ]
        for sentence in sentences:
            if sentence not in self._told:
                log.warning(sentence)
        self._told = sentences
        return sentences

    @override
    def described(self, connection: Connection, config: Config) -> Mapping[TableId, Structure]:
        return structures(connection, Catalog(connection, config), is_zos=config[DB2_PLATFORM] == ZOS)

    @override
    def within(self, start: LsnPosition, end: LsnPosition, limit: int) -> LsnPosition:
        """By the times of commits, if the configuration says so."""
        seconds = self.config[STREAMING_QUERY_TIMESPAN_SECONDS]
        if not seconds:
            return end
        database = self.config[DATABASE_DBNAME]
        lsn = start.lsn(database)
        last = self._server.ask(lambda connection: end_of_span(connection, self.config, lsn, seconds))
        return end if last is None else min(end, LsnPosition.of({database: last}))

    @override
    def first(self, end: CapturedEnd, *, reads_tables: bool) -> tuple[LsnPosition | None, Mapping[str, Any]]:
        position, log = super().first(end, reads_tables=reads_tables)
        return position, {**log, READ: self._now(), **self._unit({}, end.position), **self._stopped((), end.position)}

    def _stopped(self, before: Sequence[list[str]], to: LsnPosition) -> Mapping[str, Any]:
        """The entry STOPPED at a position, empty if all registrations are active."""
        states = stopped(before, self._states or {}, to.lsn(self.config[DATABASE_DBNAME]))
        return {STOPPED: states} if states else {}

    def _unit(self, log: Mapping[str, Any], to: LsnPosition) -> Mapping[str, Any]:
        """The entry UNIT at a position; the earlier one where no unit of work is left."""
        lsn = to.lsn(self.config[DATABASE_DBNAME])
        unit = self._server.ask(lambda connection: newest_unit(connection, self.config, lsn)) if lsn else None
        if unit is not None:
            return {UNIT: unit.to_json()}
        return {UNIT: log[UNIT]} if UNIT in log else {}

    @override
    def taken_over(self, end: CapturedEnd) -> tuple[None, Mapping[str, Any]] | None:
        """Nobody knows when Debezium read the log, so what is pruned is looked at."""
        taken = super().taken_over(end)
        if taken is not None:
            lsn = after(self.parse(taken[1][BEGINS]).lsn(self.config[DATABASE_DBNAME]))
            if self._server.ask(lambda connection: is_emptied_behind(connection, self.config, lsn)):
                raise pruned(lsn).cause
        return taken

    @override
    def advanced(
        self, config: Config, reached: Reached, start: LsnPosition, to: LsnPosition, end: CapturedEnd | None
    ) -> Mapping[str, Any]:
        log = super().advanced(config, reached, start, to, end)
        if end is None:
            return log
        unit = {UNIT: reached.log[UNIT]} if to == start and UNIT in reached.log else self._unit(reached.log, to)
        return {**log, READ: self._now(), **unit, **self._stopped(reached.log.get(STOPPED, ()), to)}

    @override
    def ranges(
        self, config: Config, start: Reached, begin: LsnPosition, end: Reached, *, is_whole: bool
    ) -> Sequence[LogRange]:
        log_ranges = super().ranges(config, start, begin, end, is_whole=is_whole)
        lacking = tuple(self._lacking(config, start, begin, end))
        if not lacking:
            return log_ranges
        instances = {instance: rows for each in log_ranges for instance, rows in each.instances.items()}
        return [replace(log_ranges[0], instances=instances, lacking=(*log_ranges[0].lacking, *lacking))]

    def _lacking(
        self, config: Config, start: Reached, begin: LsnPosition, end: Reached
    ) -> Iterator[tuple[TableId, str]]:
        """The tables whose changes were not captured for a while, and why."""
        database, captures = self.config[DATABASE_DBNAME], TableFilter.from_config(config).captures
        lsn = begin.lsn(database)
        again = dict(resumed(start.log.get(STOPPED, ()), end.log.get(STOPPED, ())))
        if self.keeps_tables:
            again.update((name, lsn) for name in self._incomplete(start, lsn))
        for (schema, name), since in again.items():
            table = TableId(database, schema, name, SCHEMA_TABLE)
            if captures(table):
                yield table, f"{table} was not captured for a while: its changes from LSN {since} on are incomplete"

    def _incomplete(self, reached: Reached, lsn: str) -> list[Name]:
        """The tables that were captured before a position, and whose change tables lack changes behind it."""
        stored = reached.log.get(INSTANCES, {}).get(self.config[DATABASE_DBNAME], {})
        names = [(schema, table) for _, schema, table, *_ in stored.values()]
        return [name for name in names if name in (self._states or {}) and (self._states or {})[name].lacks(lsn)]

    def _now(self) -> str:
        """The server's time, or one that is a little older: then pruning is looked for earlier than it has to be."""
        if self._time is None or time.monotonic() - self._time[0] >= _ASKED_S:
            now = self._server.ask(server_time)
            self._time = time.monotonic(), now.isoformat(timespec="seconds")
        return self._time[1]

    @override
    def lost(
        self,
        reached: Reached,
        end: Reached | None = None,
        *,
        position: LsnPosition | None = None,
        is_routine: bool = False,
    ) -> LogGap | None:
        """Change tables were created again, or pruning has passed the position."""
        before = self._end_before
        lost = super().lost(reached, end, position=position, is_routine=is_routine)
        at: LsnPosition | None = self.needed(reached, position)
        if self._end is not None:
            self._end_before = self._end.position
        is_idle = is_routine and self._end is not None and self._end.position == at
        if lost is not None or at is None or is_idle:
            return lost
        lsn = at.lsn(self.config[DATABASE_DBNAME])
        if not is_routine or self._states is None:
            self._states = self._server.ask(lambda connection: registrations(connection, self.config))
        incomplete = [] if self.keeps_tables else self._incomplete(reached, lsn)
        if incomplete:
            return left_out(incomplete[0], lsn)
        unit = reached.log.get(UNIT)
        was_behind = not is_routine or before is None or at < before
        witness = Witness(lsn, reached.log.get(READ), None if unit is None else Unit(*unit), was_behind)
        return self._server.ask(lambda connection: witness.gap(connection, self.config))
