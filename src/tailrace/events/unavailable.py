"""The placeholder in an event for a large value that the log did not repeat."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterator

import pyarrow as pa

from tailrace.model.schema import ConnectSchema
from tailrace.model.table import TableSchema
from tailrace.model.text.json import dump

# Arrays of INTEGER, DATE and BIGINT have one; of TIMESTAMP and TIME, which are numbers as well, none.
_NUMBERS = (("int32", None), ("int64", None), ("int32", "io.debezium.time.Date"))


def placeholders(table: TableSchema, marks: pa.StructArray | None, text: str) -> Iterator[tuple[int, pa.Array, str]]:
    """The value columns that show a placeholder: place among them, the rows (boolean) that do, and its JSON.

    `marks` is the batch's column `unchanged`. `text` is the placeholder of columns that have none of their own.
    """
    for place, column in enumerate(table.value_columns):
        at = -1 if marks is None else marks.type.get_field_index(column.name)
        if marks is None or at < 0:
            continue
        unchanged = marks.field(at).fill_null(pa.scalar(False, pa.bool_()))
        shown = placeholder_text(column.schema, column.placeholder or text) if unchanged.true_count else None
        if shown is not None:
            yield place, unchanged, shown


def placeholder_text(schema: ConnectSchema, placeholder: str) -> str | None:
    """The JSON of the placeholder (`unavailable.value.placeholder`) in a column, None for a type that has none."""
    raw = bytes.fromhex(placeholder[4:]) if placeholder.startswith("hex:") else placeholder.encode()
    text = raw.decode(errors="replace")
    if schema.type == "string":
        # The text of an object (HSTORE) holds one as well.
        return dump(dump({text: text}) if schema.empty == "{}" else text)
    if schema.type == "bytes" and schema.name is None:
        return _base64(raw)
    if schema.type == "map" and schema.keys is not None and schema.keys.type == "string":
        return dump({text: text})
    return _items(schema.items, raw, text) if schema.type == "array" and schema.items is not None else None


def _items(items: ConnectSchema, raw: bytes, text: str) -> str | None:
    if items.name == "io.debezium.data.Uuid":
        return dump([str(uuid.UUID(bytes=hashlib.md5(raw, usedforsecurity=False).digest(), version=3))])
    if items.type == "string" and items.name in (None, "io.debezium.data.Json"):
        return dump([text])
    if items.type == "bytes" and items.name is None:
        return f"[{_base64(raw)}]"
    # Java's bytes have a sign.
    signed = [octet - 256 if octet > 127 else octet for octet in raw]
    return dump(signed) if (items.type, items.name) in _NUMBERS else None


def _base64(raw: bytes) -> str:
    return dump(base64.b64encode(raw).decode())
