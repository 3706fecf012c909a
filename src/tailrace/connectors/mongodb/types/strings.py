"""Converts BSON strings and binary values to columns."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.connectors.mongodb.types.layout import Buffer, Bytes, Ints, Values, broken
from tailrace.model.arrow import indices
from tailrace.model.text.strings import bytes_of

_LONE_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def string_column(buffer: Buffer, starts: Ints) -> pa.Array:
    """The strings whose int32 lengths begin there. Raises DecodeError when one does not end with a zero byte."""
    ends = starts + 3 + buffer.int32[starts]
    wrong = np.flatnonzero((ends < starts + 4) | (buffer.uint8[np.minimum(ends, buffer.size)] != 0))
    if wrong.size:
        raise broken(buffer, int(starts[wrong[0]]), "a string")
    return slices(buffer, starts + 4, ends)


def slices(buffer: Buffer, starts: Ints, ends: Ints) -> pa.Array:
    """The bytes from `starts` to `ends` as a string column; what is no UTF-8 becomes U+FFFD as Java replaces it."""
    raw = byte_slices(buffer, starts, ends)
    return raw.view(pa.string()) if _is_sound(raw) else _replaced(raw)


def byte_slices(buffer: Buffer, starts: Ints, ends: Ints) -> pa.Array:
    """The bytes from `starts` to `ends` as a binary column. Raises DecodeError when a length is negative or too long.

    Arrow does not check offsets: with wrong ones it reads memory of others.
    """
    wrong = np.flatnonzero((ends < starts) | (ends > buffer.size))
    if wrong.size:
        raise broken(buffer, int(starts[wrong[0]]), "a string or binary value")
    if len(starts) and (starts[1:] < ends[:-1]).any():
        lengths = ends - starts
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return _binary(offsets, buffer.uint8[places])
    # In the order of the buffer: a column over the buffer itself, whose odd values are what lies between.
    offsets = np.empty(2 * len(starts) + 1, np.int32)
    offsets[0:-1:2], offsets[1::2] = starts, ends
    offsets[-1] = ends[-1] if len(ends) else 0
    whole = _binary(offsets, buffer.uint8)
    return whole.take(pa.array(np.arange(0, 2 * len(starts), 2), pa.int64()))


def raw_values(values: Values) -> pa.Array:
    """The bytes of BSON values, null where there is none."""
    rows = np.flatnonzero(values.present)
    some = values.take(rows)
    return spread(byte_slices(values.buffer, some.starts, some.ends()), rows, len(values))


def spread(values: pa.Array, rows: Ints, count: int) -> pa.Array:
    """The values at these rows of so many, null elsewhere."""
    if len(rows) == count:
        return values
    places = np.zeros(count, np.int64)
    places[rows] = np.arange(len(rows))
    is_given = np.zeros(count, np.bool_)
    is_given[rows] = True
    return values.take(indices(places, ~is_given))


def _binary(offsets: npt.NDArray[np.integer[Any]], data: Bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32, copy=False)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _is_sound(raw: pa.Array) -> bool:
    """Whether all values are UTF-8."""
    offsets, data = bytes_of(raw)
    text = data.tobytes()
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    # Together they are UTF-8; so is each, unless a character goes over from one value into the next.
    begin = data[offsets[:-1][offsets[:-1] < data.size]]
    return not ((begin & 0xC0) == 0x80).any()


def _replaced(raw: pa.Array) -> pa.Array:
    return pa.array([_replace(value) for value in raw.to_pylist()], pa.string())


def _replace(value: bytes) -> str:
    """UTF-8 with a U+FFFD for what is none, one for half a surrogate pair as in Java, where Python writes three."""
    return _LONE_SURROGATE.sub("\ufffd".encode(), value).decode(errors="replace")
