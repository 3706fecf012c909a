"""Rows and changes of the folder as Arrow columns: its tables whole, and ChangeBatches of a range of the log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.base import Chunk
from tailrace.connectors.column_info import ColumnInfo, SourceType
from tailrace.connectors.value_type import cast_type, text_type
from tailrace.connectors.whole_tables.snapshots import ORDER_STEP
from tailrace.connectors.whole_tables.tables import CapturedRows, WholeTable, captured_rows
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.marks import BEGIN, END, MARKS
from tailrace.model.schema import STRING, Field
from tailrace.model.source import SourceBlock
from tailrace.model.table import TableId
from tailrace_folder.log import Content, Line, Log, Row, apply, table_of

SOURCE_TYPE = pa.struct([("place", pa.string())])
FIELDS, PLACE = tuple(Field(name, STRING) for name in ("schema", "table", "place")), ("place",)
SOURCE = SourceBlock("folder", "io.debezium.connector.folder.Source", FIELDS, transaction_id=PLACE, position=PLACE)
TYPES = {"int": (pa.int64(), cast_type("int64", pa.int64(), 0)), "text": (pa.string(), text_type(zero=""))}
MEMBERS = {"op": pa.string(), "order": pa.int64(), "ts_us": pa.int64(), "snapshot": pa.string()}


def whole(content: Content) -> WholeTable:
    """A table with the rows of its content."""
    columns = []
    for name, kind in content.columns.items():
        type_ = SourceType(name=kind, printed=kind, reported=kind, length=0, scale=0, is_character=kind == "text")
        columns.append(ColumnInfo(name=name, type=type_, value=TYPES[kind][1], required=name in content.key))
    return WholeTable(tuple(columns), content.key, columns_of(content.rows, content.columns))


def columns_of(rows: Sequence[Row], columns: dict[str, str]) -> pa.Table:
    """Rows as columns: names to types, in order."""
    return pa.table({name: pa.array([row.get(name) for row in rows], TYPES[kind][0]) for name, kind in columns.items()})


def changes(config: Config, start: Line, end: Line) -> Chunk:
    """The changes of (start, end], with the marks of their transactions."""
    log, filters, number = Log.of(config), TableFilter.from_config(config), count(0, ORDER_STEP)
    contents = log.tables(start)
    # By table, what it looks like and what happened to it; a table that was described anew has another entry.
    current: dict[TableId, tuple[CapturedRows | None, dict[str, str], list[Row]]] = {}
    done, marks = [], []
    for line, transaction, _ in log.lines(start, end):
        mark = {"id": line.to_text(), "ts_us": transaction["ts_us"]}
        marks.append({"order": next(number), "status": BEGIN, **mark})
        for change in transaction["changes"]:
            id_ = table_of(change)
            apply(contents, change)
            if change["op"] == "s":
                current.pop(id_, None)
            elif filters.captures(id_):
                if id_ not in current:
                    table, columns = whole(contents[id_]), dict(contents[id_].columns)
                    current[id_] = (captured_rows(config, id_, table), columns, [])
                    done.append(current[id_])
                place = {"order": next(number), "ts_us": transaction["ts_us"], "place": line.to_text()}
                current[id_][2].append({**change, **place})
        marks.append({"order": next(number), "status": END, **mark})
    batches = [_batch(table, columns, rows) for table, columns, rows in done if table is not None and rows]
    return Chunk(batches, marks=pa.RecordBatch.from_pylist(marks, schema=MARKS))


def _batch(table: CapturedRows, columns: dict[str, str], rows: list[Row]) -> ChangeBatch:
    """Changes of one table under one description."""
    members: dict[str, Any] = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in MEMBERS.items()}
    members[COMMIT] = pa.array([row["place"] for row in rows])
    members["source"] = pa.StructArray.from_arrays([members[COMMIT]], fields=list(SOURCE_TYPE))
    for name in ("before", "after"):
        images = [row.get(name) for row in rows]
        absent = pa.array([image is None for image in images])
        members[name] = table.images(columns_of([image or {} for image in images], columns), absent)
    return ChangeBatch(table.schema, pa.record_batch(members))
