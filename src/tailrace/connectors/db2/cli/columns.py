"""Reads results by columns: binds a buffer of many rows to each column, and makes Arrow arrays of what it is given."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_int16, c_uint32, c_void_p
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.connectors.db2.cli.library import (
    ATTR_ROW_ARRAY_SIZE,
    ATTR_ROWS_FETCHED,
    NO_DATA,
    NULL_DATA,
    STATEMENT,
    Db2Error,
    call,
)
from tailrace.connectors.sql_tables.tables import Block
from tailrace.model.arrow import beginnings, mask

# The library's numbers of types in C.
_C_CHAR, _C_WCHAR, _C_BINARY, _C_BIGINT, _C_DATE, _C_TIME, _C_TIMESTAMP = 1, -8, -2, -25, 91, 92, 93
_C_SHORT, _C_LONG, _C_FLOAT, _C_DOUBLE = 5, 4, 7, 8
# And of SQL.
_CHAR, _VARCHAR, _LONG_VARCHAR = 1, 12, -1
_BINARY, _VARBINARY, _LONG_VARBINARY = -2, -3, -4
_GRAPHIC = (-95, -96, -97, -8, -9, -10)
_CLOB, _BLOB, _DBCLOB, _XML = -99, -98, -350, -370
LARGE = (_CLOB, _BLOB, _DBCLOB, _XML)
_DECIMALS = (3, 2)
_DATE, _TIME, _TIMESTAMP = 91, 92, 93
_NUMBERS: dict[int, tuple[int, type[np.generic]]] = {
    5: (_C_SHORT, np.int16),
    4: (_C_LONG, np.int32),
    -5: (_C_BIGINT, np.int64),
    7: (_C_FLOAT, np.float32),
    6: (_C_DOUBLE, np.float64),
    8: (_C_DOUBLE, np.float64),
    16: (_C_SHORT, np.int16),  # BOOLEAN
    -7: (_C_SHORT, np.int16),
}
_DAY = [("year", "<i2"), ("month", "<u2"), ("day", "<u2")]
_CLOCK = [("hour", "<u2"), ("minute", "<u2"), ("second", "<u2")]
_STRUCTS = {
    _DATE: (_C_DATE, np.dtype(_DAY)),
    _TIME: (_C_TIME, np.dtype(_CLOCK)),
    _TIMESTAMP: (_C_TIMESTAMP, np.dtype([*_DAY, *_CLOCK, ("fraction", "<u4")])),
}
_EPOCH_YEAR, _DAY_S = 1970, 86400  # of Arrow's dates
# Bytes in UTF-8 of what takes one byte in the database's code page, or two in a graphic string.
_MOST_UTF8 = 4
# What all buffers of a result take, if a row is not larger.
BUFFERS = 16 << 20
_REPLACEMENT = 0xFFFD
TRUNCATED = "01004"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result: its name, SQL type and size in the type's units, as the library tells them."""

    name: str
    kind: int
    size: int
    scale: int

    @property
    def is_large(self) -> bool:
        """Whether its declared size says nothing about its values: a large object, or XML."""
        return self.kind in LARGE

    @property
    def is_wide(self) -> bool:
        """Whether it comes as UTF-16."""
        return self.kind in _GRAPHIC or self.kind == _DBCLOB

    @property
    def is_binary(self) -> bool:
        """Whether it comes as bytes."""
        return self.kind in (_BINARY, _VARBINARY, _LONG_VARBINARY, _BLOB)


def described(statement: c_void_p) -> list[ResultColumn]:
    """The columns of the result of a statement, none if it has no result. Raises Db2Error."""
    count = c_int16()
    call("SQLNumResultCols", STATEMENT, statement, ctypes.byref(count))
    return [_described(statement, place) for place in range(1, count.value + 1)]


def _described(statement: c_void_p, place: int) -> ResultColumn:
    name, used = ctypes.create_string_buffer(1025), c_int16()
    kind, size, scale, nullable = c_int16(), c_uint32(), c_int16(), c_int16()
    given = (name, 1024, used, kind, size, scale, nullable)
    call(
        "SQLDescribeCol",
        STATEMENT,
        statement,
        place,
        *(ctypes.byref(each) if isinstance(each, c_int16 | c_uint32) else each for each in given),
    )
    return ResultColumn(name.value.decode("utf-8"), kind.value, size.value, scale.value)


def blocks(statement: c_void_p, columns: Sequence[ResultColumn], size: int, largest: Sequence[int]) -> Iterator[Block]:
    """The rows of an executed statement in blocks of `size` rows, fewer where rows are wide. Raises Db2Error.

    `largest` are the bytes that the values of each large column take at most, 0 for other columns.
    """
    widths = [_width(column, most) for column, most in zip(columns, largest, strict=True)]
    rows = max(1, min(size, BUFFERS // sum(widths)))
    bound = [_bound(statement, place, each, widths[place - 1], rows) for place, each in enumerate(columns, 1)]
    fetched = c_uint32()
    call("SQLSetStmtAttr", STATEMENT, statement, ATTR_ROW_ARRAY_SIZE, rows, 0)
    call("SQLSetStmtAttr", STATEMENT, statement, ATTR_ROWS_FETCHED, ctypes.cast(ctypes.byref(fetched), c_void_p), 0)
    while call("SQLFetch", STATEMENT, statement) != NO_DATA:
        yield [column.values(fetched.value) for column in bound]


def _width(column: ResultColumn, largest: int) -> int:
    if column.kind in _NUMBERS:
        return np.dtype(_NUMBERS[column.kind][1]).itemsize
    if column.kind in _STRUCTS:
        return _STRUCTS[column.kind][1].itemsize
    if column.is_large:
        return largest + 2
    if column.kind in _DECIMALS:
        return column.size + 4  # sign, point, leading zero, end
    if column.is_binary:
        return max(1, column.size)
    return (2 if column.is_wide else _MOST_UTF8) * column.size + 2


@dataclass(slots=True)
class _Bound:
    """A column's buffer, the length of each value in it, and what makes an array of them."""

    column: ResultColumn
    buffer: np.ndarray[Any, Any]
    lengths: np.ndarray[Any, np.dtype[np.int32]]
    convert: Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], pa.Array]

    def values(self, rows: int) -> pa.Array:
        """The first rows."""
        return self.convert(self.buffer[:rows], self.lengths[:rows])


def _bound(statement: c_void_p, place: int, column: ResultColumn, width: int, rows: int) -> _Bound:
    buffer: np.ndarray[Any, Any]
    convert: Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], pa.Array]
    if column.kind in _NUMBERS:
        kind, dtype = _NUMBERS[column.kind]
        buffer, convert = np.empty(rows, dtype), _numbers
    elif column.kind in _STRUCTS:
        kind, struct = _STRUCTS[column.kind]
        buffer, convert = np.empty(rows, struct), {_DATE: _dates, _TIME: _times, _TIMESTAMP: _timestamps}[column.kind]
    else:
        kind = _C_BINARY if column.is_binary else _C_WCHAR if column.is_wide else _C_CHAR
        buffer = np.empty((rows, width), np.uint8)
        convert = partial(_variable, column)
    lengths = np.zeros(rows, np.int32)
    call("SQLBindCol", STATEMENT, statement, place, kind, buffer.ctypes.data, width, lengths.ctypes.data)
    return _Bound(column, buffer, lengths, convert)


def _numbers(values: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> pa.Array:
    # The buffer is filled again by the next fetch.
    return pa.array(values.copy(), mask=lengths == NULL_DATA, from_pandas=False)


def _days(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    months = (values["year"].astype(np.int64) - _EPOCH_YEAR) * 12 + values["month"] - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    return np.asarray(first + values["day"] - 1)


def _seconds(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    hours, minutes = values["hour"].astype(np.int64), values["minute"].astype(np.int64)
    return np.asarray(hours * 3600 + minutes * 60 + values["second"])


def _dates(values: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> pa.Array:
    null = lengths == NULL_DATA
    return pa.array(np.where(null, 0, _days(values)).astype(np.int32), pa.date32(), mask=null)


def _times(values: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> pa.Array:
    """24:00:00, the end of a day, is 00:00:00, as IBM's JDBC driver has it."""
    null = lengths == NULL_DATA
    seconds = np.where(null, 0, _seconds(values)) % _DAY_S
    return pa.array(seconds * 1_000_000, pa.time64("us"), mask=null)


def _timestamps(values: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> pa.Array:
    """24:00:00 is midnight at the end of the day, so the first moment of the next one."""
    null = lengths == NULL_DATA
    micros = (_days(values) * _DAY_S + _seconds(values)) * 1_000_000 + values["fraction"] // 1000
    return pa.array(np.where(null, 0, micros), pa.timestamp("us"), mask=null)


def _variable(column: ResultColumn, values: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> pa.Array:
    """Texts or bytes, each in as many bytes as the longest may take. Raises Db2Error if one took more."""
    null = lengths == NULL_DATA
    room = values.shape[1] - (0 if column.is_binary else 2 if column.is_wide else 1)
    sizes = np.where(null, 0, lengths).astype(np.int32)
    if sizes.size and (sizes.max() > room or sizes.min() < 0):
        raise Db2Error(f"a value of the column {column.name} has grown while it was read", TRUNCATED)
    valid = None if not null.any() else mask(~null).buffers()[1]
    _, offsets, data = beginnings(values, sizes).buffers()
    if column.is_wide:
        return _utf8(data, sizes, valid)
    kind = pa.binary() if column.is_binary else pa.string()
    return pa.Array.from_buffers(kind, len(sizes), [valid, offsets, data])


def _utf8(data: pa.Buffer, sizes: np.ndarray[Any, Any], valid: pa.Buffer | None) -> pa.Array:
    """Texts of UTF-16. Half of a surrogate pair is replaced, as it is no character."""
    units = np.frombuffer(data, "<u2").copy()
    row = np.repeat(np.arange(len(sizes)), sizes // 2)
    high, low = (units & 0xFC00) == 0xD800, (units & 0xFC00) == 0xDC00
    first = np.append(high[:-1] & low[1:] & (row[:-1] == row[1:]), False)[: len(units)]
    is_paired = first | np.insert(first[:-1], 0, False)[: len(units)]
    units[(high | low) & ~is_paired] = _REPLACEMENT
    taken = np.where(is_paired, 2, 1 + (units >= 0x80) + (units >= 0x800).astype(np.int64))
    offsets = np.concatenate([[0], np.cumsum(taken)])[np.concatenate([[0], np.cumsum(sizes // 2)])].astype(np.int32)
    text = units.tobytes().decode("utf-16-le").encode("utf-8")
    return pa.Array.from_buffers(pa.string(), len(sizes), [valid, pa.py_buffer(offsets), pa.py_buffer(text)])


def as_rows(columns: Block) -> list[tuple[Any, ...]]:
    """Rows of Python values."""
    return list(zip(*(values.to_pylist() for values in columns), strict=True))


def longest(statement: str, columns: Sequence[ResultColumn]) -> str | None:
    """A statement for the number of rows, and the length of the longest value of each large column; None without one.

    Large objects have their length beside them, so that this does not read them.
    """
    names = [f"c{place}" for place in range(len(columns))]
    lengths = [f"MAX(LENGTH({name}))" for name, column in zip(names, columns, strict=True) if column.is_large]
    return f"SELECT {', '.join(lengths)} FROM ({statement}) AS wanted ({', '.join(names)})" if lengths else None


def room(column: ResultColumn, length: int) -> int:
    """The bytes that values of a large column take, whose length in the database is so much at most."""
    if column.kind == _BLOB:
        return length
    return 2 * length if column.kind == _DBCLOB else _MOST_UTF8 * length
