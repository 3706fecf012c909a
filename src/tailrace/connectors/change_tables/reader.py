"""Reads a log range: merges the rows of change tables in commit order and yields change batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import TableFilter
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.config.options.filters import SKIPPED_OPERATIONS
from tailrace.config.options.snapshot import TABLE_WATCH_INTERVAL_MS
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.options.topics import INCLUDE_SCHEMA_CHANGES, TOPIC_PREFIX
from tailrace.connectors.base import Chunk
from tailrace.connectors.change_tables import gap
from tailrace.connectors.change_tables.change_table import ChangeTable
from tailrace.connectors.change_tables.changes import (
    AFTER,
    BEFORE,
    DELETED,
    INSERTED,
    ORDER_STEP,
    STRUCTURE_PLACE,
    ChangeRows,
    ChangeTableRows,
    in_log_order,
    marks,
    paired,
    whole_transactions,
)
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.idle_connections import reused_connection
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.ranges import ROWS, LogRange, inside
from tailrace.connectors.change_tables.schema_changes import (
    FAULTY_STATEMENT,
    ChangePlace,
    Switch,
    dropped_batch,
    initial_batches,
    schema_batch,
)
from tailrace.connectors.change_tables.tables import Instance, LastChange, TableKey
from tailrace.connectors.notifications import Notice, notify
from tailrace.connectors.retry import Backoff
from tailrace.connectors.sql_tables.tables import Connection
from tailrace.errors import SourceError
from tailrace.model.change import COMMIT, ChangeBatch, note
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

log = logging.getLogger(__name__)

_SKIPPED = {"c": (INSERTED,), "u": (BEFORE, AFTER), "d": (DELETED,)}


def changes(dialect: Dialect, config: Config, wanted: LogRange) -> Iterator[Chunk]:
    """The changes of a range. A lost connection is opened again. Raises SourceError, DecodeError."""
    return again_after_loss(dialect, config, lambda: _changes(dialect, config, wanted))


def _changes(dialect: Dialect, config: Config, wanted: LogRange) -> Iterator[Chunk]:
    if wanted.lacking:
        yield _lacking(wanted.lacking)
    if wanted.structures:
        yield Chunk(initial_batches(dialect, wanted.structures, dict(wanted.start.lsns), ends=True))
    order = 0
    with dialect.failures.translated("the change tables cannot be read"):
        for database in sorted(each for each, _ in wanted.end.lsns):
            start, end = wanted.start.lsn(database), wanted.end.lsn(database)
            # Structures that the snapshot has left out come though nothing has changed.
            if start < end or any(each.instance.table.database == database for each in wanted.switches):
                reader = RangeReader(dialect, config, database, start, end, order)
                yield from reader.chunks(wanted)
                order = reader.order
    lists = TableFilter.from_config(config)
    dropped = [table for table in wanted.dropped if lists.captures(table)]
    if config[INCLUDE_SCHEMA_CHANGES] and dropped:
        yield Chunk([dropped_batch(dialect, table, order, wanted.end.lsn(table.database)) for table in dropped])
    passed = [_passed(config, each, wanted.end) for each in wanted.passed if lists.captures(each.table)]
    if passed:
        yield Chunk([], controls=notify(config, passed))


def _lacking(tables: Sequence[tuple[TableId, str]]) -> Chunk:
    """Say of tables why the log has not all of their changes, in the log of the process and to sinks that keep them."""
    for _, why in tables:
        log.error(why)
    return Chunk([note(TableSchema(table, (), (), ()), lacking=why) for table, why in tables])


class RangeReader:
    """Reads the range of one database. `order` is the place of the next event."""

    def __init__(self, dialect: Dialect, config: Config, database: str, start: str, end: str, order: int) -> None:
        self._dialect = dialect
        self._config, self._database = config, database
        self._filter = TableFilter.from_config(config)
        self._start, self._end, self.order = start, end, order
        self._gone: list[tuple[TableId, str]] = []
        self._last = LastChange(start)
        self._last_ts: int | None = None
        # What `source` says with a new structure whose first LSN is known: the last change before that.
        self._before: dict[Instance, tuple[LastChange, int | None]] = {}

    def chunks(self, wanted: LogRange) -> Iterator[Chunk]:
        """The changes, whole transactions at a time."""
        mine = {each: rows for each, rows in wanted.instances.items() if self._is_captured(each)}
        waiting = [each for each in wanted.switches if self._is_captured(each.instance)]
        if not waiting and not any(mine.values()):
            return
        with ExitStack() as stack:
            connection = stack.enter_context(self._connected())
            lookup = _Lookup(self._dialect, connection, self._config)
            tables = {each: self._table(lookup, each) for each, rows in mine.items() if rows}
            present_tables = {each: table for each, table in tables.items() if table}
            if waiting:
                self._remember_from(connection, list(mine))
            cursors = [self._cursor(stack, connection, table, mine[each]) for each, table in present_tables.items()]
            for block in whole_transactions(cursors):
                present = [
                    (table, each)
                    for table, each in zip(present_tables.values(), block, strict=True)
                    if each is not None
                ]
                yield self._chunk(present, waiting)
        if self._gone:
            yield _lacking(self._gone)
        if waiting:
            yield Chunk([self._switched(each, self.order + place) for place, each in enumerate(waiting)])
            self.order += len(waiting)

    def _table(self, lookup: _Lookup, instance: Instance) -> ChangeTable | None:
        """How an instance's rows are read; None, too, if it was dropped since the range was planned."""
        try:
            table = _change_table(lookup, instance, instance.types, instance.key)
            if table is not None and self._config[TABLE_WATCH_INTERVAL_MS] and self._begins(lookup, instance):
                captured = self._dialect.filled(lookup.connection, self._config, instance, table.captured)
                table = replace(table, captured=captured)
            return table
        except gap.InstanceGone:
            self._lose(instance)
            return None

    def _begins(self, lookup: _Lookup, instance: Instance) -> bool:
        """Whether these are the first rows of an instance that follows another one: they bring its new columns.

        They may come long after it begins, and before the catalog was looked at.
        """
        return not instance.is_first and not self._dialect.last_change(lookup.connection, [instance], self._start)

    def _lose(self, instance: Instance) -> None:
        self._gone.append((instance.table, gap.dropped_meanwhile(instance, self._start)))

    def _connected(self) -> AbstractContextManager[Connection]:
        return reused_connection(self._dialect, self._config, "tailrace log", self._database)

    def _is_captured(self, instance: Instance) -> bool:
        """Whether the tables of this range have the instance's: signals change them while a pipeline runs."""
        return instance.table.database == self._database and self._filter.captures(instance.table)

    def _cursor(self, stack: ExitStack, connection: Connection, table: ChangeTable, rows: int) -> Iterator[ChangeRows]:
        """The rows of a change table, all that were counted when the range was planned; none if it was dropped since.

        Raises OffsetError at their end if clean-up has removed some of the rows: a backlog as old as the retention may
        be read while clean-up runs.
        """
        count = 0
        try:
            for block in self._blocks(stack, connection, table, rows):
                count += len(block)
                yield block
        except self._dialect.failures.driver_error as error:
            # A table cannot be dropped while it is read.
            if count or not self._dialect.is_missing(error):
                raise
            self._lose(table.instance)
            return
        if count < rows and not self._skipped(table):
            if not self._is_there(connection, table.instance):
                self._lose(table.instance)
                return
            raise gap.cleaned_meanwhile(table.instance, self._start, count, rows)

    def _is_there(self, connection: Connection, instance: Instance) -> bool:
        """Whether the change table is still the one that was listed: another one may have its name."""
        listed = self._dialect.catalog(connection, self._config).instances(instance.table.database)
        return any(each.number == instance.number for each in listed)

    def _blocks(self, stack: ExitStack, connection: Connection, table: ChangeTable, rows: int) -> Iterator[ChangeRows]:
        """Rows in blocks; what one answer holds is read at once, more over a connection of its own."""
        statement = f"{table.statement} WHERE {self._condition(table)} ORDER BY {table.order}"
        if rows <= ROWS:
            return iter([table.rows(block) for block in connection.blocks(statement, ROWS)])
        own = stack.enter_context(self._connected())
        return (table.rows(block) for block in own.blocks(statement, ROWS))

    def _condition(self, table: ChangeTable) -> str:
        within = inside(self._dialect, table.instance, self._start, self._end)
        skipped = self._skipped(table)
        return f"{within} AND {table.kind} NOT IN ({','.join(skipped)})" if skipped else within

    def _skipped(self, table: ChangeTable) -> list[str]:
        """The kinds of rows that are not selected."""
        if not table.kind:
            return []
        return [str(kind) for op in self._config[SKIPPED_OPERATIONS] for kind in _SKIPPED.get(op, ())]

    def _chunk(self, rows_of_tables: Sequence[tuple[ChangeTable, ChangeRows]], waiting: list[Switch]) -> Chunk:
        changes_of_tables = [paired(table.whole(rows), str(table.instance.table)) for table, rows in rows_of_tables]
        ordered = in_log_order(changes_of_tables, self.order + ORDER_STEP)
        self.order += ORDER_STEP * (sum(map(len, ordered)) + 2)
        for switch in waiting:
            if switch.instance.start:
                self._look_before(switch.instance, ordered)
        batches: list[ChangeBatch] = []
        for (table, _), each in zip(rows_of_tables, ordered, strict=True):
            mine = [switch for switch in waiting if switch.instance.table == table.instance.table]
            for switch in mine:
                if len(each) and each.commit[0].as_py() >= switch.instance.start:
                    self._remember(ordered, int(each.order[0]))
                    batches.append(self._switched(switch, int(each.order[0]) + STRUCTURE_PLACE))
                    waiting.remove(switch)
            if len(each):
                batches.append(batch_of(self._dialect, table, each))
        self._remember(ordered, None)
        if not self._config[PROVIDE_TRANSACTION_METADATA]:
            return Chunk(batches)
        return Chunk(batches, marks=marks(ordered), tells_empty_transactions=False)

    def _remember_from(self, connection: Connection, instances: Sequence[Instance]) -> None:
        """Keep what `source` says of the last change before the range."""
        self._last = self._dialect.last_change(connection, instances, self._start) or self._last

    def _look_before(self, instance: Instance, ordered: Sequence[ChangeTableRows]) -> None:
        """Keep the last change before an instance, once there are changes that are not."""
        starts = [
            int(each.order[np.flatnonzero(later)[0]])
            for each in ordered
            if (later := pc.greater_equal(each.commit, instance.start).to_numpy(zero_copy_only=False)).any()
        ]
        if starts and instance not in self._before:
            self._remember(ordered, min(starts))
            self._before[instance] = (self._last, self._last_ts)

    def _remember(self, ordered: Sequence[ChangeTableRows], before: int | None) -> None:
        """Keep what `source` says of the last change before a place."""
        best = -1
        for each in ordered:
            places = np.flatnonzero(each.order < before) if before is not None else np.arange(len(each))
            if len(places) and each.order[places[-1]] > best:
                row = int(places[-1])
                best = int(each.order[row])
                self._last = LastChange(each.commit[row].as_py(), each.change[row].as_py(), int(each.serial[row]))
                self._last_ts = each.ts_us[row].as_py()

    def _switched(self, switch: Switch, order: int) -> ChangeBatch:
        last, ts_us = self._before.get(switch.instance, (self._last, self._last_ts))
        place = ChangePlace(order, max(self._last.commit, self._start), ts_us)
        is_faulty = Fault.STRUCTURES_WITHOUT_DDL in self._config[COMPAT_FAULTS]
        database = self._dialect.switched_database if is_faulty else None
        return schema_batch(self._dialect, switch, place, last, FAULTY_STATEMENT if is_faulty else None, database)


class _Lookup:
    """The arguments of a catalog lookup, equal to others with the same properties: the key of the cache below."""

    def __init__(self, dialect: Dialect, connection: Connection, config: Config) -> None:
        self.dialect, self.connection, self.config = dialect, connection, config
        self._key = (*sorted(config.given.items()), config.tables)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Lookup) and self._key == other._key

    @override
    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=1000)
def _change_table(lookup: _Lookup, instance: Instance, types: int, key: TableKey | None) -> ChangeTable | None:
    """How rows of a change table are read: looked up once in a process while columns keep their `types`, and the key.

    A key that is None is looked up as often, so that the events of a process have one key, as in the reference engine.
    """
    return lookup.dialect.change_table(lookup.connection, lookup.config, instance)


def batch_of(dialect: Dialect, table: ChangeTable, rows: ChangeTableRows) -> ChangeBatch:
    """Changes of one table as a batch."""
    columns_of_source = {"change_lsn": rows.change, "commit_lsn": rows.commit, "event_serial_no": pa.array(rows.serial)}
    fields = list(dialect.source_type)
    columns = {
        "op": rows.op,
        "order": pa.array(rows.order),
        "ts_us": rows.ts_us,
        "snapshot": pa.nulls(len(rows), pa.string()),
        "source": pa.StructArray.from_arrays([columns_of_source[field.name] for field in fields], fields=fields),
        "before": rows.before,
        "after": rows.after,
        COMMIT: rows.commit,
    }
    return ChangeBatch(table.captured.schema, pa.RecordBatch.from_pydict({**columns, **table.incomplete(rows)}))


def again_after_loss(dialect: Dialect, config: Config, attempt: Callable[[], Iterator[Chunk]]) -> Iterator[Chunk]:
    """The chunks of attempts: when a connection is lost, the next one continues where this one ended.

    Rows of a range do not change, so what is read again comes in the same chunks: those that were sent are left out.
    """
    sent, backoff = 0, Backoff(config)
    while True:
        try:
            for place, chunk in enumerate(attempt()):
                if place == sent:
                    sent += 1
                    backoff.reset()
                    yield chunk
        except SourceError as error:  # noqa: PERF203  # the loop is the retrying
            if not dialect.failures.is_transient(error):
                raise
            backoff.wait(error)
        else:
            return


def _passed(config: Config, instance: Instance, end: LsnPosition) -> Notice:
    data = {
        "server": config[TOPIC_PREFIX],
        "database": instance.table.database,
        "capture_instance": instance.name,
        "start_lsn": instance.start,
        "stop_lsn": instance.stop or "",
        "commit_lsn": end.lsn(instance.table.database),
    }
    return Notice("Capture Instance", "COMPLETED", tuple(data.items()))
