"""Splits COPY's text format into cells for all rows at once, in the same form as pgoutput's cells.

A row is its columns separated by tabs and ended by a newline; `\\N` is null, and a tab, newline or backslash inside a
value is escaped by a backslash, so every bare tab and newline is a separator. (Source: PostgreSQL manual, COPY.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.postgres.log.protocol.framing import CORRUPT, PADDING, Bytes
from tailrace.connectors.postgres.log.protocol.tuples import NULL, TEXT, Cells
from tailrace.errors import DecodeError

_TAB, _NEWLINE, _BACKSLASH, _N = 9, 10, 92, 78
# A NUL byte cannot occur in PostgreSQL's text, so it may stand for an escaped backslash meanwhile.
_ESCAPES = (("\\b", "\b"), ("\\f", "\f"), ("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ("\\v", "\v"), ("\0", "\\"))


def cells(lines: Sequence[bytes | memoryview], columns: int, where: str) -> tuple[Bytes, list[Cells]]:
    """The buffer of some whole lines (at least one) and the cells of its columns. Raises DecodeError."""
    buffer = np.frombuffer(b"".join([*lines, bytes(PADDING)]), np.uint8)
    text = buffer[: len(buffer) - PADDING]
    separators = np.flatnonzero((text == _TAB) | (text == _NEWLINE)).astype(np.int64)
    ends = text[separators] == _NEWLINE
    whole = len(separators) == columns * len(lines) == columns * np.count_nonzero(ends)
    if not whole or not ends[columns - 1 :: columns].all():
        raise DecodeError(f"rows do not have the {columns} selected columns", where=where, remedy=CORRUPT)
    starts = np.concatenate([[0], separators[:-1] + 1])
    lengths = separators - starts
    is_null = (lengths == 2) & (buffer[starts] == _BACKSLASH) & (buffer[starts + 1] == _N)
    tags = np.where(is_null, NULL, TEXT).astype(np.uint8)
    shape = (len(lines), columns)
    tags, starts, lengths = tags.reshape(shape), starts.reshape(shape), lengths.reshape(shape)
    return buffer, [Cells(tags[:, place], starts[:, place], lengths[:, place]) for place in range(columns)]


def unescaped(text: pa.Array) -> pa.Array:
    """A column's text with COPY's escapes undone."""
    if not pc.any(pc.match_substring(text, "\\")).as_py():
        return text
    text = pc.replace_substring(text, "\\\\", "\0")
    for escape, character in _ESCAPES:
        text = pc.replace_substring(text, escape, character)
    return text
