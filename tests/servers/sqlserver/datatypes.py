"""SQL Server's data types: their names, numbers, sizes and how PostgreSQL stores their values.

Values of types that PostgreSQL lacks are stored as integers or bytes that sort and compare as SQL Server's values do:

* date: days since 0001-01-01; time: 100 ns since midnight; datetime2: 100 ns since 0001-01-01
* datetime: 1/300 s since 0001-01-01; smalldatetime: minutes since 0001-01-01
* datetimeoffset: 8 bytes, 100 ns of UTC since 0001-01-01, then 2 bytes, minutes of offset + 32768
* uniqueidentifier: 16 bytes in the order in which SQL Server compares them
* sql_variant: text, a type's name, a colon, the value's text form
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MAX = -1
DEFAULT_COLLATION = "SQL_Latin1_General_CP1_CI_AS"


@dataclass(frozen=True)
class Kind:
    """What all types of one name share."""

    system_type_id: int
    user_type_id: int
    family: str
    storage: str
    size: int = 0
    precision: int = 0
    scale: int = 0
    rank: int = 0


# Rank is the data type precedence: the operand with the lower rank is converted to the type of the other.
KINDS = {
    "bit": Kind(104, 104, "integer", "int2", 1, 1, 0, 10),
    "tinyint": Kind(48, 48, "integer", "int2", 1, 3, 0, 11),
    "smallint": Kind(52, 52, "integer", "int2", 2, 5, 0, 12),
    "int": Kind(56, 56, "integer", "int4", 4, 10, 0, 13),
    "bigint": Kind(127, 127, "integer", "int8", 8, 19, 0, 14),
    "smallmoney": Kind(122, 122, "money", "numeric(10,4)", 4, 10, 4, 15),
    "money": Kind(60, 60, "money", "numeric(19,4)", 8, 19, 4, 16),
    "numeric": Kind(108, 108, "decimal", "numeric", 17, 18, 0, 17),
    "decimal": Kind(106, 106, "decimal", "numeric", 17, 18, 0, 17),
    "real": Kind(59, 59, "float", "float4", 4, 24, 0, 18),
    "float": Kind(62, 62, "float", "float8", 8, 53, 0, 19),
    "time": Kind(41, 41, "temporal", "int8", 5, 16, 7, 20),
    "date": Kind(40, 40, "temporal", "int4", 3, 10, 0, 21),
    "smalldatetime": Kind(58, 58, "temporal", "int8", 4, 16, 0, 22),
    "datetime": Kind(61, 61, "temporal", "int8", 8, 23, 3, 23),
    "datetime2": Kind(42, 42, "temporal", "int8", 8, 27, 7, 24),
    "datetimeoffset": Kind(43, 43, "temporal", "bytea", 10, 34, 7, 25),
    "binary": Kind(173, 173, "binary", "bytea", rank=1),
    "varbinary": Kind(165, 165, "binary", "bytea", rank=2),
    "char": Kind(175, 175, "string", "text", rank=3),
    "varchar": Kind(167, 167, "string", "text", rank=4),
    "nchar": Kind(239, 239, "string", "text", rank=5),
    "nvarchar": Kind(231, 231, "string", "text", rank=6),
    "uniqueidentifier": Kind(36, 36, "guid", "bytea", 16, rank=7),
    "timestamp": Kind(189, 189, "rowversion", "bytea", 8, rank=7),
    "image": Kind(34, 34, "binary", "bytea", 16, rank=7),
    "text": Kind(35, 35, "string", "text", 16, rank=8),
    "ntext": Kind(99, 99, "string", "text", 16, rank=9),
    "xml": Kind(241, 241, "xml", "text", MAX, rank=30),
    "json": Kind(244, 244, "xml", "text", MAX, rank=30),
    "vector": Kind(165, 255, "xml", "text", 8000, rank=30),
    "sql_variant": Kind(98, 98, "variant", "text", 8016, rank=31),
    "hierarchyid": Kind(240, 128, "clr", "bytea", 892, rank=32),
    "geometry": Kind(240, 129, "clr", "bytea", MAX, rank=32),
    "geography": Kind(240, 130, "clr", "bytea", MAX, rank=32),
}

SYNONYMS = {
    "integer": "int",
    "dec": "decimal",
    "rowversion": "timestamp",
    "character": "char",
    "char varying": "varchar",
    "character varying": "varchar",
    "national char": "nchar",
    "national character": "nchar",
    "national char varying": "nvarchar",
    "national character varying": "nvarchar",
    "national text": "ntext",
    "binary varying": "varbinary",
    "double precision": "float",
}

SIZED = {"char", "varchar", "nchar", "nvarchar", "binary", "varbinary"}
NATIONAL = {"nchar", "nvarchar", "ntext", "xml"}
LARGE_OBJECTS = {"text", "ntext", "image"}
SCALED = {"time", "datetime2", "datetimeoffset"}


@dataclass(frozen=True)
class SqlType:
    """One data type with its length, precision and scale, as a column or an expression has it."""

    name: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    collation: str | None = None
    alias_id: int | None = None

    @property
    def kind(self) -> Kind:
        """What all types of this name share."""
        return KINDS[self.name]

    @property
    def family(self) -> str:
        """The family that decides how values convert and compare."""
        return self.kind.family

    @property
    def is_max(self) -> bool:
        """Whether values may have two gigabytes: varchar(max) and the like."""
        return self.name in SIZED and self.length == MAX

    @property
    def is_logged_apart(self) -> bool:
        """Whether an update that leaves the column alone does not log its value."""
        return self.is_max or self.name in LARGE_OBJECTS

    @property
    def is_large(self) -> bool:
        """Whether values may be too large for an index."""
        return self.is_max or self.name in LARGE_OBJECTS or self.name == "xml"

    @property
    def storage(self) -> str:
        """The PostgreSQL type of expressions of this type."""
        return "numeric" if self.family in ("decimal", "money") else self.kind.storage

    @property
    def column_storage(self) -> str:
        """The PostgreSQL type of a column of this type."""
        if self.family == "decimal":
            return f"numeric({self.precision},{self.scale})"
        return self.kind.storage

    @property
    def max_length(self) -> int:
        """`max_length` of sys.columns, in bytes."""
        if self.name in ("nchar", "nvarchar") and self.length > 0:
            return self.length * 2
        if self.name in SIZED:
            return self.length
        if self.family == "decimal":
            return decimal_size(self.precision)
        if self.name in SCALED:
            fraction = 3 if self.scale <= 2 else 4 if self.scale <= 4 else 5
            return fraction + {"time": 0, "datetime2": 3, "datetimeoffset": 5}[self.name]
        return self.kind.size

    def __str__(self) -> str:
        """The type as it is declared."""
        if self.name in SIZED:
            return f"{self.name}({'max' if self.length == MAX else self.length})"
        if self.family == "decimal":
            return f"{self.name}({self.precision},{self.scale})"
        return f"{self.name}({self.scale})" if self.name in SCALED else self.name

    def with_length(self, length: int) -> SqlType:
        """The same type with another length."""
        return replace(self, length=length)


def decimal_size(precision: int) -> int:
    """The bytes that a decimal of this precision takes, sign included."""
    return 5 if precision <= 9 else 9 if precision <= 19 else 13 if precision <= 28 else 17


def make(name: str, *arguments: int, for_cast: bool = False) -> SqlType:
    """The type declared as varchar(10) or decimal(12,2); `for_cast` chooses the default lengths of CAST."""
    name = SYNONYMS.get(name.lower(), name.lower())
    if name == "sysname":
        return SqlType("nvarchar", 128, alias_id=256)
    kind = KINDS[name]
    first = arguments[0] if arguments else None
    if name in SIZED:
        return SqlType(name, (30 if for_cast else 1) if first is None else first)
    if kind.family == "decimal":
        return SqlType(name, precision=18 if first is None else first, scale=arguments[1] if len(arguments) > 1 else 0)
    if name == "float":
        return SqlType("real" if first is not None and first <= 24 else "float")
    if name in SCALED:
        scale = 7 if first is None else first
        base = {"time": 8, "datetime2": 19, "datetimeoffset": 26}[name]
        return SqlType(name, precision=base + (scale + 1 if scale else 0), scale=scale)
    return SqlType(name, precision=kind.precision, scale=kind.scale)


BIT = make("bit")
INT = make("int")
BIGINT = make("bigint")
FLOAT = make("float")
DATETIME = make("datetime")
SYSNAME = make("sysname")
LSN = make("binary", 10)


def integer_digits(kind: SqlType) -> tuple[int, int]:
    """Precision and scale that an exact number has when it becomes a decimal."""
    if kind.family == "integer":
        return {"bit": 1, "tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}[kind.name], 0
    if kind.family == "money":
        return kind.kind.precision, 4
    return kind.precision, kind.scale


def common(left: SqlType, right: SqlType) -> SqlType:
    """The type of an expression that yields either of two types: CASE, COALESCE, UNION, a comparison."""
    if left == right:
        return left
    if left.family == "decimal" and right.family in ("integer", "decimal", "money"):
        return _common_decimal(left, right)
    if right.family == "decimal" and left.family in ("integer", "money"):
        return _common_decimal(right, left)
    high, low = (left, right) if left.kind.rank >= right.kind.rank else (right, left)
    if high.name in SIZED and low.name in SIZED:
        return high.with_length(MAX if MAX in (high.length, low.length) else max(high.length, low.length))
    if high.name in SCALED and low.name in SCALED:
        return make(high.name, max(high.scale, low.scale))
    return high


def _common_decimal(left: SqlType, right: SqlType) -> SqlType:
    precision, scale = integer_digits(right)
    scale = max(left.scale, scale)
    whole = max(left.precision - left.scale, precision - integer_digits(right)[1])
    return make(left.name, min(38, whole + scale), min(scale, 38))


def parse(text: str, *, for_cast: bool = False) -> SqlType:
    """The type that a text such as `varchar ( max )` or `decimal(12, 2)` declares; KeyError if there is none."""
    head, _, rest = text.partition("(")
    name = " ".join(head.replace(".", " . ").split()).lower().removeprefix("sys . ").strip('[]" ')
    arguments = [
        MAX if part.strip().lower() == "max" else int(part) for part in rest.rstrip(") ").split(",") if part.strip()
    ]
    return make(name, *arguments, for_cast=for_cast)
