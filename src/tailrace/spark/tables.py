"""Typed rows of many tables: a DataFrame for each table of a micro-batch of the shape `arrow`, VARIANT for `event`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column

# Re-exported: the package that has these functions names no module of Spark.
from pyspark.sql import DataFrame as DataFrame
from pyspark.sql.functions import col, lit, parse_json, spark_partition_id, struct
from pyspark.sql.pandas.types import from_arrow_schema

from tailrace.errors import ConfigError
from tailrace.events.shapes import sortable
from tailrace.model.change import COMMIT, TRANSACTION_TYPE, ChangeBatch, from_ipc
from tailrace.model.native import native_rows, native_schema
from tailrace.model.table import TableId
from tailrace.spark.schemas import ARROW_SCHEMA
from tailrace.spark.sessions import few_bytes

_STAMP = pa.timestamp("us", "UTC")
_LAYOUTS = pa.schema([("layout", pa.string()), ("place", pa.int64()), ("sequence", pa.int64())])
_LAYOUTS_DDL = "layout string, place bigint, sequence bigint"

Decoder = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class TableChanges(NamedTuple):
    """The changes of one table in a micro-batch. `key` names the columns of the event key, empty without a key.

    | column of `rows` | type | |
    |---|---|---|
    | `op` | string | `c` `u` `d` `r` `t` |
    | `before`, `after` | struct of the table's columns | native types, as in the shape `table` |
    | `unchanged` | array of string | large columns that the log did not repeat: they are null in `after` |
    | `source` | struct | the connector's own fields, as in the shape `table` |
    | `transaction` | struct | as in the shape `event` |
    | `commit` | string | where the transaction was committed; sorts as the log does; null for rows of a snapshot |
    | `order` | bigint | the last change of a key in the micro-batch has the greatest (`commit`, `order`) |
    | `ts` | timestamp | as in the shape `event` |
    """

    table: TableId
    key: tuple[str, ...]
    rows: DataFrame


def tables(frame: DataFrame) -> Iterator[TableChanges]:
    """The changes of a micro-batch by table, in the order of their names; see `tailrace.tables`."""
    if frame.columns != ARROW_SCHEMA.names:
        raise ConfigError(
            f"rows of the shape arrow are expected, these have the columns {', '.join(frame.columns)}",
            where="tailrace.tables",
            remedy="read the stream with the option shape=arrow, and pass the frame as foreachBatch gets it",
        )
    was_cached = frame.is_cached
    with few_bytes(frame.sparkSession):
        # Each action would read the log again.
        kept = frame if was_cached else frame.persist()
        try:
            placed = kept.withColumn("place", spark_partition_id().cast("bigint"))
            for layout, first, last in _runs(placed):
                node = json.loads(layout)
                schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(node["schema"])))
                id_ = TableId.from_json(node["id"])
                inside = struct("place", "sequence").between(_at(first), _at(last))
                blobs = placed.where((col("table") == id_.unique) & inside).select("bytes")
                yield TableChanges(id_, tuple(node["key"]), blobs.mapInArrow(_decode, from_arrow_schema(schema)))
        finally:
            if not was_cached:
                kept.unpersist()


def variants(frame: DataFrame) -> DataFrame:
    """A frame of the shape `event` with VARIANT columns; see `tailrace.variants`."""
    return frame.withColumns({name: parse_json(name) for name in ("key", "before", "after")})


Place = tuple[int, int]


def _at(place: Place) -> Column:
    return struct(*(lit(part).cast("bigint") for part in place))


def _runs(placed: DataFrame) -> list[tuple[str, Place, Place]]:
    """Layouts of tables with the places of their first and last blob; one per table unless it was altered meanwhile."""
    rows = placed.select("bytes", "place", "sequence").mapInArrow(_layouts, _LAYOUTS_DDL).collect()
    runs: dict[str, list[tuple[str, Place, Place]]] = {}
    for row in sorted(rows, key=lambda row: (row["place"], row["sequence"])):
        place = (row["place"], row["sequence"])
        name = TableId.from_json(json.loads(row["layout"])["id"]).unique
        of_table = runs.setdefault(name, [])
        if of_table and of_table[-1][0] == row["layout"]:
            of_table[-1] = (row["layout"], of_table[-1][1], place)
        else:
            of_table.append((row["layout"], place, place))
    return [run for name in sorted(runs) for run in runs[name]]


def _layouts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        layouts = []
        for blob, place, sequence in zip(*(batch.column(name) for name in batch.schema.names), strict=True):
            changes = _rows_of(blob.as_buffer())
            if changes is not None:
                layouts.append({"layout": _layout(changes), "place": place.as_py(), "sequence": sequence.as_py()})
        yield pa.RecordBatch.from_pylist(layouts, _LAYOUTS)


def _rows_of(blob: pa.Buffer) -> ChangeBatch | None:
    """The changes of rows in a blob; None for schema changes, messages, control records and empty tables."""
    batch = from_ipc(blob)
    is_rows = isinstance(batch, ChangeBatch) and batch.schema_change is None and not batch.table.id.is_message
    return batch if isinstance(batch, ChangeBatch) and is_rows and len(batch) else None


def _layout(batch: ChangeBatch) -> str:
    schema = base64.b64encode(_schema(batch).serialize().to_pybytes()).decode()
    return json.dumps({"id": batch.table.id.to_json(), "key": list(batch.table.key), "schema": schema})


def _schema(batch: ChangeBatch) -> pa.Schema:
    row = pa.struct(list(native_schema(batch.table)))
    return pa.schema(
        [
            ("op", pa.string()),
            ("before", row),
            ("after", row),
            ("unchanged", pa.list_(pa.string())),
            ("source", batch.rows.schema.field("source").type),
            ("transaction", TRANSACTION_TYPE),
            ("commit", pa.string()),
            ("order", pa.int64()),
            ("ts", _STAMP),
        ]
    )


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column("bytes"):
            changes = _rows_of(blob.as_buffer())
            if changes is not None:
                yield _typed(changes)


def _typed(batch: ChangeBatch) -> pa.RecordBatch:
    rows, count = batch.rows, len(batch)
    transaction, commit = batch.column("transaction"), batch.column(COMMIT)
    columns = [
        rows.column("op"),
        native_rows(batch.table, rows.column("before")),
        native_rows(batch.table, rows.column("after")),
        _names(batch.column("unchanged"), count),
        rows.column("source"),
        pa.nulls(count, TRANSACTION_TYPE) if transaction is None else transaction,
        pa.nulls(count, pa.string()) if commit is None or batch.read is not None else sortable(commit),
        rows.column("order"),
        rows.column("ts_us").cast(_STAMP),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_schema(batch))


def _names(marks: pa.StructArray | None, count: int) -> pa.Array:
    """For each row the names of the columns that are marked."""
    if marks is None:
        empty = pa.array(np.zeros(count + 1, np.int32))
        return pa.ListArray.from_arrays(empty, pa.array([], pa.string()))
    columns = [marks.field(place).fill_null(False).to_numpy(zero_copy_only=False) for place in range(len(marks.type))]
    marked = np.column_stack(columns).astype(bool)
    names = pa.array(marks.type.names, pa.string()).take(pa.array(np.nonzero(marked)[1]))
    return pa.ListArray.from_arrays(pa.array(np.r_[0, marked.sum(axis=1).cumsum()], pa.int32()), names)
