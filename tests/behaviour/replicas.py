"""A replica under test: its tables, the changes that a micro-batch brings, and the rows that the replica has then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tailrace.model.change import COMMIT, ChangeBatch, ControlBatch, SnapshotRead
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica.sink import ReplicaSink, TableReport, read_table
from tailrace.spark.schemas import ARROW_SCHEMA
from tailrace.spark.shapes import Blobs
from tests.behaviour.engines import BY_SPARK, ENGINE, place

# Delta for Spark takes no space in a name; delta-rs does.
LINE = "line`no" if ENGINE == "spark" else "line no"
ORDERS = TableSchema(
    TableId("shop", "public", "orders"),
    (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column(LINE, ConnectSchema("string"), pa.string()),
        Column("note", ConnectSchema("string", True), pa.string()),
        Column(
            "Total`s", ConnectSchema("bytes", True, "org.apache.kafka.connect.data.Decimal", 1), pa.decimal128(9, 2)
        ),
        Column("at", ConnectSchema("int64", True, "io.debezium.time.MicroTimestamp", 1), pa.int64()),
        Column("tags", ConnectSchema("array", True), pa.list_(pa.string())),
    ),
    ("id", LINE),
    ("id", LINE),
)
EVENTS = TableSchema(
    TableId("shop", "public", "events"),
    (
        Column("kind", ConnectSchema("string", True), pa.string()),
        Column("score", ConnectSchema("double", True), pa.float64()),
        Column("path", ConnectSchema("array", True), pa.list_(pa.int32())),
        Column("more", ConnectSchema("map", True), pa.map_(pa.string(), pa.string())),
    ),
    (),
    ("kind", "score", "path", "more"),
)

Row = dict[str, Any]
Write = Callable[..., dict[str, TableReport]]


class Replica:
    """A sink with its session: batches in, rows out."""

    def __init__(self, session: SparkSession, root: Path) -> None:
        # Of its own, as each replica of Iceberg tables has another catalog.
        self.session = session.newSession() if BY_SPARK else session
        self.root, self.options = place(root)
        engine: Any = "spark" if BY_SPARK else "deltalake"
        self.sink = ReplicaSink(self.root, f"query-{uuid4()}", engine, self.options)

    def write(self, batch_id: int, *batches: ChangeBatch | ControlBatch, splits: int = 1) -> dict[str, TableReport]:
        """The batches as one micro-batch of one transaction, dealt out to source partitions one after another."""
        blobs = Blobs()
        placed = [placed_in(batch, batch_id) if isinstance(batch, ChangeBatch) else batch for batch in batches]
        rows = [tuple(row.values()) for batch in placed for part in blobs.rows(batch) for row in part.to_pylist()]
        kind: StructType = from_arrow_schema(ARROW_SCHEMA)
        dealt = self.session.sparkContext.parallelize(rows, splits)
        return self.sink.write(self.session.createDataFrame(dealt, kind), batch_id)

    def rows(self, table: TableSchema = ORDERS) -> list[Row]:
        """What the target holds, in a stable order."""
        return sorted(read_table(self.root, str(table.id), self.options).to_pylist(), key=repr)

    def notes(self) -> dict[tuple[int, str], str | None]:
        """The orders' notes by key."""
        return {(row["id"], row[LINE]): row["note"] for row in self.rows()}


def order(id: int, note: Any = "n", line: str = "a", **more: Any) -> Row:
    return {"id": id, LINE: line, "note": note, "Total`s": None, "at": None, "tags": None, **more}


def key(id: int, line: str = "a") -> Row:
    return {"id": id, LINE: line}


def changes(table: TableSchema, *rows: Row, lsn: int = 1, snapshot: str | None = None) -> ChangeBatch:
    """A batch from `op`, `before`, `after`, and where needed `other_key` and `unchanged` (names)."""
    names = table.row_type.names
    columns = {
        "op": pa.array([row["op"] for row in rows], pa.string()),
        "order": pa.array(range(len(rows)), pa.int64()),
        "ts_us": pa.array([0] * len(rows), pa.int64()),
        "snapshot": pa.array([snapshot] * len(rows), pa.string()),
        "source": pa.array([{"lsn": lsn}] * len(rows), pa.struct([("lsn", pa.int64())])),
        "before": pa.array([row.get("before") for row in rows], table.row_type),
        "after": pa.array([row.get("after") for row in rows], table.row_type),
    }
    if any("other_key" in row for row in rows):
        key_type = pa.struct([table.row_type.field(name) for name in table.key])
        columns["other_key"] = pa.array([row.get("other_key") for row in rows], key_type)
    if any("unchanged" in row for row in rows):
        masks = [{name: name in row.get("unchanged", ()) for name in names} for row in rows]
        columns["unchanged"] = pa.array(masks, pa.struct([(name, pa.bool_()) for name in names]))
    return ChangeBatch(table, pa.RecordBatch.from_pydict(columns))


def placed_in(batch: ChangeBatch, number: int) -> ChangeBatch:
    """A batch as a micro-batch brings it: read by that one, or committed in its range of the log."""
    if batch.read is not None:
        return replace(batch, read=replace(batch.read, id=f"batch {number}"))
    commits = pa.array([1000 * (number + 1)] * len(batch), pa.int64())
    return batch.with_rows(batch.rows.append_column(COMMIT, commits))


def created(*rows: Row, table: TableSchema = ORDERS) -> ChangeBatch:
    return changes(table, *({"op": "c", "after": row} for row in rows))


def read(lsn: int, *rows: Row, table: TableSchema = ORDERS, marker: str = "true") -> ChangeBatch:
    rows_read = changes(table, *({"op": "r", "after": row} for row in rows), lsn=lsn, snapshot=marker)
    whole = marker != "incremental"
    return replace(rows_read, read=SnapshotRead("", str(lsn) if whole else None, lsn if whole else None))


def event(kind: str | None, score: float | None = None, path: list[int] | None = None, more: Any = None) -> Row:
    return {"kind": kind, "score": score, "path": path, "more": more}


def retyped(column: Column) -> TableSchema:
    return replace(EVENTS, columns=(column, *EVENTS.columns[1:]))
