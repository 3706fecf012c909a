"""ExtractChangedRecordState: which columns are listed as changed."""

from __future__ import annotations

import pyarrow as pa

from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tests.unit.events.changes import changes
from tests.unit.transforms.transformed import headers, properties, rows

CHANGED = "io.debezium.transforms.ExtractChangedRecordState"
BITS = ConnectSchema("bytes", True, "io.debezium.data.Bits", 1)
TABLE = TableSchema(
    TableId("golden", "public", "flags"),
    (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("a", BITS, pa.binary()),
        Column("b", BITS, pa.binary()),
    ),
    ("id",),
    ("id", "a", "b"),
)


def test_bit_strings_are_compared_by_value() -> None:
    row = {"id": 1, "a": b"\x01", "b": None}
    given = properties(CHANGED, {"header.changed.name": "changed"})
    (found,) = rows(changes(TABLE, {"op": "u", "before": row, "after": row}), given)
    assert headers(found) == [("changed", [])]
