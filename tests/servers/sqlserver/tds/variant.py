"""The wire form of sql_variant values."""

from __future__ import annotations

import decimal
import struct

from ..datatypes import SqlType, decimal_size
from . import collations

_FIXED = {"bit": (0x32, "<B"), "tinyint": (0x30, "<B"), "smallint": (0x34, "<h"), "int": (0x38, "<i")}
_FIXED |= {"bigint": (0x7F, "<q"), "real": (0x3B, "<f"), "float": (0x3E, "<d")}


def encode(stored: str) -> bytes:
    """The cell of a stored value: type, count of properties, properties, value."""
    declared, _, text = stored.partition(":")
    name, _, arguments = declared.partition("(")
    numbers = [int(part) for part in arguments.rstrip(")").split(",") if part]
    if name in _FIXED:
        code, form = _FIXED[name]
        return bytes([code, 0]) + struct.pack(form, float(text) if name in ("real", "float") else int(text))
    if name in ("decimal", "numeric"):
        return _decimal(name, text, *numbers)
    if name in ("varchar", "char", "nvarchar", "nchar"):
        return _text(name, text)
    if name in ("varbinary", "binary"):
        raw = bytes.fromhex(text)
        return bytes([0xA5, 2]) + struct.pack("<H", max(len(raw), 1)) + raw
    return _other(name, int(text) if name != "uniqueidentifier" else 0, text, *numbers)


def _decimal(name: str, text: str, precision: int, scale: int) -> bytes:
    size = decimal_size(precision)
    number = int(decimal.Decimal(text).scaleb(scale))
    head = bytes([0x6A if name == "decimal" else 0x6C, 2, precision, scale, number >= 0])
    return head + abs(number).to_bytes(size - 1, "little")


def _text(name: str, text: str) -> bytes:
    national = name.startswith("n")
    raw = text.encode("utf-16-le") if national else text.encode("cp1252", "sqlserver")
    head = bytes([0xE7 if national else 0xA7, 7]) + collations.collation_bytes(None)
    return head + struct.pack("<H", max(len(raw), 1)) + raw


def _other(name: str, number: int, text: str, scale: int = 7) -> bytes:
    if name == "uniqueidentifier":
        return bytes([0x24, 0]) + bytes.fromhex(text)
    if name == "money":
        return bytes([0x3C, 0]) + struct.pack("<iI", number >> 32, number & 0xFFFFFFFF)
    if name == "date":
        return bytes([0x28, 0]) + number.to_bytes(3, "little")
    if name == "datetime":
        days, fraction = divmod(number, 300 * 86_400)
        return bytes([0x3D, 0]) + struct.pack("<iI", days - 693_595, fraction)
    days, ticks = divmod(number, 864_000_000_000)
    fraction = (ticks // 10 ** (7 - scale)).to_bytes(3 if scale <= 2 else 4 if scale <= 4 else 5, "little")
    if name == "time":
        return bytes([0x29, 1, scale]) + fraction
    return bytes([0x2A, 1, scale]) + fraction + days.to_bytes(3, "little")


def type_of(stored: str) -> SqlType:
    """The type inside a stored value."""
    from ..datatypes import make  # avoided where only bytes are wanted

    name, _, arguments = stored.partition(":")[0].partition("(")
    return make(name, *(int(part) for part in arguments.rstrip(")").split(",") if part))
