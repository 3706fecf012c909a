"""Completes the old images of a table without a key, whose large values the log may not have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import DELETE, UPDATE
from tailrace.model.table import UNTOUCHED, TableSchema


def with_old_values(
    table: TableSchema, op: pa.Array, before: pa.StructArray, after: pa.StructArray
) -> tuple[pa.StructArray, str | None]:
    """Old images with the values that an update left as they were: new images show them.

    Besides, why rows that are taken away may not be found: the log has neither of the two. Images are in native types.
    """
    columns, names = before.flatten(), []
    is_update, unknown = _is(op, UPDATE), np.zeros(len(op), np.bool_)
    for column in table.columns:
        if column.old_lacks is None:
            continue
        place = before.type.get_field_index(column.name)
        old, new = columns[place], pc.struct_field(after, place)
        left = is_update & _are(old, column.placeholder)
        columns[place] = pc.if_else(pa.array(left), new, old)
        lacks = ~left & np.asarray(old.is_null(), bool) & _is(op, UPDATE, DELETE)
        if column.old_lacks == UNTOUCHED:
            # A value that was left has the placeholder; without one it is null, as is a value that was null.
            lacks &= is_update & np.asarray(new.is_valid(), bool) & (column.placeholder is None)
        unknown |= lacks
        names += [column.name] if lacks.any() else []
    whole = pa.StructArray.from_arrays(columns, fields=list(before.type), mask=before.is_null())
    if not names:
        return whole, None
    what = "rows of a table without a key were changed, and the log does not have their old values of"
    return whole, f"{int(unknown.sum()):,} {what} {', '.join(names)}"


def _is(op: pa.Array, *ops: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_in(op, pa.array(ops)), bool)


def _are(values: pa.Array, placeholder: str | None) -> npt.NDArray[np.bool_]:
    """Which values are the placeholder, `hex:` and its bytes."""
    if placeholder is None:
        return np.zeros(len(values), np.bool_)
    octets = bytes.fromhex(placeholder.removeprefix("hex:"))
    wanted = octets if pa.types.is_binary(values.type) else octets.decode(errors="replace")
    return np.asarray(pc.fill_null(pc.equal(values, pa.scalar(wanted, values.type)), False), bool)
