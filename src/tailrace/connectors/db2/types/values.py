"""Maps Db2 types to value types: what the driver returns, and the event values it becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.column_info import SourceType
from tailrace.connectors.db2.types import times
from tailrace.connectors.types import decimal
from tailrace.connectors.types.binary import binary_type, hex_bytes
from tailrace.connectors.value_type import ValueType, cast_type, text_type
from tailrace.model.schema import ConnectSchema

CHARACTERS = ("CHAR", "VARCHAR", "CLOB", "GRAPHIC", "VARGRAPHIC", "DBCLOB", "LONG VARCHAR", "LONG VARGRAPHIC")
BINARIES = ("BINARY", "VARBINARY", "BLOB", "ROWID")
LARGE = ("CLOB", "BLOB", "DBCLOB", "XML")
BIT_DATA = " FOR BIT DATA"
# Java's types (java.sql.Types) and lengths, as IBM's JDBC driver reports them.
_JDBC = {
    "BOOLEAN": 16, "SMALLINT": 5, "INTEGER": 4, "BIGINT": -5, "REAL": 7, "DOUBLE": 8, "FLOAT": 6,
    "DECIMAL": 3, "NUMERIC": 2, "DECFLOAT": 1111, "DATE": 91, "TIME": 92, "TIMESTAMP": 93,
    "CHAR": 1, "VARCHAR": 12, "LONG VARCHAR": -1, "CLOB": 2005, "GRAPHIC": 1, "VARGRAPHIC": 12,
    "LONG VARGRAPHIC": -1, "DBCLOB": 2005, "BINARY": -2, "VARBINARY": -3, "BLOB": 2004, "XML": 2009,
    "ROWID": -8, "TINYINT": -6,
}  # fmt: skip
_BIT_JDBC = {"CHAR": -2, "VARCHAR": -3, "LONG VARCHAR": -4}
_LENGTHS = {
    "BOOLEAN": 1, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19, "REAL": 24, "DOUBLE": 53, "FLOAT": 53,
    "DATE": 10, "TIME": 8, "TIMESTAMP": 26, "XML": 0,
}  # fmt: skip
_WITH_SCALE = ("DECIMAL", "NUMERIC", "TIMESTAMP", "SMALLINT", "INTEGER", "BIGINT", "DATE", "TIME")
# The names of Db2 for z/OS (SYSIBM.SYSCOLUMNS.COLTYPE), and what drivers shorten.
_NAMES = {
    "CHARACTER": "CHAR", "TIMESTMP": "TIMESTAMP", "VARG": "VARGRAPHIC", "VARBIN": "VARBINARY",
    "LONGVAR": "LONG VARCHAR", "LONGVARG": "LONG VARGRAPHIC",
}  # fmt: skip
_SINGLE = 4  # bytes of a FLOAT of z/OS that is a REAL


@dataclass(frozen=True, slots=True)
class Db2Type:
    """A column's type as the catalog has it. `bytes` and `scale` are its LENGTH and SCALE.

    A character type `is_binary` with FOR BIT DATA, which the catalog tells by code page 0.
    """

    name: str
    bytes: int
    scale: int
    is_binary: bool = False

    @staticmethod
    def of(name: str, length: int, scale: int, code_page: int) -> Db2Type:
        """From a row of SYSCAT.COLUMNS."""
        short = "REAL" if name == "FLOAT" and length == _SINGLE else _NAMES.get(name, name)
        return Db2Type(short, length, scale, short in _BIT_JDBC and code_page == 0)

    @property
    def is_large(self) -> bool:
        """Whether it is a large object, or XML, which the log has beside its rows."""
        return self.name in LARGE

    @property
    def length(self) -> int:
        """The length that the JDBC driver reports."""
        return _LENGTHS.get(self.name, self.bytes)

    @property
    def digits(self) -> int | None:
        """The scale that the JDBC driver reports, None for types without one."""
        return self.scale if self.name in _WITH_SCALE else None

    @property
    def jdbc(self) -> int:
        """The number in java.sql.Types."""
        return _BIT_JDBC[self.name] if self.is_binary else _JDBC.get(self.name, 1111)

    def printed(self, *, is_identity: bool) -> str:
        """The name that the JDBC driver reports."""
        return f"{self.name} (){BIT_DATA}" if self.is_binary else self.name

    @property
    def declared(self) -> str:
        """The type as SQL declares it."""
        if self.name in ("DECIMAL", "NUMERIC"):
            return f"{self.name}({self.bytes},{self.scale})"
        if self.name == "DECFLOAT":
            return f"DECFLOAT({16 if self.bytes == 8 else 34})"
        if self.name == "TIMESTAMP" and self.scale != 6:
            return f"TIMESTAMP({self.scale})"
        if self.name in (*CHARACTERS, *BINARIES) and not self.name.startswith("LONG"):
            return f"{self.name}({self.bytes}){BIT_DATA if self.is_binary else ''}"
        return self.name


_PLAIN: dict[str, ValueType] = {
    "BOOLEAN": ValueType(ConnectSchema("boolean"), pa.bool_(), lambda values: _booleans(values), False),
    "TINYINT": cast_type("int16", pa.int16(), 0),
    "SMALLINT": cast_type("int16", pa.int16(), 0),
    "INTEGER": cast_type("int32", pa.int32(), 0),
    "BIGINT": cast_type("int64", pa.int64(), 0),
    "REAL": cast_type("float", pa.float32(), 0.0),
    "DOUBLE": cast_type("double", pa.float64(), 0.0),
    "FLOAT": cast_type("double", pa.float64(), 0.0),
    **{name: text_type(zero="") for name in CHARACTERS},
    "XML": replace(text_type("io.debezium.data.Xml", zero=""), text="XMLSERIALIZE({} AS CLOB(2G))"),
}


def value_type(kind: Db2Type, config: Config) -> ValueType | None:
    """What a column of that type becomes; None for a type without a mapping, such as a distinct type."""
    if kind.is_binary or kind.name in BINARIES:
        return _binary(config)
    if kind.name in _PLAIN:
        return _PLAIN[kind.name]
    if kind.name in times.TYPES:
        return times.temporal_type(kind.name, kind.scale, config)
    if kind.name in ("DECIMAL", "NUMERIC"):
        # As texts, defaults have the digits that they are written with.
        return replace(decimal.fixed_type(kind.bytes, kind.scale, config), digits=None)
    if kind.name == "DECFLOAT":
        variable = decimal.variable_type(config)
        return replace(variable, text="VARCHAR({})", convert=lambda values: variable.convert(_plain(values)))
    return None


def source_type(kind: Db2Type) -> SourceType:
    """The type as it is named in parameters and masks."""
    printed = kind.printed(is_identity=False)
    return SourceType(
        name=printed,
        printed=printed,
        reported=printed,
        length=kind.length,
        scale=kind.digits,
        is_character=kind.name in CHARACTERS and not kind.is_binary,
    )


def _binary(config: Config) -> ValueType:
    kind = binary_type(config)
    convert = kind.convert
    # Defaults are text of hexadecimal digits.
    return replace(
        kind,
        convert=lambda values: convert(hex_bytes(values) if pa.types.is_string(values.type) else values),
        zero=None,
    )


def _plain(values: pa.Array) -> pa.Array:
    """Numbers without exponents, which a DECFLOAT is printed with where it has more digits than precision."""
    has_exponent = pc.match_substring_regex(values, r"\d[eE]")
    if not pc.any(has_exponent).as_py():
        return values
    plain = [format(Decimal(each), "f") for each in pc.filter(values, has_exponent).to_pylist()]
    return pc.replace_with_mask(values, has_exponent.fill_null(False), pa.array(plain, pa.string()))


def _booleans(values: pa.Array) -> pa.Array:
    """Of 0 and 1, or of the text of a default."""
    if pa.types.is_string(values.type):
        return pc.is_in(pc.utf8_lower(values), pa.array(["1", "true"]))
    return pc.cast(values, pa.bool_())
