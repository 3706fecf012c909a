"""A snapshot that starts again under the same batch number replaces the rows of the attempt before it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tailrace.model.change import READ, ChangeBatch, SnapshotRead
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import contents
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.parts import parts
from tailrace.sinks.replica.target import read_table

ORDERS = TableSchema(
    TableId("shop", "public", "orders"), (Column("id", ConnectSchema("int32"), pa.int32()),), ("id",), ("id",)
)


def snapshot(ids: Sequence[int], lsn: int) -> ChangeBatch:
    """What a snapshot at that position reads of the table; no rows are said to be none."""
    rows = [
        {"op": READ, "order": n, "ts_us": 0, "snapshot": "true", "source": {"lsn": lsn}, "after": {"id": key}}
        for n, key in enumerate(ids)
    ]
    schema = pa.schema(
        [
            ("op", pa.string()),
            ("order", pa.int64()),
            ("ts_us", pa.int64()),
            ("snapshot", pa.string()),
            ("source", pa.struct([("lsn", pa.int64())])),
            ("before", ORDERS.row_type),
            ("after", ORDERS.row_type),
        ]
    )
    return ChangeBatch(ORDERS, pa.RecordBatch.from_pylist(rows, schema), SnapshotRead(f"read at {lsn}", str(lsn), lsn))


def write(root: Path, batch: ChangeBatch, *, most_rows: int = 500_000) -> list[int]:
    """Write it as micro-batch 0, in parts of at most so many rows; what the replica holds then."""
    micro = MicroBatch(str(root), "query", 0)
    blobs = [pa.py_buffer(batch.slice(n, most_rows).to_ipc()) for n in range(0, len(batch), most_rows)]
    for part in parts(blobs or [pa.py_buffer(batch.to_ipc())], most_rows):
        contents.write(micro, "public.orders", part)
    ids: list[int] = read_table(str(root), "public.orders").column("id").to_pylist()
    return sorted(ids)


def test_the_second_attempt_replaces_the_first(tmp_path: Path) -> None:
    assert write(tmp_path, snapshot([1, 2], 10)) == [1, 2]
    assert write(tmp_path, snapshot([2, 3], 20)) == [2, 3]


def test_parts_of_one_attempt_add_up_and_are_written_once(tmp_path: Path) -> None:
    assert write(tmp_path, snapshot([1, 2, 3, 4, 5], 10), most_rows=2) == [1, 2, 3, 4, 5]
    assert write(tmp_path, snapshot([1, 2, 3, 4, 5], 10), most_rows=2) == [1, 2, 3, 4, 5]
    assert write(tmp_path, snapshot([4, 5, 6], 20), most_rows=2) == [4, 5, 6]


def test_a_table_found_empty_is_emptied(tmp_path: Path) -> None:
    assert write(tmp_path, snapshot([], 10)) == []
    assert write(tmp_path, snapshot([1, 2], 20)) == [1, 2]
    assert write(tmp_path, snapshot([], 30)) == []
