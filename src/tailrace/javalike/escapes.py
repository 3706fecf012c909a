"""Escapes text for JSON as the JSON writer of a database's Java driver does."""

from __future__ import annotations

import functools
import unicodedata

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.arrow import mask
from tailrace.model.text.strings import bytes_of, from_bytes

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
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
