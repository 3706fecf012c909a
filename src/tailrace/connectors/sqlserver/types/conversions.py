"""Tells whether a column's values stay what they were when its type is altered, which no change table shows."""

from __future__ import annotations

from zlib import crc32

from tailrace.connectors.sqlserver.types.values import SqlType

_WHOLE = {"bit": 0, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}
_NARROW, _WIDE = ("varchar", "text"), ("nvarchar", "ntext")
# More than any checksum of a collation.
_ALL = 1 << 32


def kept_by(kind: SqlType) -> tuple[str, tuple[int, ...]]:
    """A name and sizes. Another type of this name keeps all values if none of these sizes is smaller.

    The server refuses a length that is too short for a value, and pads those of a fixed length.
    """
    if kind.name in _WHOLE:
        return "whole", (_WHOLE[kind.name],)
    if kind.name in ("decimal", "numeric"):
        return "decimal", (kind.precision - kind.scale, kind.scale)
    if kind.name in _WIDE:
        return "text", (_ALL, _ALL)
    if kind.name in _NARROW:
        # Another code page may lack characters: of the two numbers one is smaller then.
        page = crc32((kind.collation or "").encode())
        return "text", (page, -page)
    if kind.name in ("varbinary", "image"):
        return "bytes", ()
    if kind.name in ("time", "datetime2", "datetimeoffset"):
        return kind.name, (kind.scale,)
    if kind.name in ("real", "float"):
        return "float", (kind.bytes,)
    return kind.declared, ()
