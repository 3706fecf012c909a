"""Escapes text columns for JSON as Jackson does; a column without anything to escape is not copied."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.arrow import LARGEST, mask, text_array

Bytes = npt.NDArray[np.uint8]

_SHORT = {'"': '"', "\\": "\\", "\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_ODD = re.compile('[\x00-\x1f"\\\\\U00010000-\U0010ffff]')
_ODD_OF_TEXT = re.compile('[\x00-\x1f"\\\\]')
_WIDE, _WINDOW = 1 << 26, 1 << 22  # above this many bytes the index arrays would weigh too much: text goes by windows

# Bytes each byte becomes. A character beyond U+FFFF (4 bytes) becomes two \uXXXX: Jackson writes UTF-16 pairs so.
_PAIRED = 0xF0  # its first byte, at least
_WIDTH = np.ones(256, np.uint8)
_WIDTH[:0x20] = 6
_WIDTH[_PAIRED:] = 12
_CODE = np.zeros(256, np.uint8)
for _char, _code in _SHORT.items():
    _WIDTH[ord(_char)] = 2
    _CODE[ord(_char)] = ord(_code)
_HARMLESS = bytes(byte for byte in range(256) if _WIDTH[byte] == 1)


def quote(text: str) -> str:
    """One text as a JSON string, quotes included."""
    return f'"{_ODD.sub(_escaped, text)}"'


def quote_wide(text: str) -> str:
    """One text as a JSON string as Jackson writes it to a Writer: characters beyond U+FFFF as they are."""
    return f'"{_ODD_OF_TEXT.sub(_escaped, text)}"'


def escape(values: pa.Array) -> pa.Array:
    """A string column escaped, without quotes; null stays null."""
    offsets, data = bytes_of(values)
    raw = data.tobytes()
    if _is_harmless(raw, data):
        return values
    special = raw.translate(None, _HARMLESS)
    if not special.translate(None, b'"\\'):  # as in JSON within JSON: Arrow replaces in a fifth of the time
        sound = pc.replace_substring(values, "\\", "\\\\") if b"\\" in special else values
        return pc.replace_substring(sound, '"', '\\"')
    if data.size > _WIDE:
        raw = values.cast(pa.large_binary()).to_pylist()
        return text_array([None if value is None else _windowed(value) for value in raw])
    odd = np.flatnonzero(_WIDTH[data] != 1)
    touched = np.zeros(len(values), np.bool_)
    touched[np.searchsorted(offsets, odd, side="right") - 1] = True
    if touched.sum() * 2 > len(values):
        return from_bytes(*_escape(offsets, data), "string", values)
    some = values.filter(mask(touched))
    return pc.replace_with_mask(
        values, mask(touched), from_bytes(*_escape(*bytes_of(some)), "string", some).cast(values.type)
    )


def _is_harmless(raw: bytes, data: Bytes) -> bool:
    """Whether nothing is to be escaped: four looks of the processor at many bytes at once, a fifth of one at each."""
    return not raw or (
        b'"' not in raw and b"\\" not in raw and int(data.min()) >= ord(" ") and int(data.max()) < _PAIRED
    )


def bytes_of(values: pa.Array) -> tuple[npt.NDArray[np.int64], Bytes]:
    """Offsets (n + 1, from 0) and bytes of a string or binary array, whatever its offset; a null may hold bytes."""
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    buffers = values.buffers()
    if buffers[1] is None or len(values) == 0:
        return np.zeros(len(values) + 1, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(buffers[1], np.int64 if wide else np.int32)[values.offset : values.offset + len(values) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(buffers[2], np.uint8)[first:last] if last > first else np.empty(0, np.uint8)
    return offsets.astype(np.int64) - first, data


def from_bytes(offsets: npt.NDArray[np.int64], data: Bytes, kind: str, nulls_of: pa.Array) -> pa.Array:
    """A `string` or `binary` array (large where it must be), null where `nulls_of` is."""
    large = data.size > LARGEST
    types: dict[tuple[str, bool], Any] = {
        ("string", False): pa.string(),
        ("string", True): pa.large_string(),
        ("binary", False): pa.binary(),
        ("binary", True): pa.large_binary(),
    }
    places = offsets if large else offsets.astype(np.int32)
    nulls = nulls_of.null_count
    validity = nulls_of.is_valid().buffers()[1] if nulls else None
    buffers = [validity, pa.py_buffer(places), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(types[kind, large], len(nulls_of), buffers, null_count=nulls)


def _windowed(value: bytes) -> bytes:
    """A very long text escaped a window at a time; none ends within a character."""
    data, start, texts = np.frombuffer(value, np.uint8), 0, []
    while start < data.size:
        stop = min(start + _WINDOW, data.size)
        while stop < data.size and data[stop] & 0xC0 == 0x80:
            stop -= 1
        texts.append(_escape(np.array([0, stop - start], np.int64), data[start:stop])[1].tobytes())
        start = stop
    return b"".join(texts)


def _escape(offsets: npt.NDArray[np.int64], data: Bytes) -> tuple[npt.NDArray[np.int64], Bytes]:
    """Every byte is repeated to the width it will have; then the escapes are written over the odd ones."""
    widths = _WIDTH[data]
    leads = np.flatnonzero(data >= 0xF0)
    for step in (1, 2, 3):
        widths[leads + step] = 0
    ends = np.zeros(data.size + 1, np.int64)
    np.cumsum(widths, out=ends[1:])
    out = np.repeat(data, widths)
    odd = np.flatnonzero(widths > 1)
    out[ends[odd]] = ord("\\")
    short = odd[_CODE[data[odd]] > 0]
    out[ends[short] + 1] = _CODE[data[short]]
    control = np.flatnonzero(widths == 6)
    _write_units(out, ends[control], data[control].astype(np.int64))
    if leads.size:
        point = data[leads].astype(np.int64) & 7
        for step in (1, 2, 3):
            point = (point << 6) | (data[leads + step] & 0x3F)
        _write_units(out, ends[leads], 0xD800 + ((point - 0x10000) >> 10))
        _write_units(out, ends[leads] + 6, 0xDC00 + ((point - 0x10000) & 0x3FF))
    return ends[offsets], out


def _write_units(out: Bytes, places: npt.NDArray[np.int64], units: npt.NDArray[np.int64]) -> None:
    """Write `\\uXXXX` for each unit at its place."""
    out[places] = ord("\\")
    out[places + 1] = ord("u")
    for digit in range(4):
        out[places + 2 + digit] = _HEX[(units >> (12 - 4 * digit)) & 15]


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return "\\" + _SHORT[char]
    units = char.encode("utf-16-be")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2], 'big'):04X}" for at in range(0, len(units), 2))
