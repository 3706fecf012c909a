"""Typed Arrow values from Python and numpy; an untyped conversion looks for pandas each time, 0.1 to 0.7 ms a call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Octets = npt.NDArray[np.uint8]

LARGEST = 2**31 - 1
"""Bytes that a plain string or binary array may hold."""

_FEW_ROWS = 1 << 12  # guessed
_KEPT = 1 << 24  # glibc does not count blocks of 32 MiB and more
_SHORT = 128  # bytes of a row that are copied as one item


def keep_memory() -> None:
    """Let malloc keep the memory of columns that are freed.

    glibc keeps up to twice the largest block that it mapped and got back; the rest goes to the system, and every page
    of the next column is a fault. Measured with batches of 20,000 rows: 1,450 faults a batch, 0.17 µs a row of Avro.
    """
    np.empty(_KEPT, np.uint8)


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


def kept_repeat(text: str, rows: int) -> pa.Array:
    """The same text so many times, as a slice of an array that is kept: for the few texts that come in every batch."""
    return _repeated(text, max(_FEW_ROWS, 1 << (rows - 1).bit_length())).slice(0, rows)


@lru_cache(maxsize=64)
def _repeated(text: str, rows: int) -> pa.Array:
    return repeat(text, rows)


def is_constant(texts: pa.Array) -> bool:
    """Whether texts or bytes without nulls are all equal: compared as one block of memory, a nanosecond a row."""
    matrix = matrix_of(texts)
    return matrix is not None and are_equal(matrix)


def are_equal(matrix: Octets) -> bool:
    """Whether all rows of a matrix are equal; it has one at least."""
    data, size = matrix.ravel(), matrix.shape[1]
    return bool((matrix[0] == matrix[-1]).all() and (data[size:] == data[: len(data) - size]).all())


def matrix_of(texts: pa.Array) -> Octets | None:
    """The memory of texts or bytes without nulls as a matrix, a row each; None if they are not of one size."""
    rows, buffers = len(texts), texts.buffers()
    if not rows:
        return None
    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    offsets = np.frombuffer(buffers[1], np.int64 if wide else np.int32)[texts.offset : texts.offset + rows + 1]
    first, size, last = int(offsets[0]), int(offsets[1] - offsets[0]), int(offsets[-1])
    if last - first != size * rows or (np.diff(offsets) != size).any():
        return None
    return np.frombuffer(buffers[2] or b"", np.uint8)[first:last].reshape(rows, size)


def beginnings(matrix: Octets, sizes: npt.NDArray[np.integer[Any]]) -> pa.Array:
    """The first bytes of each row, so many as `sizes` says; the matrix is one block of memory of at most 2 GiB.

    Arrow takes every second value of an array that has the rest of each row as a value as well: 10 ns a value, where
    selecting the bytes by a mask took 30.
    """
    rows, width = matrix.shape
    ends = np.empty(2 * rows + 1, np.int32)
    ends[::2] = np.arange(rows + 1) * width
    ends[1::2] = ends[:-1:2] + sizes
    padded = pa.Array.from_buffers(pa.binary(), 2 * rows, [None, pa.py_buffer(ends), pa.py_buffer(matrix)])
    return padded.take(indices(np.arange(0, 2 * rows, 2)))


def as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in that type, as they are where they have it."""
    return values if values.type == kind else values.cast(kind)


def text_array(values: Sequence[bytes | None]) -> pa.Array:
    """UTF-8 texts as a string array, a large one only if a plain one cannot hold them."""
    return pa.array(values, pa.large_binary()).cast(text_type(sum(len(value or b"") for value in values)))


def text_type(size: int) -> pa.DataType:
    """The type of a string array that holds so many bytes."""
    return pa.string() if size <= LARGEST else pa.large_string()


def join(*parts: str | bytes | pa.Array) -> pa.Array:
    """The parts of each row in one text, or in one value of bytes if a part is bytes; null where an array is null.

    Large when one of them is, or when a plain array might not hold the result.
    """
    arrays = [part for part in parts if not isinstance(part, str | bytes)]
    size = len(arrays[0]) * sum(map(octets, parts))
    kind = text_type(size + sum(array.nbytes for array in arrays))
    if any(pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) for array in arrays):
        kind = pa.large_string()
    if any(isinstance(part, bytes) or is_bytes(part) for part in parts):
        kind = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
    pieces = [pa.scalar(part, kind) if isinstance(part, str | bytes) else as_type(part, kind) for part in parts]
    if len(pieces) == len(arrays) == 1:
        return pieces[0]
    matrix = None if len(arrays) > 1 or arrays[0].null_count else matrix_of(arrays[0])
    if matrix is not None and matrix.shape[1] <= _SHORT:
        whole = side_by_side([part if isinstance(part, str | bytes) else matrix for part in parts], len(matrix))
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        ends = np.arange(len(whole) + 1, dtype=np.int64 if wide else np.int32) * whole.shape[1]
        return pa.Array.from_buffers(kind, len(whole), [None, pa.py_buffer(ends), pa.py_buffer(whole)])
    return pc.binary_join_element_wise(*pieces, pa.scalar("", kind))


def side_by_side(parts: Sequence[str | bytes | Octets], rows: int) -> Octets:
    """Matrices, and constants in every row, side by side: a row is copied as an item, three times as fast as hstack."""
    matrices = [part.encode() if isinstance(part, str) else part for part in parts]
    widths = [len(each) if isinstance(each, bytes) else each.shape[1] for each in matrices]
    # Arrow keeps the memory of large columns.
    whole = np.frombuffer(pa.allocate_buffer(rows * sum(widths)), np.uint8).reshape(rows, sum(widths))
    start = 0
    for each, width in zip(matrices, widths, strict=True):
        if width:
            item = f"V{width}"
            items = np.frombuffer(each, item) if isinstance(each, bytes) else each.view(item)
            whole[:, start : start + width].view(item)[:] = items
        start += width
    return whole


def is_bytes(part: str | bytes | pa.Array) -> bool:
    """Whether these are bytes, not texts."""
    if isinstance(part, str | bytes):
        return isinstance(part, bytes)
    return bool(pa.types.is_binary(part.type) or pa.types.is_large_binary(part.type))


def octets(part: str | bytes | pa.Array) -> int:
    """The size of a constant; 0 of an array."""
    if isinstance(part, str):
        return len(part.encode())
    return len(part) if isinstance(part, bytes) else 0


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
