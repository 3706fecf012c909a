"""Changes of a range of the log: rows of change tables, merged in the order of commits, as change batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.base import Chunk
from tailrace.connectors.change_tables.changes import (
    ChangeRows,
    Changes,
    in_log_order,
    paired,
    transactions,
    whole_transactions,
)
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.retry import Backoff
from tailrace.connectors.sqlserver.arrays import images, lsn_texts, selected
from tailrace.connectors.sqlserver.catalog import Catalog, Described, Instance
from tailrace.connectors.sqlserver.client import FAILURES, Connection, connect
from tailrace.connectors.sqlserver.log.last import last_change
from tailrace.connectors.sqlserver.log.schema_changes import (
    FAULTY_STATEMENT,
    Switch,
    dropped_batch,
    initial_batches,
    schema_batch,
)
from tailrace.connectors.sqlserver.position import SOURCE_TYPE, literal_of
from tailrace.connectors.sqlserver.statements import name
from tailrace.connectors.sqlserver.types.times import moments
from tailrace.errors import SourceError
from tailrace.events.notifications import Notice, notify
from tailrace.events.transactions import BEGIN, END, MARKS
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.table import TableId

_ROWS = 20_000
_SKIPPED = {"c": ("2",), "u": ("3", "4"), "d": ("1",)}
_FIELDS = ("__$start_lsn", "__$seqval", "__$operation", "__$update_mask")
# The reference engine tells untouched values of these types, and of no others.
_PLACEHOLDERS = ("text", "ntext", "image")


@dataclass(frozen=True)
class LogRange:
    """The log of (start, end] of each database, by these capture instances. `switches` are changes of structure.

    `passed` are instances whose last row is in the range, `structures` those of tables, to be told first. Of the
    tables `dropped` nothing is captured any more.
    """

    start: Reading
    end: Reading
    instances: tuple[Instance, ...]
    switches: tuple[Switch, ...] = ()
    passed: tuple[Instance, ...] = ()
    structures: tuple[Described, ...] = ()
    dropped: tuple[TableId, ...] = ()


@dataclass(frozen=True)
class ChangeTable:
    """A change table and how its rows are read. `large` are the places of columns that may come without a value."""

    instance: Instance
    captured: CapturedTable
    described: Described
    statement: str
    large: tuple[tuple[int, int], ...]
    placeholders: Mapping[int, pa.Scalar]


def changes(config: Config, wanted: LogRange) -> Iterator[Chunk]:
    """See Connector.changes. A lost connection is made again. Raises SourceError, DecodeError.

    Rows of a range do not change, so what is read again comes in the same chunks: those that were told are left out.
    """
    told, backoff = 0, Backoff(config)
    while True:
        try:
            for place, chunk in enumerate(_changes(config, wanted)):
                if place == told:
                    told += 1
                    backoff.reset()
                    yield chunk
        except SourceError as error:  # noqa: PERF203  # the loop is the retrying
            if not FAILURES.is_transient(error):
                raise
            backoff.wait(error)
        else:
            return


def _changes(config: Config, wanted: LogRange) -> Iterator[Chunk]:
    if wanted.structures:
        yield Chunk(initial_batches(wanted.structures, dict(wanted.start.lsns), ends=True))
    order = 0
    with FAILURES.translated("the change tables cannot be read"):
        for database, end in wanted.end.lsns:
            start = wanted.start.lsn(database)
            if start < end:
                reader = DatabaseReader(config, database, start, end, order)
                yield from reader.chunks(wanted)
                order = reader.order
    lists = TableFilter.from_config(config)
    dropped = [table for table in wanted.dropped if lists.captures(table)]
    if dropped and config.flag("include.schema.changes") and not config.flag("compat.faults"):
        yield Chunk([dropped_batch(table, order, wanted.end.lsn(table.database)) for table in dropped])
    passed = [_passed(config, each, wanted.end) for each in wanted.passed if lists.captures(each.table)]
    if passed:
        yield Chunk([], controls=notify(config, passed))


class DatabaseReader:
    """Reads the range of one database. `order` is the place of the next event."""

    def __init__(self, config: Config, database: str, start: str, end: str, order: int) -> None:
        self._config, self._database = config, database
        self._filter = TableFilter.from_config(config)
        self._start, self._end, self.order = start, end, order
        self._last: dict[str, Any] = {"change_lsn": None, "commit_lsn": start or None, "event_serial_no": None}
        self._last_ts: int | None = None

    def chunks(self, wanted: LogRange) -> Iterator[Chunk]:
        """The changes, whole transactions at a time."""
        mine = [each for each in wanted.instances if self._is_captured(each)]
        waiting = [each for each in wanted.switches if self._is_captured(each.instance)]
        with ExitStack() as stack:
            connection = stack.enter_context(closing(connect(self._config, "tailrace log", self._database)))
            tables = [found for each in mine if (found := change_table(connection, self._config, each)) is not None]
            if waiting:
                self._remember_from(connection, mine)
            cursors = [self._cursor(stack, connection, table) for table in tables]
            for block in whole_transactions(cursors):
                present = [(table, each) for table, each in zip(tables, block, strict=True) if each is not None]
                yield self._chunk(present, waiting)
        if waiting:
            yield Chunk([self._switched(each, self.order + place) for place, each in enumerate(waiting)])
            self.order += 4

    def _is_captured(self, instance: Instance) -> bool:
        """Whether the tables of this range have the instance's: signals change them while a pipeline runs."""
        return instance.table.database == self._database and self._filter.captures(instance.table)

    def _cursor(self, stack: ExitStack, connection: Connection, table: ChangeTable) -> Iterator[ChangeRows]:
        """The rows of a change table; what one answer holds is read at once, more over a connection of its own."""
        condition = self._condition(table.instance)
        count = int(connection.value(f"SELECT COUNT(*) FROM {table.instance.changes} AS cdc_data {condition}"))
        if not count:
            return iter(())
        statement = f"{table.statement} {condition} {_order(self._config, table)}"
        if count <= _ROWS:
            return iter([_rows(table, connection.rows(statement))])
        own = stack.enter_context(closing(connect(self._config, "tailrace log", self._database)))
        return (_rows(table, block) for block in own.blocks(statement, _ROWS))

    def _condition(self, instance: Instance) -> str:
        lsn = "[cdc_data].[__$start_lsn]"
        parts = [f"{lsn} > {literal_of(self._start)}", f"{lsn} <= {literal_of(self._end)}"]
        parts.append(f"{lsn} >= {literal_of(instance.start)}")
        if instance.stop is not None:
            parts.append(f"{lsn} < {literal_of(instance.stop)}")
        skipped = [kind for op in self._config.names("skipped.operations") for kind in _SKIPPED.get(op, ())]
        if skipped:
            parts.append(f"[cdc_data].[__$operation] NOT IN ({','.join(skipped)})")
        return "WHERE " + " AND ".join(parts)

    def _chunk(self, found: Sequence[tuple[ChangeTable, ChangeRows]], waiting: list[Switch]) -> Chunk:
        known = [paired(rows, str(table.instance.table)) for table, rows in found]
        ordered = in_log_order(known, self.order + 4)
        self.order += 4 * (sum(map(len, ordered)) + 2)
        batches: list[ChangeBatch] = []
        for (table, _), each in zip(found, ordered, strict=True):
            mine = [switch for switch in waiting if switch.instance.table == table.instance.table]
            for switch in mine:
                if len(each) and each.commit[0].as_py() >= switch.instance.start:
                    self._remember(ordered, int(each.order[0]))
                    batches.append(self._switched(switch, int(each.order[0]) - 1))
                    waiting.remove(switch)
            if len(each):
                batches.append(_batch(table, each))
        self._remember(ordered, None)
        marks = [
            mark
            for commit, first, last, ts_us in transactions(ordered)
            for mark in (_mark(first - 2, BEGIN, commit, ts_us), _mark(last + 1, END, commit, ts_us))
        ]
        return Chunk(batches, marks=pa.RecordBatch.from_pylist(marks, schema=MARKS))

    def _remember_from(self, connection: Connection, instances: Sequence[Instance]) -> None:
        """Keep what `source` says of the last change before the range."""
        last = last_change(connection, instances, self._start)
        if last is not None:
            self._last = {"change_lsn": last.change, "commit_lsn": last.commit, "event_serial_no": last.serial}

    def _remember(self, ordered: Sequence[Changes], before: int | None) -> None:
        """Keep what `source` says of the last change before a place."""
        best = -1
        for each in ordered:
            places = np.flatnonzero(each.order < before) if before is not None else np.arange(len(each))
            if len(places) and each.order[places[-1]] > best:
                row = int(places[-1])
                best = int(each.order[row])
                self._last = {
                    "change_lsn": each.change[row].as_py(),
                    "commit_lsn": each.commit[row].as_py(),
                    "event_serial_no": int(each.serial[row]),
                }
                self._last_ts = each.ts_us[row].as_py()

    def _switched(self, switch: Switch, order: int) -> ChangeBatch:
        commit = max(str(self._last["commit_lsn"] or ""), self._start)
        statement = FAULTY_STATEMENT if self._config.flag("compat.faults") else None
        return schema_batch(switch, order, self._last, self._last_ts, commit, statement)


def change_table(connection: Connection, config: Config, instance: Instance) -> ChangeTable | None:
    """How the rows of an instance are read. An instance never changes, so this is asked once in a process."""
    return _described(_Asked(connection, config, (*sorted(config.given.items()), config.tables)), instance)


class _Asked:
    """A connection and a configuration, equal to others of the same properties: for the cache."""

    def __init__(self, connection: Connection, config: Config, key: tuple[Any, ...]) -> None:
        self.connection, self.config, self._key = connection, config, key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=1000)
def _described(asked: _Asked, instance: Instance) -> ChangeTable | None:
    catalog = Catalog(asked.connection, asked.config)
    described = catalog.at(instance)
    if not described.columns:
        raise SourceError(
            f"the capture instance {instance.name} is gone, and its changes with it",
            where=str(instance.table),
            remedy="take a new snapshot of the table by a signal, or begin with a new checkpoint",
        )
    captured = catalog.capture(described)
    if captured is None:
        return None
    has_commands = catalog.has_commands(instance)
    fields = [f"cdc_data.{name(field)}" for field in _FIELDS]
    shift = "DATEPART(TZOFFSET, SYSDATETIMEOFFSET())"
    if asked.config.text("data.query.mode") == "direct":
        mapping = f"{name(instance.table.database)}.cdc.lsn_time_mapping"
        time = f"(SELECT ltm.tran_begin_time FROM {mapping} ltm WHERE ltm.start_lsn = cdc_data.[__$start_lsn])"
    else:
        time = f"{name(instance.table.database)}.sys.fn_cdc_map_lsn_to_time(cdc_data.[__$start_lsn])"
    listed = [
        *fields,
        f"CONVERT(varchar(40), TODATETIMEOFFSET({time}, {shift}), 121)",
        *selected(captured, "cdc_data."),
    ]
    if has_commands:
        listed.append("cdc_data.[__$command_id]")
    statement = f"SELECT {', '.join(listed)} FROM {instance.changes} AS cdc_data"
    ordinals = {column.name: place for place, column in enumerate(described.columns)}
    types = {column.name: column.type for column in described.columns}
    names_of = [types[column.name].name for column in captured.schema.columns]
    large = tuple(
        (place, ordinals[column.name])
        for place, column in enumerate(captured.schema.columns)
        if types[column.name].name in _PLACEHOLDERS
    )
    raw = _placeholder(asked.config)
    shown: dict[int, bytes | str] = {
        place: raw if names_of[place] == "image" else raw.decode(errors="replace") for place, _ in large
    }
    placeholders = {place: captured.types[place].convert(pa.array([value]))[0] for place, value in shown.items()}
    return ChangeTable(instance, captured, described, statement, large, placeholders)


def _placeholder(config: Config) -> bytes:
    text = config.text("unavailable.value.placeholder")
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


def _order(config: Config, table: ChangeTable) -> str:
    command = "cdc_data.[__$command_id] ASC, " if "[__$command_id]" in table.statement else ""
    return f"ORDER BY cdc_data.[__$start_lsn] ASC, {command}cdc_data.[__$seqval] ASC, cdc_data.[__$operation] ASC"


def _rows(table: ChangeTable, found: list[tuple[Any, ...]]) -> ChangeRows:
    columns = list(zip(*found, strict=True))
    shown = len(table.captured.schema.columns)
    return ChangeRows(
        commit=lsn_texts(columns[0]),
        change=lsn_texts(columns[1]),
        kind=np.array(columns[2], np.int64),
        ts_us=moments(pa.array(columns[4], pa.string())),
        images=images(table.captured, columns[5 : 5 + shown], len(found)),
        mask=pa.array(columns[3], pa.binary()),
    )


def _batch(table: ChangeTable, found: Changes) -> ChangeBatch:
    source = pa.StructArray.from_arrays([found.change, found.commit, pa.array(found.serial)], fields=list(SOURCE_TYPE))
    columns = {
        "op": found.op,
        "order": pa.array(found.order),
        "ts_us": found.ts_us,
        "snapshot": pa.nulls(len(found), pa.string()),
        "source": source,
        "before": found.before,
        "after": found.after,
        COMMIT: found.commit,
    }
    if table.large:
        untouched = _untouched(table, found)
        columns["before"] = _with_placeholders(table, found.before, untouched)
        flags = [
            pc.and_(untouched[place], pc.is_null(found.after.field(place)))
            if place in untouched
            else pa.array(np.zeros(len(found), np.bool_))
            for place in range(len(table.captured.schema.columns))
        ]
        names = [column.name for column in table.captured.schema.columns]
        columns["unchanged"] = pa.StructArray.from_arrays(flags, names=names)
    return ChangeBatch(table.captured.schema, pa.RecordBatch.from_pydict(columns))


def _untouched(table: ChangeTable, found: Changes) -> dict[int, pa.Array]:
    """For the place of each large column, which rows are updates that did not touch it."""
    masks, is_update = found.mask.to_pylist(), (found.rows == 2).tolist()
    return {
        place: pa.array(
            [is_one and not _bit(mask, ordinal) for mask, is_one in zip(masks, is_update, strict=True)], pa.bool_()
        )
        for place, ordinal in table.large
    }


def _with_placeholders(table: ChangeTable, before: pa.StructArray, untouched: dict[int, pa.Array]) -> pa.StructArray:
    """Old images, with the placeholder where the change table has no value as the update did not touch it."""
    arrays = before.flatten()
    for place, flags in untouched.items():
        chosen = pc.and_(flags, pc.is_null(arrays[place]))
        arrays[place] = pc.if_else(chosen, table.placeholders[place], arrays[place])
    return pa.StructArray.from_arrays(arrays, fields=list(before.type), mask=before.is_null())


def _bit(mask: bytes, ordinal: int) -> bool:
    """Whether an update mask has a column: bits are counted from the end, as sys.fn_cdc_is_bit_set does."""
    at = len(mask) - 1 - ordinal // 8
    return at < 0 or bool(mask[at] >> (ordinal % 8) & 1)


def _mark(order: int, status: str, id_: str, ts_us: int) -> dict[str, Any]:
    return {"order": order, "status": status, "id": id_, "ts_us": ts_us}


def _passed(config: Config, instance: Instance, end: Reading) -> Notice:
    data = {
        "server": config.text("topic.prefix"),
        "database": instance.table.database,
        "capture_instance": instance.name,
        "start_lsn": instance.start,
        "stop_lsn": instance.stop or "",
        "commit_lsn": end.lsn(instance.table.database),
    }
    return Notice("Capture Instance", "COMPLETED", tuple(data.items()))
