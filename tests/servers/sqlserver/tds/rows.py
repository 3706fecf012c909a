"""Builds the ROW and NBCROW tokens of many rows at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..datatypes import SqlType
from .copy_binary import Bytes, Integers, split, spread, windows
from .encode import Cells, Part, encode

ROW, NBCROW = 0xD1, 0xD2
_LONG_VALUE = 2000


def encode_rows(rows: Sequence[bytes | memoryview], described: list[tuple[str, SqlType, int]]) -> bytes:
    """The tokens of rows that came in the binary COPY format."""
    values = split(rows, len(described))
    return assemble(
        len(rows),
        [encode(kind, bool(flags & 1), value) for (_, kind, flags), value in zip(described, values, strict=True)],
    )


def encode_cell(row: bytes, kind: SqlType) -> bytes:
    """The one value of a row as it follows its type, as in a RETURNVALUE token."""
    return assemble(1, [encode(kind, True, split([row], 1)[0])], with_tokens=False)


def assemble(count: int, columns: list[Cells], *, with_tokens: bool = True) -> bytes:
    """Put the cells of columns together, row by row."""
    compact = _compact(count, columns) if with_tokens else np.zeros(count, bool)
    bitmap = (len(columns) + 7) // 8
    lengths = np.full(count, 1 if with_tokens else 0, np.int64) + compact * bitmap
    sizes = []
    for cells in columns:
        size = _cell_sizes(count, cells, compact)
        sizes.append(size)
        lengths += size
    ends = np.cumsum(lengths)
    out = np.zeros(int(ends[-1]), np.uint8)
    position = ends - lengths
    if with_tokens:
        out[position] = np.where(compact, NBCROW, ROW)
        position = position + 1
        _write_bitmaps(out, position, compact, columns, bitmap)
        position = position + compact * bitmap
    for cells, size in zip(columns, sizes, strict=True):
        _write(out, position, cells, compact)
        position = position + size
    return out.tobytes()


def _compact(count: int, columns: list[Cells]) -> NDArray[np.bool_]:
    """Which rows are sent as NBCROW: those whose nulls would take more bytes than the list of them."""
    saved = np.zeros(count, np.int64)
    for cells in columns:
        if cells.nulls is not None:
            saved += cells.nulls * len(cells.null_marker)
    return saved > (len(columns) + 7) // 8


def _cell_sizes(count: int, cells: Cells, compact: NDArray[np.bool_]) -> Integers:
    size = np.zeros(count, np.int64)
    for part in cells.parts:
        width = part.data.shape[1] if part.lengths is None else part.lengths
        size += width if part.present is None else width * part.present
    if cells.nulls is None:
        return size
    return np.where(cells.nulls, np.where(compact, 0, len(cells.null_marker)), size)


def _write_bitmaps(out: Bytes, at: Integers, compact: NDArray[np.bool_], columns: list[Cells], width: int) -> None:
    if not compact.any():
        return
    flags = np.zeros((len(at), width), np.uint8)
    for number, cells in enumerate(columns):
        if cells.nulls is not None:
            flags[:, number // 8] |= cells.nulls.astype(np.uint8) << (number % 8)
    windows_of(out, width)[at[compact]] = flags[compact]


def windows_of(out: Bytes, width: int) -> Bytes:
    """A writable view of the output in which row n is the bytes from n on."""
    return windows(out, width)


def _write(out: Bytes, at: Integers, cells: Cells, compact: NDArray[np.bool_]) -> None:
    valid = None if cells.nulls is None else ~cells.nulls
    if cells.nulls is not None:
        marked = cells.nulls & ~compact
        if marked.any():
            windows_of(out, len(cells.null_marker))[at[marked]] = np.frombuffer(cells.null_marker, np.uint8)
    for part in cells.parts:
        at = _write_part(out, at, part, valid)


def _write_part(out: Bytes, at: Integers, part: Part, valid: NDArray[np.bool_] | None) -> Integers:
    """Write one part of all cells; return where the next part begins."""
    if part.lengths is not None:
        _write_varying(out, at, part.data, part.lengths)
        return at + part.lengths
    width = part.data.shape[1]
    chosen = part.present if valid is None else valid if part.present is None else valid & part.present
    if chosen is None:
        windows_of(out, width)[at] = part.data
    elif chosen.any():
        windows_of(out, width)[at[chosen]] = part.data[chosen]
    return at + (width if part.present is None else width * part.present)


def _write_varying(out: Bytes, at: Integers, data: Bytes, lengths: Integers) -> None:
    if len(data) < _LONG_VALUE * len(lengths):
        out[spread(at, lengths)] = data
        return
    begin = 0
    for place, length in zip(at.tolist(), lengths.tolist(), strict=True):
        out[place : place + length] = data[begin : begin + length]
        begin += length
