"""Rows of the driver as Arrow columns, without a Python step for each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.sqlserver.statements import name
from tailrace.connectors.value_type import converted

_GROUPS = ((0, 8, 0), (8, 16, 9), (16, 20, 18))
_WIDTH = 22


def selected(table: CapturedTable, prefix: str = "") -> list[str]:
    """The expressions that give the columns of a table in the form that `images` takes; `prefix` is an alias."""
    columns = (f"{prefix}{name(column.name)}" for column in table.schema.columns)
    return [kind.text.format(column) for kind, column in zip(table.types, columns, strict=True)]


def images(table: CapturedTable, columns: Sequence[Sequence[Any]], rows: int) -> pa.StructArray:
    """Row images of columns of the driver's values. Raises DecodeError."""
    found = []
    for column, kind, values in zip(table.schema.columns, table.types, columns, strict=True):
        raw = pa.array(values)
        where = f"{table.schema.id}.{column.name}"
        # A column of nulls alone has no type to convert from.
        typed = pa.nulls(rows, kind.arrow) if pa.types.is_null(raw.type) else converted(raw, kind, where)
        found.append(typed)
    return pa.StructArray.from_arrays(found, fields=list(table.schema.row_type))


def lsn_texts(values: Sequence[bytes]) -> pa.Array:
    """LSNs as texts of three groups of digits."""
    if not values:
        return pa.nulls(0, pa.string())
    digits = np.frombuffer(b"".join(values).hex().encode(), np.uint8).reshape(len(values), 20)
    shown = np.full((len(values), _WIDTH), ord(":"), np.uint8)
    for first, last, place in _GROUPS:
        shown[:, place : place + last - first] = digits[:, first:last]
    offsets = pa.py_buffer(np.arange(0, _WIDTH * len(values) + 1, _WIDTH, dtype=np.int32))
    return pa.StringArray.from_buffers(len(values), offsets, pa.py_buffer(shown.tobytes()))
