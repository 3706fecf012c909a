"""How long encoding takes: change batches of eight columns into rows of each shape, without a server or Spark.

python benchmarks/events.py [ROWS]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.position import SOURCE, SOURCE_TYPE
from tailrace.events.record import RecordEncoder
from tailrace.events.shapes import EventShaper
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema

BATCH_ROWS = 1 << 16
TRANSACTION_ROWS = 100
REPETITIONS = 3

_DECIMAL = (("scale", "2"), ("connect.decimal.precision", "12"))
COLUMNS = (
    Column("id", ConnectSchema("int64"), pa.int64()),
    Column("customer", ConnectSchema("int32"), pa.int32()),
    Column("title", ConnectSchema("string"), pa.string()),
    Column(
        "price",
        ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal", version=1, parameters=_DECIMAL),
        pa.decimal128(12, 2),
    ),
    Column("placed", ConnectSchema("int64", name="io.debezium.time.MicroTimestamp", version=1), pa.int64()),
    Column("paid", ConnectSchema("boolean"), pa.bool_()),
    Column("weight", ConnectSchema("double"), pa.float64()),
    Column("note", ConnectSchema("string", optional=True), pa.string()),
)
TABLE = TableSchema(TableId("bench", "public", "orders"), COLUMNS, key=("id",), identity=("id",))


def batch(first: int) -> ChangeBatch:
    """BATCH_ROWS inserts, like those of `make bench`."""
    ids = np.arange(first, first + BATCH_ROWS)
    texts = pc.cast(pa.array(ids), pa.string())
    note = pc.if_else(pa.array(ids % 4 > 0), "A note of medium length", pa.scalar(None, pa.string()))
    images = [
        pa.array(ids),
        pa.array((ids % 50_000).astype(np.int32)),
        pc.binary_join_element_wise("Order number ", texts, ""),
        pc.cast(pa.array(np.round(ids * 0.37, 2)), pa.decimal128(12, 2), safe=False),
        pa.array(ids * 1_000_000),
        pa.array(ids % 3 == 0),
        pa.array(ids / 7.0),
        note,
    ]
    transactions = ids // TRANSACTION_ROWS
    nothing = pa.nulls(BATCH_ROWS, pa.int64())
    lsn, last = pa.array(ids * 150), pa.array(transactions * 150 * TRANSACTION_ROWS)
    source = [pa.array(transactions), lsn, nothing, pa.nulls(BATCH_ROWS, pa.string()), nothing, last]
    columns = {
        "op": pa.array(["c"] * BATCH_ROWS),
        "order": pa.array(np.arange(BATCH_ROWS) * 2),
        "ts_us": pa.array(transactions),
        "snapshot": pa.nulls(BATCH_ROWS, pa.string()),
        "source": pa.StructArray.from_arrays(source, fields=list(SOURCE_TYPE)),
        "before": pa.nulls(BATCH_ROWS, TABLE.row_type),
        "after": pa.StructArray.from_arrays(images, fields=list(TABLE.row_type)),
    }
    return ChangeBatch(TABLE, pa.RecordBatch.from_pydict(columns))


def encoders() -> Iterator[tuple[str, Callable[[ChangeBatch], Iterator[pa.RecordBatch]]]]:
    """What is measured, by name."""
    needed = {f"database.{name}": "x" for name in ("hostname", "user", "dbname")} | {"topic.prefix": "bench"}
    bare = needed | {f"{side}.converter.schemas.enable": "false" for side in ("key", "value")}
    yield "kafka, without schemas", RecordEncoder(resolve(bare), SOURCE, "run").encode
    yield "kafka, with schemas", RecordEncoder(resolve(needed), SOURCE, "run").encode
    yield "event", EventShaper(resolve(bare), SOURCE).encode


def main() -> None:
    """Prints microseconds a row, the median of some repetitions, and bytes a row."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    batches = [batch(first) for first in range(0, rows, BATCH_ROWS)]
    count = len(batches) * BATCH_ROWS
    for name, encode in encoders():
        taken, size = [], 0
        for _ in range(REPETITIONS):
            begin = time.process_time()
            encoded = [(records.num_rows, records.nbytes) for changes in batches for records in encode(changes)]
            taken.append(time.process_time() - begin)
            size = sum(octets for _, octets in encoded)
            assert sum(number for number, _ in encoded) == count
        print(f"{name:<24} {statistics.median(taken) / count * 1e6:6.2f} µs CPU a row, {size / count:,.0f} bytes a row")


if __name__ == "__main__":
    main()
