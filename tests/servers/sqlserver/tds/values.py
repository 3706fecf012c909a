"""Reads the parameters of remote procedure calls: type and value, the value as PostgreSQL writes it."""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from dataclasses import dataclass

from ..datatypes import MAX, SqlType, make
from ..tsql.errors import SqlError, error
from .encode import GUID_ORDER
from .transcode import from_code_page, from_utf16

_DAYS_TO_1900 = 693_595
_DAY_TICKS = 864_000_000_000
_FIXED = {
    0x30: ("tinyint", 1),
    0x32: ("bit", 1),
    0x34: ("smallint", 2),
    0x38: ("int", 4),
    0x7F: ("bigint", 8),
    0x3B: ("real", 4),
    0x3E: ("float", 8),
    0x3C: ("money", 8),
    0x7A: ("smallmoney", 4),
    0x3D: ("datetime", 8),
    0x3A: ("smalldatetime", 4),
}
_SIZED_NULLABLE = {
    0x26: {1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"},
    0x68: {1: "bit"},
    0x6D: {4: "real", 8: "float"},
    0x6E: {4: "smallmoney", 8: "money"},
    0x6F: {4: "smalldatetime", 8: "datetime"},
    0x24: {16: "uniqueidentifier"},
}
_STRINGS = {0xA7: "varchar", 0xAF: "char", 0xE7: "nvarchar", 0xEF: "nchar", 0x27: "varchar", 0x2F: "char"}
_BINARIES = {0xA5: "varbinary", 0xAD: "binary", 0x25: "varbinary", 0x2D: "binary"}
_TEXTS = {0x23: "text", 0x63: "ntext", 0x22: "image"}
_SCALED = {0x29: "time", 0x2A: "datetime2", 0x2B: "datetimeoffset"}


@dataclass
class Parameter:
    """One parameter of a call."""

    name: str
    output: bool
    kind: SqlType
    value: str | None


class Reader:
    """Reads bytes in order."""

    def __init__(self, content: bytes, position: int = 0) -> None:
        self.content = content
        self.position = position

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.content)

    def take(self, count: int) -> bytes:
        """The next bytes."""
        taken = self.content[self.position : self.position + count]
        self.position += count
        return taken

    def number(self, form: str) -> int:
        """The next number, in a format of struct."""
        (value,) = struct.unpack_from(form, self.content, self.position)
        self.position += struct.calcsize(form)
        return int(value)

    def short_text(self) -> str:
        """Text with a one-byte length."""
        return self.take(2 * self.number("<B")).decode("utf-16-le")

    def long_text(self) -> str:
        """Text with a two-byte length."""
        return self.take(2 * self.number("<H")).decode("utf-16-le")

    def chunks(self) -> bytes | None:
        """A value in chunks, as of types with (max)."""
        total = self.number("<Q")
        if total == 0xFFFFFFFFFFFFFFFF:
            return None
        pieces = []
        while size := self.number("<I"):
            pieces.append(self.take(size))
        return b"".join(pieces)


def read_parameter(reader: Reader) -> Parameter:
    """The next parameter of a call."""
    name = reader.short_text()
    status = reader.number("<B")
    kind, value = _typed_value(reader)
    return Parameter(name, bool(status & 1), kind, value)


def _typed_value(reader: Reader) -> tuple[SqlType, str | None]:
    code = reader.number("<B")
    if code in _FIXED:
        name, size = _FIXED[code]
        return make(name), _plain(name, reader.take(size))
    if code in _SIZED_NULLABLE:
        name = _SIZED_NULLABLE[code][reader.number("<B")]
        raw = reader.take(reader.number("<B"))
        name = _SIZED_NULLABLE[code].get(len(raw), name)
        return make(name), _plain(name, raw) if raw else None
    if code in (0x6A, 0x6C, 0x37, 0x3F):
        return _decimal(reader, "decimal" if code in (0x6A, 0x37) else "numeric")
    if code in _STRINGS or code in _BINARIES:
        return _sized(reader, code)
    if code in _TEXTS:
        return _text(reader, _TEXTS[code])
    if code == 0x28 or code in _SCALED:
        return _temporal(reader, code)
    return _rare(reader, code)


def _plain(name: str, raw: bytes) -> str:
    if name in ("real", "float"):
        return repr(struct.unpack("<f" if name == "real" else "<d", raw)[0])
    if name == "money":
        high, low = struct.unpack("<iI", raw)
        return str(decimal.Decimal(high << 32 | low).scaleb(-4))
    if name == "smallmoney":
        return str(decimal.Decimal(int.from_bytes(raw, "little", signed=True)).scaleb(-4))
    if name == "datetime":
        days, fraction = struct.unpack("<iI", raw)
        return str((days + _DAYS_TO_1900) * 300 * 86_400 + fraction)
    if name == "smalldatetime":
        days, minutes = struct.unpack("<HH", raw)
        return str((days + _DAYS_TO_1900) * 1440 + minutes)
    if name == "uniqueidentifier":
        return "\\x" + bytes(raw[place] for place in GUID_ORDER).hex()
    return str(int.from_bytes(raw, "little", signed=name not in ("tinyint", "bit")))


def _decimal(reader: Reader, name: str) -> tuple[SqlType, str | None]:
    _, precision, scale = reader.take(3)
    raw = reader.take(reader.number("<B"))
    kind = make(name, precision, scale)
    if not raw:
        return kind, None
    number = int.from_bytes(raw[1:], "little") * (1 if raw[0] else -1)
    with decimal.localcontext() as context:
        context.prec = 40
        return kind, format(decimal.Decimal(number).scaleb(-scale), "f")


def _sized(reader: Reader, code: int) -> tuple[SqlType, str | None]:
    short = code in (0x27, 0x2F, 0x25, 0x2D)
    size = reader.number("<B" if short else "<H")
    text = code in _STRINGS
    if text and not short:
        reader.take(5)
    if size == 0xFFFF:
        raw = reader.chunks()
    else:
        length = reader.number("<B" if short else "<H")
        raw = None if length == 0xFFFF or (short and length == 0) else reader.take(length)
    if not text:
        return make(_BINARIES[code], MAX if size == 0xFFFF else size), None if raw is None else "\\x" + raw.hex()
    name = _STRINGS[code]
    national = name.startswith("n")
    kind = make(name, MAX if size == 0xFFFF else max(size // 2 if national else size, 1))
    if raw is None:
        return kind, None
    return kind, from_utf16(raw) if national else from_code_page(raw, None)


def _text(reader: Reader, name: str) -> tuple[SqlType, str | None]:
    reader.take(4)
    if name != "image":
        reader.take(5)
    length = reader.number("<i")
    raw = None if length < 0 else reader.take(length)
    kind = make({"text": "varchar", "ntext": "nvarchar", "image": "varbinary"}[name], MAX)
    if raw is None:
        return kind, None
    if name == "image":
        return kind, "\\x" + raw.hex()
    return kind, from_utf16(raw) if name == "ntext" else from_code_page(raw, None)


def _temporal(reader: Reader, code: int) -> tuple[SqlType, str | None]:
    scale = reader.number("<B") if code in _SCALED else 0
    raw = reader.take(reader.number("<B"))
    kind = make("date") if code == 0x28 else make(_SCALED[code], scale)
    if not raw:
        return kind, None
    if code == 0x28:
        return kind, str(int.from_bytes(raw, "little"))
    size = 3 if scale <= 2 else 4 if scale <= 4 else 5
    ticks = int.from_bytes(raw[:size], "little") * 10 ** (7 - scale)
    if code == 0x29:
        return kind, str(ticks)
    moment = int.from_bytes(raw[size : size + 3], "little") * _DAY_TICKS + ticks
    if code == 0x2A:
        return kind, str(moment)
    offset = int.from_bytes(raw[size + 3 :], "little", signed=True)
    return kind, "\\x" + struct.pack(">qH", moment, offset + 32768).hex()


def _xml(reader: Reader) -> tuple[SqlType, str | None]:
    if reader.number("<B"):
        reader.short_text(), reader.short_text(), reader.long_text()
    raw = reader.chunks()
    return make("nvarchar", MAX), None if raw is None else from_utf16(raw)


def _variant(reader: Reader) -> tuple[SqlType, str | None]:
    reader.take(4)
    length = reader.number("<I")
    if not length:
        return make("int"), None
    end = reader.position + length
    code, properties = reader.take(2)
    found: tuple[SqlType, str | None]
    if code in _FIXED:
        name, size = _FIXED[code]
        found = make(name), _plain(name, reader.take(size))
    elif code in _STRINGS:
        reader.take(properties)
        raw = reader.take(end - reader.position)
        national = _STRINGS[code].startswith("n")
        found = (
            make(_STRINGS[code], 4000 if national else 8000),
            from_utf16(raw) if national else from_code_page(raw, None),
        )
    else:
        raise SqlError(
            8016, 16, f"The SQL Server test double does not read sql_variant parameters of the type 0x{code:02X}."
        )
    return found


def _udt(reader: Reader) -> tuple[SqlType, str | None]:
    reader.short_text(), reader.short_text()
    name = reader.short_text().lower()
    raw = reader.chunks()
    return make(name), None if raw is None else "\\x" + raw.hex()


def _rare(reader: Reader, code: int) -> tuple[SqlType, str | None]:
    readers: dict[int, Callable[[Reader], tuple[SqlType, str | None]]] = {0xF1: _xml, 0x62: _variant, 0xF0: _udt}
    if code == 0x1F:
        return make("int"), None
    if code not in readers:
        raise error(8009, code)
    return readers[code](reader)
