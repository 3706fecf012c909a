"""Small change batches built by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tailrace.connectors.postgres.position import SOURCE, SOURCE_TYPE
from tailrace.events.record import RecordEncoder
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tests.unit.events.event_recordings import config

COLUMNS = (
    Column("id", ConnectSchema("int32", default=0), pa.int32()),
    Column("code", ConnectSchema("string"), pa.string()),
    Column("note", ConnectSchema("string", optional=True), pa.string()),
)
_TEXT = ConnectSchema("string", optional=True)
OUTBOX = TableSchema(
    TableId("golden", "public", "outbox"),
    (
        Column("id", ConnectSchema("string"), pa.string()),
        *(Column(name, _TEXT, pa.string()) for name in ("aggregatetype", "aggregateid", "type", "payload")),
    ),
    ("id",),
    ("id",),
)
BARE = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}


def table(name: str = "things", key: tuple[str, ...] = ("id",), identity: tuple[str, ...] = ("id",)) -> TableSchema:
    """A table of three columns: id, code (required) and note (optional)."""
    return TableSchema(TableId("golden", "public", name), COLUMNS, key, identity)


def changes(of: TableSchema, *rows: dict[str, Any], **columns: pa.Array) -> ChangeBatch:
    """Changes of `op` and images; what is not given is null, orders are 0, 2, 4, ..."""
    data = {
        "op": pa.array([row["op"] for row in rows], pa.string()),
        "order": pa.array([row.get("order", 2 * at) for at, row in enumerate(rows)], pa.int64()),
        "ts_us": pa.array([row.get("ts_us", 1_795_268_705_393_912) for row in rows], pa.int64()),
        "snapshot": pa.array([row.get("snapshot") for row in rows], pa.string()),
        "source": pa.array([{"txId": 7, "lsn": 100 + at} for at in range(len(rows))], SOURCE_TYPE),
        "before": pa.array([row.get("before") for row in rows], of.row_type),
        "after": pa.array([row.get("after") for row in rows], of.row_type),
        "commit": pa.array([7] * len(rows), pa.int64()),
    }
    return ChangeBatch(of, pa.record_batch({**data, **columns}))


def batch(ops: str, orders: list[int] | None = None, table: str = "things") -> ChangeBatch:
    """A change for each letter, of rows with both images."""
    places = orders or list(range(0, 2 * len(ops), 2))
    image = {"id": 1, "code": "a", "note": None}
    rows = [{"op": op, "order": at, "before": image, "after": image} for op, at in zip(ops, places, strict=True)]
    return changes(_table(table), *rows)


_table = table


def encoded(of: ChangeBatch, **properties: str) -> list[dict[str, Any]]:
    """The batch's records, without schemas and context headers; properties are written with `_` for `.`."""
    names = {"key_converter_schemas_enable": "false", "value_converter_schemas_enable": "false"}
    encoder = RecordEncoder(config(**{**names, "extended_headers_enabled": "false", **properties}), SOURCE, "run")
    return [row for records in encoder.encode(of) for row in records.to_pylist()]
