"""Typed Arrow values from Python and numpy; an untyped conversion looks for pandas each time, 0.1 to 0.7 ms a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

LARGEST = 2**31 - 1
"""Bytes that a plain string or binary array may hold."""


def literal(text: str | None) -> pa.Scalar:
    """A string scalar."""
    return pa.scalar(text, pa.string())


def indices(numbers: npt.NDArray[np.integer[Any]], nulls: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """An int64 array, null where `nulls` is true."""
    return pa.array(numbers.astype(np.int64, copy=False), pa.int64(), mask=nulls)


def mask(flags: npt.NDArray[np.bool_]) -> pa.Array:
    """A boolean array."""
    return pa.array(flags, pa.bool_())


def flags(booleans: pa.Array) -> npt.NDArray[np.bool_]:
    """The numpy form of a boolean array without nulls."""
    values: npt.NDArray[np.bool_] = booleans.to_numpy(zero_copy_only=False)
    return values


def repeat(text: str, rows: int) -> pa.Array:
    """The same text so many times."""
    return pa.repeat(literal(text), rows)


def as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in that type, as they are where they have it."""
    return values if values.type == kind else values.cast(kind)


def text_array(values: Sequence[bytes | None]) -> pa.Array:
    """UTF-8 texts as a string array, a large one only if a plain one cannot hold them."""
    return pa.array(values, pa.large_binary()).cast(text_type(sum(len(value or b"") for value in values)))


def text_type(size: int) -> pa.DataType:
    """The type of a string array that holds so many bytes."""
    return pa.string() if size <= LARGEST else pa.large_string()


def join(*parts: str | pa.Array) -> pa.Array:
    """The parts of each row in one text; null where an array among them is null.

    Large when one of them is, or when a plain array might not hold the result.
    """
    arrays = [part for part in parts if not isinstance(part, str)]
    size = len(arrays[0]) * sum(len(part.encode()) for part in parts if isinstance(part, str))
    kind = text_type(size + sum(array.nbytes for array in arrays))
    if any(pa.types.is_large_string(array.type) for array in arrays):
        kind = pa.large_string()
    pieces = [pa.scalar(part, kind) if isinstance(part, str) else as_type(part, kind) for part in parts]
    return pc.binary_join_element_wise(*pieces, pa.scalar("", kind))


def bracketed(lists: pa.Array, texts: pa.Array, left: str, right: str, separator: str = ",") -> pa.Array:
    """The texts of all lists' items, joined within brackets for each list; null where the list is."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = indices(np.concatenate([[0], lengths.cumsum()]))
    texts = as_type(texts, text_type(texts.nbytes + len(texts) * len(separator)))
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, texts), pa.scalar(separator, texts.type))
    return null_where(lists, join(left, joined, right))


def entries_of(maps: pa.MapArray) -> tuple[pa.ListArray, pa.Array, pa.Array]:
    """A column of maps as lists of entries, and the keys and values of all entries."""
    kind = maps.type
    entry = pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])
    lists = maps.cast(pa.list_(entry))
    entries = lists.flatten()
    return lists, entries.field(0), entries.field(1)


def null_where(values: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts, null where the values are."""
    if values.null_count == 0:
        return texts
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, texts.type))
