"""Encodes columns for the wire: from the form in which PostgreSQL delivers them to the bytes of a row's cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..datatypes import SIZED, SqlType, decimal_size
from . import typeinfo, variant
from .copy_binary import Bytes, Integers, Values
from .transcode import to_code_page, to_utf16

_DAY_TICKS = 864_000_000_000
_DAYS_TO_1900 = 693_595
_DATETIME_DAY = 300 * 86_400
_FRACTION_BYTES = (3, 3, 3, 4, 4, 5, 5, 5)
# SQL Server compares these bytes of a uniqueidentifier one after the other; values are stored in that order.
GUID_ORDER = (10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3)
_GUID_WIRE = np.argsort(np.array(GUID_ORDER))
_LONG_DECIMAL = 18


@dataclass(frozen=True)
class Part:
    """Consecutive bytes of each cell: `data` has a row a cell, or all cells' bytes joined, with their lengths."""

    data: Bytes
    lengths: Integers | None = None
    present: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Cells:
    """One column on the wire: the parts of its cells, which cells are null, and what a null looks like."""

    parts: list[Part] = field(default_factory=list)
    nulls: NDArray[np.bool_] | None = None
    null_marker: bytes = b""


def encode(kind: SqlType, nullable: bool, values: Values) -> Cells:
    """The cells of one column."""
    nulls = values.nulls
    parts = _ENCODERS.get(kind.name, _ENCODERS.get(kind.family, _text))(kind, values)
    if kind.name in _BARE and not typeinfo.has_fixed_form(kind, nullable):
        parts = [Part(_prefixed(parts[0].data))]
    return Cells(parts, nulls if nulls.any() else None, null_marker(kind))


def null_marker(kind: SqlType) -> bytes:
    """A null in a row that does not list its nulls."""
    if kind.is_max or kind.name == "xml" or kind.family == "clr":
        return b"\xff" * 8
    if kind.name in SIZED or kind.name == "timestamp":
        return b"\xff\xff"
    return bytes(4) if kind.name == "sql_variant" else b"\x00"


def _little(numbers: Integers, width: int) -> Bytes:
    """Integers as little-endian bytes."""
    return np.ascontiguousarray(numbers.astype("<i8")).view(np.uint8).reshape(-1, 8)[:, :width]


def _prefixed(data: Bytes) -> Bytes:
    """Cells of one width with their length before them."""
    return np.concatenate([np.full((len(data), 1), data.shape[1], np.uint8), data], axis=1)


def _integer(kind: SqlType, values: Values) -> list[Part]:
    stored = {"bit": 2, "tinyint": 2, "smallint": 2, "int": 4, "bigint": 8}[kind.name]
    reversed_bytes = values.fixed(stored)[:, ::-1]
    return [Part(np.ascontiguousarray(reversed_bytes[:, : kind.kind.size]))]


def _float(kind: SqlType, values: Values) -> list[Part]:
    return [Part(np.ascontiguousarray(values.fixed(kind.kind.size)[:, ::-1]))]


def _money(kind: SqlType, values: Values) -> list[Part]:
    raw = np.ascontiguousarray(values.fixed(8)[:, ::-1])
    if kind.name == "smallmoney":
        return [Part(raw[:, :4])]
    return [Part(np.concatenate([raw[:, 4:], raw[:, :4]], axis=1))]


def _decimal(kind: SqlType, values: Values) -> list[Part]:
    size = decimal_size(kind.precision)
    out = np.zeros((len(values), size + 1), np.uint8)
    out[:, 0] = size
    if kind.precision <= _LONG_DECIMAL:
        numbers = values.integers(8)
        out[:, 1] = numbers >= 0
        width = min(size - 1, 8)
        out[:, 2 : 2 + width] = _little(np.abs(numbers), width)
        return [Part(out)]
    for row, text in enumerate(values.each()):
        number = int(text or b"0")
        out[row, 1] = number >= 0
        out[row, 2:] = np.frombuffer(abs(number).to_bytes(size - 1, "little"), np.uint8)
    return [Part(out)]


def _date(_: SqlType, values: Values) -> list[Part]:
    return [Part(_prefixed(_little(values.integers(4), 3)))]


def _scaled_ticks(ticks: Integers, scale: int) -> Bytes:
    return _little(ticks // 10 ** (7 - scale), _FRACTION_BYTES[scale])


def _time(kind: SqlType, values: Values) -> list[Part]:
    return [Part(_prefixed(_scaled_ticks(values.integers(8), kind.scale)))]


def _datetime2(kind: SqlType, values: Values) -> list[Part]:
    days, ticks = np.divmod(values.integers(8), _DAY_TICKS)
    return [Part(_prefixed(np.concatenate([_scaled_ticks(ticks, kind.scale), _little(days, 3)], axis=1)))]


def _datetimeoffset(kind: SqlType, values: Values) -> list[Part]:
    raw = values.fixed(10)
    days, ticks = np.divmod(np.ascontiguousarray(raw[:, :8]).view(">i8").ravel().astype(np.int64), _DAY_TICKS)
    offset = np.ascontiguousarray(raw[:, 8:]).view(">u2").ravel().astype(np.int64) - 32768
    columns = [_scaled_ticks(ticks, kind.scale), _little(days, 3), _little(offset, 2)]
    return [Part(_prefixed(np.concatenate(columns, axis=1)))]


def _datetime(_: SqlType, values: Values) -> list[Part]:
    days, fraction = np.divmod(values.integers(8), _DATETIME_DAY)
    return [Part(np.concatenate([_little(days - _DAYS_TO_1900, 4), _little(fraction, 4)], axis=1))]


def _smalldatetime(_: SqlType, values: Values) -> list[Part]:
    days, minutes = np.divmod(values.integers(8), 1440)
    return [Part(np.concatenate([_little(days - _DAYS_TO_1900, 2), _little(minutes, 2)], axis=1))]


def _guid(_: SqlType, values: Values) -> list[Part]:
    return [Part(_prefixed(np.ascontiguousarray(values.fixed(16)[:, _GUID_WIRE])))]


def _rowversion(_: SqlType, values: Values) -> list[Part]:
    length = np.broadcast_to(np.array([8, 0], np.uint8), (len(values), 2))
    return [Part(np.concatenate([length, values.fixed(8)], axis=1))]


def _text(kind: SqlType, values: Values) -> list[Part]:
    if kind.name in ("nchar", "nvarchar", "ntext", "xml"):
        content, lengths = to_utf16(*values.joined())
    elif kind.family == "string":
        content, lengths = to_code_page(*values.joined(), kind.collation)
    else:
        content, lengths = values.joined()
    return _sized(kind, content, lengths)


def _sized(kind: SqlType, content: Bytes, lengths: Integers) -> list[Part]:
    """Bytes of varying length, with what goes before and after them."""
    if kind.name in ("text", "ntext", "image"):
        pointer = np.full((len(lengths), 25), 0x64, np.uint8)
        pointer[:, 0] = 16
        return [Part(pointer), Part(_little(lengths, 4)), Part(content, lengths)]
    if kind.is_max or kind.name == "xml" or kind.family == "clr":
        end = np.zeros((len(lengths), 4), np.uint8)
        return [
            Part(_little(lengths, 8)),
            Part(_little(lengths, 4), present=lengths > 0),
            Part(content, lengths),
            Part(end),
        ]
    return [Part(_little(lengths, 2)), Part(content, lengths)]


def _variant(_: SqlType, values: Values) -> list[Part]:
    cells = [b"" if text is None else variant.encode(text.decode()) for text in values.each()]
    lengths = np.fromiter(map(len, cells), np.int64, len(cells))
    return [Part(_little(lengths, 4)), Part(np.frombuffer(b"".join(cells), np.uint8), lengths)]


_ENCODERS: dict[str, Callable[[SqlType, Values], list[Part]]] = {
    "integer": _integer,
    "float": _float,
    "money": _money,
    "decimal": _decimal,
    "date": _date,
    "time": _time,
    "datetime2": _datetime2,
    "datetimeoffset": _datetimeoffset,
    "datetime": _datetime,
    "smalldatetime": _smalldatetime,
    "guid": _guid,
    "rowversion": _rowversion,
    "variant": _variant,
}
# Types whose encoder leaves the length before the value to `encode`.
_BARE = {
    *("bit", "tinyint", "smallint", "int", "bigint", "real", "float"),
    *("smallmoney", "money", "smalldatetime", "datetime"),
}
