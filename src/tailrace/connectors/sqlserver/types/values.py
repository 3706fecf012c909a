"""Maps SQL Server types to value types: what a SELECT returns, and the event values it becomes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.column_info import SourceType
from tailrace.connectors.sqlserver.types import times
from tailrace.connectors.types import decimal
from tailrace.connectors.types.binary import binary_type, hex_bytes
from tailrace.connectors.value_type import ValueType, as_string, cast_type, text_type
from tailrace.model.native import UPPER_UUID
from tailrace.model.schema import ConnectSchema

CHARACTERS = ("char", "varchar", "text", "nchar", "nvarchar", "ntext")
BINARIES = ("binary", "varbinary", "image", "timestamp", "rowversion")
# Java's types (java.sql.Types) and lengths, as Microsoft's JDBC driver reports them.
_JDBC = {
    "bit": -7, "tinyint": -6, "smallint": 5, "int": 4, "bigint": -5, "real": 7, "float": 8,
    "decimal": 3, "numeric": 2, "money": 3, "smallmoney": 3,
    "date": 91, "time": 92, "datetime": 93, "datetime2": 93, "smalldatetime": 93, "datetimeoffset": -155,
    "char": 1, "varchar": 12, "text": -1, "nchar": -15, "nvarchar": -9, "ntext": -16,
    "binary": -2, "varbinary": -3, "image": -4, "timestamp": -2, "uniqueidentifier": 1, "xml": -16,
    "sql_variant": -150, "json": -16, "vector": -105,
}  # fmt: skip
# Of hierarchyid, geometry, geography and user-defined CLR types: the driver's DataTypeFilter makes them VARBINARY.
_CLR_JDBC = -3
_LENGTHS = {
    "bit": 1, "tinyint": 3, "smallint": 5, "int": 10, "bigint": 19, "real": 24, "float": 53,
    "money": 19, "smallmoney": 10, "date": 10, "datetime": 23, "smalldatetime": 16,
    "text": 2**31 - 1, "ntext": 2**30 - 1, "image": 2**31 - 1, "timestamp": 8, "uniqueidentifier": 36, "xml": 2**31 - 1,
    "sql_variant": 8000, "json": 2**31 - 1,
}  # fmt: skip
_UNLIMITED = 2**31 - 1
_NO_SCALE = ("char", "varchar", "text", "nchar", "nvarchar", "ntext", "binary", "varbinary", "image", "timestamp",
             "uniqueidentifier", "xml", "json", "vector", "real", "float", "bit", "sql_variant")  # fmt: skip


@dataclass(frozen=True, slots=True)
class SqlType:
    """A column's type as the catalog has it: name, bytes (-1: max), precision and scale.

    `alias` is the name of the user-defined type that stands for it, if the column was declared with one. A type
    `is_clr` if .NET code implements it. Texts have the `collation` of their column. Of a column that `is_encrypted`
    (Always Encrypted) the server itself does not know the values.
    """

    name: str
    bytes: int
    precision: int
    scale: int
    _: KW_ONLY
    alias: str | None = None
    is_clr: bool = False
    collation: str | None = None
    is_encrypted: bool = False

    @property
    def is_large(self) -> bool:
        """Whether a change table leaves values of it out that an update has not touched."""
        return self.name in ("text", "ntext", "image") or (self.bytes == -1 and self.name not in ("xml", "json"))

    @property
    def length(self) -> int:
        """The length that the JDBC driver reports."""
        if self.name in _LENGTHS:
            return _LENGTHS[self.name]
        if self.name in ("decimal", "numeric"):
            return self.precision
        if self.bytes == -1:
            return _UNLIMITED
        if self.name in ("nchar", "nvarchar"):
            return self.bytes // 2
        return self.precision if self.name in ("time", "datetime2", "datetimeoffset") else self.bytes

    @property
    def digits(self) -> int | None:
        """The scale that the JDBC driver reports, None for types without one."""
        fixed = {"money": 4, "smallmoney": 4, "datetime": 3}
        return None if self.is_clr or self.name in _NO_SCALE else fixed.get(self.name, self.scale)

    @property
    def jdbc(self) -> int:
        """The number in java.sql.Types, or the driver's own."""
        return _CLR_JDBC if self.is_clr else _JDBC.get(self.name, 1111)

    def printed(self, *, is_identity: bool) -> str:
        """The name that the JDBC driver reports: that of an alias type is its own, and it says `identity` behind it."""
        shown = self.alias or self.name
        return f"{shown} identity" if is_identity else shown

    @property
    def declared(self) -> str:
        """The type as T-SQL declares it."""
        if self.name in ("decimal", "numeric"):
            return f"{self.name}({self.precision},{self.scale})"
        if self.name in ("time", "datetime2", "datetimeoffset"):
            return f"{self.name}({self.scale})"
        if self.name in ("char", "varchar", "nchar", "nvarchar", "binary", "varbinary"):
            return f"{self.name}({'max' if self.bytes == -1 else self.length})"
        return self.name


_PLAIN: dict[str, ValueType] = {
    "bit": ValueType(ConnectSchema("boolean"), pa.bool_(), lambda values: _booleans(values), False),
    "tinyint": cast_type("int16", pa.int16(), 0),
    "smallint": cast_type("int16", pa.int16(), 0),
    "int": cast_type("int32", pa.int32(), 0),
    "bigint": cast_type("int64", pa.int64(), 0),
    "real": cast_type("float", pa.float32(), 0.0),
    "float": cast_type("double", pa.float64(), 0.0),
    **{name: text_type(zero="") for name in CHARACTERS},
    # No defaults are shown of these, as by SqlServerDefaultValueConverter.
    "uniqueidentifier": replace(text_type(), text="CONVERT(varchar(36), {})", sql=UPPER_UUID),
    "xml": replace(text_type(), text="CONVERT(nvarchar(max), {})"),
    # SQL Server 2025 and Azure. Drivers that do not know them get texts, which the server makes in any case here.
    "json": replace(text_type(), text="CONVERT(nvarchar(max), {})", sql="json"),
    "vector": replace(text_type(), text="CONVERT(nvarchar(max), {})"),
}


def value_type(kind: SqlType, config: Config) -> ValueType | None:
    """What a column of that type becomes; None for a type without a mapping."""
    if kind.is_encrypted:
        return None
    if kind.name in _PLAIN:
        return _PLAIN[kind.name]
    if kind.name in times.TYPES:
        return times.temporal_type(kind.name, kind.scale, config)
    if kind.name in ("decimal", "numeric"):
        return _decimal(kind.precision, kind.scale, "CONVERT(varchar(41), {})", config)
    if kind.name in ("money", "smallmoney"):
        return _decimal(19 if kind.name == "money" else 10, 4, "CONVERT(varchar(41), {}, 2)", config)
    if kind.name in BINARIES:
        return _binary(config)
    if kind.is_clr:
        # As they are stored, which is what the driver's getObject() returns.
        return replace(_binary(config), text=f"CAST({{}} AS varbinary({'max' if kind.bytes == -1 else kind.bytes}))")
    return None


def source_type(kind: SqlType, *, is_identity: bool = False) -> SourceType:
    """The type as it is named in parameters and masks."""
    printed = kind.printed(is_identity=is_identity)
    return SourceType(
        name=printed,
        printed=printed,
        reported=printed,
        length=kind.length,
        scale=kind.digits,
        is_character=kind.name in (*CHARACTERS, "uniqueidentifier", "xml"),  # texts to the JDBC driver
    )


def _decimal(precision: int, scale: int, text: str, config: Config) -> ValueType:
    return replace(decimal.fixed_type(precision, scale, config), text=text)


def _binary(config: Config) -> ValueType:
    kind = binary_type(config)
    convert = kind.convert
    return replace(kind, convert=lambda values: convert(_octets(values)), literals=True)


def _octets(values: pa.Array) -> pa.Array:
    """Of bytes, or of the hexadecimal digits of a default."""
    return hex_bytes(values) if pa.types.is_string(values.type) else pc.cast(values, pa.binary())


def _booleans(values: pa.Array) -> pa.Array:
    """Of bits, or of the text of a default."""
    return pc.equal(as_string(values), "1") if pa.types.is_string(values.type) else pc.cast(values, pa.bool_())
