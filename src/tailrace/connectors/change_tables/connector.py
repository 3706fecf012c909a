"""Implements Connector (connectors/log_ports.py) for logs of change tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, ClassVar

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import TableFilter
from tailrace.config.options.snapshot import TABLE_WATCH_INTERVAL_MS
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.options.topics import INCLUDE_SCHEMA_CHANGES
from tailrace.connectors.base import Chunk
from tailrace.connectors.change_tables import gap
from tailrace.connectors.change_tables.commits import changed, noted
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.entries import INSTANCES, SENT, UNTOLD, WAITING, still_without, unreached
from tailrace.connectors.change_tables.fence import CapturedUntil
from tailrace.connectors.change_tables.gap import Known, is_known, known_up_to
from tailrace.connectors.change_tables.key_changes import SeenKeys, noted_keys, older_rows
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.ranges import LogEnd, LogRange, counted
from tailrace.connectors.change_tables.reader import changes
from tailrace.connectors.change_tables.schema_changes import Switch
from tailrace.connectors.change_tables.snapshots import ChangeTableSnapshots
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.change_tables.takeover import reading_of
from tailrace.connectors.change_tables.unbrought import lacking_rows
from tailrace.connectors.log_ports import Committed, Watched
from tailrace.connectors.notifications import WITHOUT_ROWS
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS, LogGap, SharedLogConnector
from tailrace.connectors.sql_tables.captured import CapturedTables
from tailrace.connectors.sql_tables.rows import Split, read
from tailrace.connectors.sql_tables.tables import Connection
from tailrace.model.structure import Structure
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

# An idle pipeline polls several times a second; what changes with somebody's DDL is looked at less often.
_LOOKS_S = 1.0


class ChangeTableConnector(SharedLogConnector):
    """Implements Connector. A position is an LsnPosition; a range is (start, end]."""

    dialect: ClassVar[Dialect]
    instance: ClassVar[str]
    """What the database calls a change table of one source table."""
    longer: ClassVar[str]
    """How changes are kept longer."""

    notices_without_rows = WITHOUT_ROWS  # in the reference engine a snapshot of structures alone is a snapshot
    fence = staticmethod(CapturedUntil.parse)
    parse = staticmethod(LsnPosition.from_text)

    def __init__(self, config: Config) -> None:
        self.config = config
        self._server = self.dialect.server(config)
        self._end: LogEnd | None = None
        self._here: LsnPosition | None = None
        self._reached = LsnPosition(())
        self._compared: Connection | None = None
        self._looked = -_LOOKS_S
        self._watched: tuple[float, tuple[tuple[str, bool], ...], Watched] | None = None
        self._keys = SeenKeys()

    @property
    @override
    def source_type(self) -> pa.StructType:
        return self.dialect.source_type

    @cached_property
    @override
    def snapshots(self) -> ChangeTableSnapshots:
        return ChangeTableSnapshots(self.dialect, self.config, self._server)

    @override
    def text(self, position: LsnPosition) -> str:
        return position.to_text()

    @override
    def watch(self, config: Config) -> Watched:
        """Tables without a change table have a snapshot and no changes."""
        now = time.monotonic()
        if self._watched is None or self._watched[1] != config.tables or now - self._watched[0] >= _LOOKS_S:
            self._watched = now, config.tables, self._without_instance(config)
        return self._watched[2]

    def _without_instance(self, config: Config) -> Watched:
        def query(connection: Connection) -> tuple[str, ...]:
            catalog = self.dialect.catalog(connection, config)
            newest, captured = catalog.newest(), catalog.captured()
            missing = [table for table in captured if table not in newest]
            told = [f"{table} has no {self.instance}, so its changes are not captured" for table in missing]
            return (*told, *self.warnings(connection, config))

        return Watched(self._server.ask(query))

    def warnings(self, connection: Any, config: Config) -> Sequence[str]:
        """What else `watch` warns of. May raise the driver's errors."""
        return ()

    @override
    def tables(self, config: Config) -> list[TableSchema]:
        def query(connection: Connection) -> list[TableSchema]:
            catalog = self.dialect.catalog(connection, config)
            numbers, newest = catalog.tables(), catalog.newest()
            tables = (catalog.capture(catalog.now(table, newest, numbers[table])) for table in catalog.captured())
            return [each.schema for each in tables if each is not None]

        return self._server.ask(query)

    @override
    def structures(self, config: Config, reached: Reached) -> Mapping[TableId, Structure]:
        """With the time: what was committed before it may be captured later."""

        def query(connection: Connection) -> Mapping[TableId, Structure]:
            described = self.described(connection, config)
            now = self.dialect.now_us(connection) if described else 0
            return {table: replace(each, read_us=now) for table, each in described.items()}

        return self._server.ask(query)

    def described(self, connection: Any, config: Config) -> Mapping[TableId, Structure]:
        """What the catalog says of each captured table. May raise the driver's errors."""
        return {}

    @override
    def log_end(self) -> LogEnd:
        """Where nothing is left to read, change tables are checked once a second."""

        def query(connection: Connection) -> LogEnd:
            now, captured = time.monotonic(), None
            is_due = now - self._looked >= _LOOKS_S
            if is_due:
                # Before the end, which then lies behind all that was captured up to that time.
                self._looked, captured = now, self.dialect.captured_us(connection, self.config)
            end = self._captured(connection)
            if is_due:
                self.look(connection, end)
            elif self._end is not None and self._end.position == end == self._here:
                return self._end
            return LogEnd(end, self._instances(connection, end), captured)

        self._end = self._server.ask(query)
        return self._end

    @override
    def committed(self, end: LogEnd) -> Committed | None:
        """Bounded by the program that captures, and never by the server's clock."""
        return None if end.captured_us is None else Committed(end.captured_us, end.position)

    def _current_end(self, connection: Connection) -> LogEnd:
        end = self._captured(connection)
        return LogEnd(end, self._instances(connection, end))

    def _captured(self, connection: Connection) -> LsnPosition:
        """How far the log is captured. A readable replica that has not got all that was read yet has nothing new."""
        end = self.dialect.log_end(connection, self.config)
        late = {
            database: self._reached.lsn(database)
            for database, lsn in end.lsns
            if lsn < self._reached.lsn(database) and self.dialect.is_behind(connection, database)
        }
        return LsnPosition.of({**dict(end.lsns), **late})

    def look(self, connection: Any, end: LsnPosition) -> None:
        """What is checked once a second in addition, when the end is queried."""

    def _instances(self, connection: Connection, end: LsnPosition) -> tuple[Instance, ...]:
        """The change tables; where a sink keeps tables, with the keys that were read behind that end."""
        catalog = self.dialect.catalog(connection, self.config)
        if not self.keeps_tables:
            return tuple(each for database, _ in end.lsns for each in catalog.instances(database))
        now = partial(self.dialect.now_us, connection)
        return tuple(each for database, _ in end.lsns for each in self._keys.given(catalog, database, now))

    @override
    def first(self, end: LogEnd, *, reads_tables: bool) -> tuple[LsnPosition | None, Mapping[str, Any]]:
        instances = known_up_to({}, end.position, [each for each in end.instances if self._sends_structure(each.table)])
        log = {
            BEGINS: end.position.to_text(),
            INSTANCES: instances,
            **unreached(instances, end.instances),
            **self._without_change_table(end),
            **self._commits({}, end.position),
            **noted_keys({}, end.instances, None),
        }
        # Without a snapshot nothing has sent the structure of the tables before the first change.
        return None, log if reads_tables else {**log, UNTOLD: True}

    def _commits(self, log: Mapping[str, Any], to: LsnPosition) -> Mapping[str, Any]:
        return self._server.ask(lambda connection: noted(self.dialect, connection, log, to))

    @override
    def taken_over(self, end: LogEnd) -> tuple[None, Mapping[str, Any]] | None:
        """All change tables are known, so that one that was cleaned up since is noticed."""
        begins = reading_of(self.config, dict(end.position.lsns))
        if begins is None:
            return None
        _, log = self.first(end, reads_tables=False)
        return None, {**log, BEGINS: begins.to_text()}

    def _sends_structure(self, table: TableId) -> bool:
        """Whether a first snapshot sends the structure of this table, if it sends any.

        The fault: where a snapshot sends captured tables only, those that it does not read come by the log.
        """
        if not self.dialect.sends_captured_only or Fault.LATE_STRUCTURES not in self.config[COMPAT_FAULTS]:
            return True
        lists = TableFilter.from_config(self.config)
        return lists.lists(table) or not lists.captures(table)

    def _without_change_table(self, end: LogEnd) -> Mapping[str, Any]:
        """The captured tables that have no change table yet: a first snapshot sends their structures too."""
        if not self.config[INCLUDE_SCHEMA_CHANGES]:
            return {}

        def query(connection: Connection) -> dict[str, list[int]]:
            catalog = self.dialect.catalog(connection, self.config)
            numbers, read = catalog.tables(), {each.table for each in end.instances}
            numbers_by_database: dict[str, list[int]] = {}
            for table in catalog.captured():
                if table not in read and self._sends_structure(table):
                    numbers_by_database.setdefault(table.database, []).append(numbers[table])
            return numbers_by_database

        return still_without(self._server.ask(query), ())

    @override
    def advanced(
        self, config: Config, reached: Reached, start: LsnPosition, to: LsnPosition, end: LogEnd | None
    ) -> Mapping[str, Any]:
        if end is None:
            return reached.log
        instances = known_up_to(reached.log.get(INSTANCES, {}), to, end.instances)
        read = [each for each in end.instances if is_known(instances, each)]
        waiting = reached.log.get(WAITING, {})
        return {
            INSTANCES: instances,
            **unreached(
                instances, [each for each in end.instances if each.number in waiting.get(each.table.database, ())]
            ),
            **still_without(reached.log.get(SENT, {}), read),
            **self._commits(reached.log, to),
            **noted_keys(reached.log, end.instances, end.captured_us if to >= end.position else None),
        }

    @override
    def lost(
        self,
        reached: Reached,
        end: Reached | None = None,
        *,
        position: LsnPosition | None = None,
        is_routine: bool = False,
    ) -> LogGap | None:
        """Clean-up has passed the position in a change table that the pipeline reads."""
        at: LsnPosition | None = self.needed(reached, position)
        if at is None:
            return None
        seen = None
        if is_routine:
            # The end of the next range was queried just now.
            seen, self._here = self._end, at
        self._reached = at.at_least(self._reached)

        def query(connection: Connection) -> LogGap | None:
            # Who restores a database, or moves it to another node, cuts its connections.
            is_new, self._compared = not is_routine or connection is not self._compared, connection
            other = changed(self.dialect, connection, reached.log) if is_new else None
            stored = reached.log.get(INSTANCES, {})
            return other or self._gap(connection, at, stored, seen or self._current_end(connection))

        return self._server.ask(query)

    def _gap(self, connection: Connection, at: LsnPosition, stored: Known, end: LogEnd) -> LogGap | None:
        for database, lsn in at.lsns:
            if end.position.lsn(database) < lsn and not self.dialect.is_behind(connection, database):
                return gap.behind(database, lsn, end.position.lsn(database))
        lists = TableFilter.from_config(self.config)
        instances = tuple(each for each in end.instances if lists.captures(each.table))
        for instance in instances:
            # Clean-up moves the start of a change table.
            database = instance.table.database
            lsn = at.lsn(database)
            is_read = instance.stop is None or instance.stop > lsn
            is_cleaned = is_known(stored, instance) and is_read and instance.start > lsn
            # Clean-up keeps what is at its mark: the change right behind the position may be it.
            if is_cleaned and not self.dialect.follows(connection, database, lsn, instance.start):
                return gap.cleaned(instance, lsn, self.longer)
        if self.keeps_tables:
            # The tables are incomplete, which is said with the changes.
            return None
        return next((LogGap(gap.disabled(*each)) for each in gap.replaced(stored, at, instances)), None)

    @property
    def keeps_tables(self) -> bool:
        """Whether a sink keeps the content of tables, and reads one again that is incomplete."""
        return self.config[TABLE_WATCH_INTERVAL_MS] > 0

    @override
    def ranges(
        self, config: Config, start: Reached, begin: LsnPosition, end: Reached, *, is_whole: bool
    ) -> Sequence[LogRange]:
        to: LsnPosition = end.position

        def query(connection: Connection) -> LogRange:
            # Those that `advanced` has written down, if this process has planned the range.
            is_seen = self._end is not None and to <= self._end.position
            instances = self._end.instances if self._end and is_seen else self._instances(connection, to)
            stored = start.log.get(INSTANCES, {})
            inside = tuple(each for each in instances if gap.is_in(each, begin, to))
            structures = (
                CapturedTables(self.dialect, connection, self.config).structures() if start.log.get(UNTOLD) else ()
            )
            tells, lists = self.config[INCLUDE_SCHEMA_CHANGES], TableFilter.from_config(config)
            switches = self._switches(connection, inside, start.log) if tells else []
            dropped = gap.dropped(stored, instances, lists.naming.shown) if tells else ()
            mine = [each for each in inside if lists.captures(each.table)]
            rows = counted(self.dialect, connection, mine, begin, to)
            gone = [(each, begin.lsn(each.table.database)) for each in mine if each not in rows]
            lacking = [(each.table, gap.dropped_meanwhile(each, lsn)) for each, lsn in gone]
            if self.keeps_tables:
                all_, waiting = [each for each in instances if lists.captures(each.table)], start.log.get(WAITING, {})
                catalog = self.dialect.catalog(connection, config)
                lacking += lacking_rows(self.dialect, connection, catalog, stored, waiting, begin, all_, mine)
                lacking += older_rows(rows, start.log, end.log)
            return LogRange(
                begin,
                to,
                rows,
                tuple(switches),
                passed=tuple(each for each in instances if gap.is_passed(each, begin, to)),
                structures=structures,
                dropped=dropped,
                lacking=tuple(lacking),
            )

        whole = self._server.ask(query)
        return [whole] if is_whole else whole.parts()

    def _switches(
        self, connection: Connection, instances: tuple[Instance, ...], log: Mapping[str, Any]
    ) -> list[Switch]:
        """The new change tables with the structures they bring."""
        catalog = self.dialect.catalog(connection, self.config)
        stored: Known = log.get(INSTANCES, {})
        switches = []
        for instance in instances:
            if gap.is_reported(stored, instance):
                continue
            mine = [each for each in catalog.instances(instance.table.database) if each.table == instance.table]
            before = list(takewhile(lambda each, number=instance.number: each.number != number, mine))  # type: ignore[misc]
            structure = catalog.at(instance)
            if before and catalog.at(before[-1]) == structure and not gap.is_retyped(stored, before[-1]):
                continue
            was_sent = not before and instance.source in log.get(SENT, {}).get(instance.table.database, ())
            if was_sent and structure.shows_all_of(catalog.described(instance.table, instance.source)):
                continue
            is_new = not before and not was_sent and not is_known(stored, instance)
            switches.append(Switch(instance, structure, is_new))
        return switches

    @override
    def changes(self, config: Config, wanted: LogRange) -> Iterator[Chunk]:
        return changes(self.dialect, config, wanted)

    @override
    def rows(self, config: Config, split: Split) -> Iterator[Chunk]:
        return read(self.dialect, config, split)

    @override
    def execute(self, statement: str) -> None:
        self._server.ask(lambda connection: connection.run(statement))

    @override
    def close(self) -> None:
        self._server.close()
