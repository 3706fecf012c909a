"""Maps rows to numbers: equal rows get equal codes, whatever the types of their columns, without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]


def row_codes(columns: Sequence[pa.Array], length: int) -> Codes:
    """A code for each row of some columns; null equals null, NaN equals NaN, and -0.0 equals 0.0."""
    codes = np.zeros(length, np.int64)
    for column in columns:
        codes = _paired(codes, value_codes(column))
    return codes


def value_codes(values: pa.Array) -> Codes:
    """A code for each value of an array of any type, nested ones included."""
    kind = values.type
    if pa.types.is_floating(kind):
        values = canonical(values)
    if pa.types.is_struct(kind):
        inner = row_codes(values.flatten(), len(values))
        return _paired(inner, values.is_null().to_numpy(zero_copy_only=False).astype(np.int64))
    if pa.types.is_map(kind):
        values = values.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    elif pa.types.is_fixed_size_list(kind):
        values = values.cast(pa.list_(kind.value_type))
    if pa.types.is_list(values.type):
        values = _packed(values)
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def canonical(values: pa.Array) -> pa.Array:
    """Values of which equal ones are identical: each float that is no number is the same, and -0.0 is 0.0.

    Engines compare floats by value, and those within lists and structs by their bits.
    """
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = pc.add(values, pa.scalar(0.0, kind))
        return pc.if_else(pc.is_nan(numbers), pa.scalar(float("nan"), kind), numbers)
    if pa.types.is_struct(kind) and len(kind):
        fields = [canonical(each) for each in values.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=values.is_null())
    if pa.types.is_list(kind):
        whole = values.take(pa.array(np.arange(len(values)))) if values.offset else values  # a mask and a slice exclude
        return pa.ListArray.from_arrays(whole.offsets, canonical(whole.values), type=kind, mask=whole.is_null())
    return values


def _packed(lists: pa.ListArray) -> pa.Array:
    """Each list as the bytes of its items' codes: equal lists, equal bytes."""
    items = value_codes(lists.flatten())
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]) * items.itemsize
    data = pa.Array.from_buffers(
        pa.large_binary(), len(lists), [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(items.tobytes())]
    )
    return pc.if_else(lists.is_valid(), data, pa.scalar(None, pa.large_binary()))


def _paired(left: Codes, right: Codes) -> Codes:
    """One code for two; made dense each time, so that the product never overflows."""
    if not len(left):
        return left
    codes: Codes = np.unique(left * (int(right.max()) + 1) + right, return_inverse=True)[1].astype(np.int64)
    return codes
