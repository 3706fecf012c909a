"""TYPE_INFO: how a column's or parameter's type is described on the wire."""

from __future__ import annotations

import struct

from ..datatypes import MAX, SIZED, SqlType, decimal_size
from .collations import collation_bytes

# Types without a length: not nullable, nullable with its length.
_FIXED = {
    "bit": (0x32, 0x68, 1),
    "tinyint": (0x30, 0x26, 1),
    "smallint": (0x34, 0x26, 2),
    "int": (0x38, 0x26, 4),
    "bigint": (0x7F, 0x26, 8),
    "real": (0x3B, 0x6D, 4),
    "float": (0x3E, 0x6D, 8),
    "smallmoney": (0x7A, 0x6E, 4),
    "money": (0x3C, 0x6E, 8),
    "smalldatetime": (0x3A, 0x6F, 4),
    "datetime": (0x3D, 0x6F, 8),
}
_SIZED = {"char": 0xAF, "varchar": 0xA7, "nchar": 0xEF, "nvarchar": 0xE7, "binary": 0xAD, "varbinary": 0xA5}
_TEXT = {"text": 0x23, "ntext": 0x63, "image": 0x22}
_SCALED = {"time": 0x29, "datetime2": 0x2A, "datetimeoffset": 0x2B}
_CLR = {
    "hierarchyid": "Microsoft.SqlServer.Types.SqlHierarchyId",
    "geometry": "Microsoft.SqlServer.Types.SqlGeometry",
    "geography": "Microsoft.SqlServer.Types.SqlGeography",
}
_ASSEMBLY = "Microsoft.SqlServer.Types, Version=16.0.0.0, Culture=neutral, PublicKeyToken=89845dcd8080cc91"


def encode(kind: SqlType, *, nullable: bool) -> bytes:
    """The bytes of a type."""
    name = kind.name
    if name in _FIXED:
        fixed, variable, size = _FIXED[name]
        return bytes([variable, size]) if nullable else bytes([fixed])
    if name in SIZED:
        size = 0xFFFF if kind.length == MAX else max(kind.max_length, 1)
        text = b"" if kind.family == "binary" else collation_bytes(kind.collation)
        return struct.pack("<BH", _SIZED[name], size) + text
    if kind.family == "decimal":
        code = 0x6A if name == "decimal" else 0x6C
        return bytes([code, decimal_size(kind.precision), kind.precision, kind.scale])
    if name in _SCALED:
        return bytes([_SCALED[name], kind.scale])
    if name in _TEXT:
        size = 0x7FFFFFFF if name != "ntext" else 0x7FFFFFFE
        return struct.pack("<BI", _TEXT[name], size) + (b"" if name == "image" else collation_bytes(kind.collation))
    if name in _CLR:
        return _clr(kind)
    return {
        "date": b"\x28",
        "uniqueidentifier": b"\x24\x10",
        "timestamp": struct.pack("<BH", 0xAD, 8),
        "xml": b"\xf1\x00",
        "sql_variant": struct.pack("<BI", 0x62, 8009),
    }[name]


def user_type(kind: SqlType, nullable: bool) -> int:
    """The user type of a column: 80 is a rowversion, other types go without."""
    return 80 if kind.name == "timestamp" else 0


def has_fixed_form(kind: SqlType, nullable: bool) -> bool:
    """Whether values of the type come without a length."""
    return not nullable and kind.name in _FIXED


def _clr(kind: SqlType) -> bytes:
    def text(value: str) -> bytes:
        return bytes([len(value)]) + value.encode("utf-16-le")

    full_name = f"{_CLR[kind.name]}, {_ASSEMBLY}"
    size = kind.kind.size if kind.kind.size > 0 else 0xFFFF
    head = struct.pack("<BH", 0xF0, size) + text("master") + text("sys") + text(kind.name)
    return head + struct.pack("<H", len(full_name)) + full_name.encode("utf-16-le")
