"""Converts BSON strings to columns, and escapes them for JSON as MongoDB's Java driver does."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.mongodb.types.layout import Buffer, Bytes, Flags, Ints, Values, broken
from tailrace.events.encode.arrow import indices, mask
from tailrace.events.encode.strings import bytes_of, from_bytes

_SHORT = {'"': '"', "\\": "\\", "\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
_HARMLESS = bytes(byte for byte in range(0x20, 0x7F) if chr(byte) not in _SHORT)
_ODD = np.ones(256, np.bool_)
_ODD[list(_HARMLESS)] = False
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_CODE = np.zeros(256, np.uint8)  # the letter of an escape of two characters
for _char, _letter in _SHORT.items():
    _CODE[ord(_char)] = ord(_letter)
# The driver writes letters, digits, spaces, punctuation and symbols as they are. All else, such as combining marks,
# modifier letters and halves of a surrogate pair, is \uXXXX. Which characters are assigned depends on the Unicode
# version of Python here and of Java there.
_ESCAPED_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Lm", "Mn", "Mc", "Me", "Zl", "Zp"))
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
    there = np.zeros(count, np.bool_)
    there[rows] = True
    return values.take(indices(places, ~there))


def _binary(offsets: npt.NDArray[np.integer[Any]], data: Bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32, copy=False)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def escape(texts: pa.Array) -> pa.Array:
    """A string column escaped for JSON, without quotes."""
    offsets, data = bytes_of(texts)
    odd = np.frombuffer(data.tobytes().translate(None, _HARMLESS), np.uint8)
    if not odd.size or (odd.min() >= 0x80 and not _escaped_characters(data)[0].size):
        return texts
    touched = np.zeros(len(texts), np.bool_)
    touched[np.searchsorted(offsets, np.flatnonzero(_ODD[data]), side="right") - 1] = True
    some = texts.filter(mask(touched))
    escaped = _escape(*bytes_of(some), some)
    return escaped.cast(texts.type) if touched.all() else pc.replace_with_mask(texts, mask(touched), escaped)


class _Escapes(dict[int, str]):
    """For str.translate: what is written for characters beyond ASCII."""

    def __missing__(self, point: int) -> str:
        text = chr(point)
        if point >= 0x10000 or (point >= 0x7F and _is_escaped()[point]):
            units = text.encode("utf-16-be", "surrogatepass").hex()
            text = "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
        return self.setdefault(point, text)


_ESCAPES = _Escapes()


def escape_text(text: str) -> str:
    """The JSON text with the escapes that the driver writes for some characters; only strings have such characters."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_ESCAPES)


def _escape(offsets: Ints, data: Bytes, texts: pa.Array) -> pa.Array:
    """Every byte is repeated to the width that it will have; then the escapes are written over the odd ones."""
    widths = np.ones(data.size, np.uint8)
    short = _CODE[data] > 0
    control = ((data < 0x20) | (data == 0x7F)) & ~short
    widths[short], widths[control] = 2, 6
    wide, points, lengths = _escaped_characters(data)
    for step in (1, 2, 3):
        widths[(wide + step)[lengths > step]] = 0
    widths[wide] = np.where(points < 0x10000, 6, 12)
    ends = np.zeros(data.size + 1, np.int64)
    np.cumsum(widths, out=ends[1:])
    out = np.repeat(data, widths)
    _write_short(out, ends[:-1][short], _CODE[data[short]])
    _write_units(out, ends[:-1][control], data[control].astype(np.int64))
    single, pair = wide[points < 0x10000], wide[points >= 0x10000]
    _write_units(out, ends[single], points[points < 0x10000])
    above = points[points >= 0x10000] - 0x10000
    _write_units(out, ends[pair], 0xD800 + (above >> 10))
    _write_units(out, ends[pair] + 6, 0xDC00 + (above & 0x3FF))
    return from_bytes(ends[offsets], out, "string", texts)


def _escaped_characters(data: Bytes) -> tuple[Ints, Ints, Ints]:
    """Where characters of several bytes begin that are escaped, their code points, and how many bytes each has."""
    leads = np.flatnonzero(data >= 0xC0)
    first = data[leads].astype(np.int64)
    lengths = 2 + (first >= 0xE0) + (first >= 0xF0)
    points = first & (0x7F >> lengths)
    for step in (1, 2, 3):
        more = lengths > step
        points[more] = (points[more] << 6) | (data[leads[more] + step] & 0x3F)
    chosen = _is_escaped()[np.minimum(points, 0xFFFF)] | (points >= 0x10000)
    return leads[chosen], points[chosen], lengths[chosen]


@functools.cache
def _is_escaped() -> Flags:
    """Whether the driver escapes each character of the basic plane."""
    return np.array([unicodedata.category(chr(point)) in _ESCAPED_CATEGORIES for point in range(0x10000)])


def _write_short(out: Bytes, places: Ints, letters: Bytes) -> None:
    out[places] = ord("\\")
    out[places + 1] = letters


def _write_units(out: Bytes, places: Ints, units: npt.NDArray[np.int64]) -> None:
    """Write `\\uXXXX` for each unit at its place."""
    _write_short(out, places, np.full(len(places), ord("u"), np.uint8))
    for digit in range(4):
        out[places + 2 + digit] = _HEX[(units >> (12 - 4 * digit)) & 15]


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
