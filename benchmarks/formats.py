"""Measures the encoding of events in each format, without a database and without a registry:

python benchmarks/formats.py [ROWS] [ROWS_A_TRANSACTION]
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.position import SOURCE, SOURCE_TYPE
from tailrace.events.registry.confluent import ConfluentRegistry
from tailrace.events.registry.registry import Wanted
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.encoder import Encoder

_AVRO = "io.confluent.connect.avro.AvroConverter"
_JSON_SCHEMA = "io.confluent.connect.json.JsonSchemaConverter"
_BASE = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "bench"}
FORMATS = {
    "json": {f"{part}.converter.schemas.enable": "false" for part in ("key", "value")},
    "avro": {f"{part}.converter": _AVRO for part in ("key", "value")}
    | {f"{part}.converter.schema.registry.url": "http://localhost" for part in ("key", "value")},
    "json schema": {f"{part}.converter": _JSON_SCHEMA for part in ("key", "value")}
    | {f"{part}.converter.schema.registry.url": "http://localhost" for part in ("key", "value")},
    "cloud events": {
        "key.converter.schemas.enable": "false",
        "value.converter": "io.debezium.converters.CloudEventsConverter",
        "value.converter.json.schemas.enable": "false",
    },
}
_PIECE, _ROUNDS = 20_000, 6


def one(registry: ConfluentRegistry, wanted: Wanted) -> int:
    """The id of every schema: no registry is asked."""
    return 1


def columns(rows: int) -> dict[str, pa.Array]:
    """A table of 8 columns, a tenth of one null."""
    random = np.random.default_rng(0)

    def text(word: str) -> pa.Array:
        return pc.binary_join_element_wise(word, pa.array(random.integers(0, 10**9, rows)).cast(pa.string()), "-")

    return {
        "id": pa.array(np.arange(rows)),
        "name": text("name"),
        "amount": pa.array(random.integers(-(10**12), 10**12, rows)),
        "rate": pa.array(random.random(rows)),
        "city": pc.if_else(pa.array(random.random(rows) < 0.1), pa.scalar(None, pa.string()), text("city")),
        "count": pa.array(random.integers(0, 200, rows).astype(np.int32)),
        "flag": pa.array(random.random(rows) < 0.5),
        "note": text("note"),
    }


def inserts(rows: int, of_transaction: int) -> ChangeBatch:
    """So many inserts in transactions of that size."""
    types = {pa.int64(): "int64", pa.int32(): "int32", pa.float64(): "double", pa.bool_(): "boolean"}
    given = columns(rows)
    schemas = {name: ConnectSchema(types.get(c.type, "string"), name != "id") for name, c in given.items()}
    described = tuple(Column(name, schemas[name], c.type) for name, c in given.items())
    table = TableSchema(TableId("db", "public", "t"), described, ("id",), ("id",))
    run = np.arange(rows) // of_transaction
    source = {"txId": pa.array(1000 + run), "lsn": pa.array(10**9 + np.arange(rows) * 120)}
    blocks = [source.get(field.name, pa.nulls(rows, field.type)).cast(field.type) for field in SOURCE_TYPE]
    data = {
        "op": pa.repeat(pa.scalar("c"), rows),
        "order": pa.array(np.arange(rows) * 2),
        "ts_us": pa.array(1_795_268_705_393_912 + run * 1000),
        "snapshot": pa.nulls(rows, pa.string()),
        "source": pa.StructArray.from_arrays(blocks, fields=list(SOURCE_TYPE)),
        "before": pa.nulls(rows, table.row_type),
        "after": pa.StructArray.from_arrays(list(given.values()), fields=list(table.row_type)),
        "commit": pa.array(run),
    }
    return ChangeBatch(table, pa.record_batch(data))


def encoded(batch: ChangeBatch, encoder: Encoder) -> tuple[float, int]:
    """CPU-seconds, and bytes of keys and values."""
    began, size = time.process_time(), 0
    for start in range(0, len(batch), _PIECE):
        for rows in encoder.encode_all([batch.slice(start, _PIECE)]):
            size += rows.column("key").nbytes + rows.column("value").nbytes
    return time.process_time() - began, size


def main(rows: int = 300_000, of_transaction: int = 100) -> None:
    """Print a line for each format: the best of some rounds, in which they take turns."""
    ConfluentRegistry.id = one  # type: ignore[assignment,method-assign]
    batch = inserts(rows, of_transaction)
    encoders = {
        name: Encoder(resolve({**_BASE, **properties}), SOURCE, "run", own_times=True)
        for name, properties in FORMATS.items()
    }
    rounds = [{name: encoded(batch, encoder) for name, encoder in encoders.items()} for _ in range(_ROUNDS)]
    for name in encoders:
        seconds, size = min(each[name] for each in rounds)
        print(f"{name}: {rows / seconds:,.0f} rows per CPU-second, {size / rows:.0f} bytes a row")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
