"""Rows and changes of the folder as ChangeBatches, and its tables as filters, keys, masks and converters make them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.base import Chunk
from tailrace.connectors.column_info import ColumnInfo, SourceType
from tailrace.connectors.columns import CapturedTable, ColumnRules
from tailrace.connectors.value_type import cast_type, converted, text_type
from tailrace.model.change import COMMIT, READ, ChangeBatch, SnapshotRead
from tailrace.model.marks import BEGIN, END, MARKS
from tailrace.model.schema import STRING, Field
from tailrace.model.source import SourceBlock
from tailrace.model.table import TableId
from tailrace_folder.log import Content, Line, Log, Row, apply, table_of

SOURCE_TYPE = pa.struct([("place", pa.string())])
FIELDS, PLACE = tuple(Field(name, STRING) for name in ("schema", "table", "place")), ("place",)
SOURCE = SourceBlock("folder", "io.debezium.connector.folder.Source", FIELDS, transaction_id=PLACE, position=PLACE)
TYPES = {"int": (pa.int64(), cast_type("int64", pa.int64(), 0)), "text": (pa.string(), text_type(zero=""))}
MEMBERS = {"op": pa.string(), "order": pa.int64(), "ts_us": pa.int64(), "snapshot": pa.string(), "place": pa.string()}
# A key change is two events, so every other number is left free.
ORDER_STEP = 2


@dataclass
class Table:
    """A captured table of the folder: as its events show it, and its rows as they are, or its changes."""

    captured: CapturedTable
    columns: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    def images(self, rows: Sequence[Row | None]) -> pa.StructArray:
        """Row images; None where there is no row."""
        columns = []
        for column, kind in zip(self.captured.schema.columns, self.captured.types, strict=True):
            values = pa.array([row and row.get(column.name) for row in rows], TYPES[self.columns[column.name]][0])
            columns.append(converted(values, kind, f"{self.captured.schema.id}.{column.name}"))
        absent = pa.array([row is None for row in rows], pa.bool_())
        return pa.StructArray.from_arrays(columns, fields=list(self.captured.schema.row_type), mask=absent)


def table(config: Config, id_: TableId, content: Content) -> Table | None:
    """A table, with the rows of its content; None if none of its columns is captured."""
    columns = [
        ColumnInfo(
            name=name,
            type=SourceType(name=kind, printed=kind, reported=kind, length=0, scale=0, is_character=kind == "text"),
            value=TYPES[kind][1],
            required=name in content.key,
        )
        for name, kind in content.columns.items()
    ]
    captured = ColumnRules(config).captured(id_, columns, content.key, [*content.columns])
    return captured and Table(captured, dict(content.columns), content.rows)


def tables(config: Config, contents: dict[TableId, Content], *, first: bool = False) -> list[Table]:
    """The captured ones of the folder's tables, in snapshot order; with `first` those that the first snapshot reads."""
    filters = TableFilter.from_config(config)
    named = filters.order(filter(filters.snapshots if first else filters.captures, contents))
    return [found for id_ in named if (found := table(config, id_, contents[id_])) is not None]


def snapshot(table: Table, at: Line, read: SnapshotRead) -> Chunk:
    """All rows of a table."""
    shared = {"op": READ, "ts_us": time.time_ns() // 1000, "snapshot": "true", "place": at.to_text()}
    found = [{**shared, "order": order, "after": row} for order, row in zip(count(0, ORDER_STEP), table.rows)]
    return Chunk([_batch(replace(table, rows=found), read)])


def _batch(table: Table, read: SnapshotRead | None = None) -> ChangeBatch:
    """Changes of one table under one description, or its rows."""
    columns = {name: pa.array([row.get(name) for row in table.rows], kind) for name, kind in MEMBERS.items()}
    place = columns.pop("place")
    columns["source"] = pa.StructArray.from_arrays([place], fields=list(SOURCE_TYPE))
    columns |= {name: table.images([row.get(name) for row in table.rows]) for name in ("before", "after")}
    columns |= {} if read else {COMMIT: place}
    return ChangeBatch(table.captured.schema, pa.record_batch(columns), read)


def changes(config: Config, start: Line, end: Line) -> Chunk:
    """The changes of (start, end], with the marks of their transactions."""
    log = Log.of(config)
    contents, filters = log.tables(start), TableFilter.from_config(config)
    current: dict[TableId, Table | None] = {}
    done, marks, number = [], [], count(0, ORDER_STEP)
    for line, transaction, _ in log.lines(start, end):
        at = {"ts_us": transaction["ts_us"], "place": line.to_text()}
        mark = {"id": at["place"], "ts_us": at["ts_us"]}
        marks.append({"order": next(number), "status": BEGIN, **mark})
        for change in transaction["changes"]:
            id_ = table_of(change)
            apply(contents, change)
            if change["op"] == "s":
                current.pop(id_, None)
            elif filters.captures(id_):
                if id_ not in current:
                    current[id_] = found = table(config, id_, Content(dict(contents[id_].columns), contents[id_].key))
                    done += [found] if found else []
                kept = current[id_]
                if kept is not None:
                    kept.rows.append({**change, "order": next(number), **at})
        marks.append({"order": next(number), "status": END, **mark})
    return Chunk([_batch(each) for each in done if each.rows], marks=pa.RecordBatch.from_pylist(marks, schema=MARKS))
