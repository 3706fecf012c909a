"""The types and keys that `verify` tries on Db2: declaration, value, and what an event has of it."""

from __future__ import annotations

from tailrace.connectors.probe import KeyCase, TypeCase

_COMMON = (
    TypeCase("boolean", "BOOLEAN", "TRUE", True),
    TypeCase("smallint_min", "SMALLINT", "-32768", -32768),
    TypeCase("integer_max", "INTEGER", "2147483647", 2147483647),
    TypeCase("bigint_min", "BIGINT", "-9223372036854775808", -9223372036854775808),
    TypeCase(
        "decimal_wide", "DECIMAL(31,10)", "-123456789012345678901.0123456789", "-123456789012345678901.0123456789"
    ),
    TypeCase("decfloat", "DECFLOAT(34)", "DECFLOAT('1.5E-20')", "0.000000000000000000015"),
    TypeCase("decfloat_nan", "DECFLOAT(34)", "DECFLOAT('NaN')", "NaN"),
    TypeCase("real", "REAL", "1.5", 1.5),
    TypeCase("double_max", "DOUBLE", "1.7976931348623157E+308", 1.7976931348623157e308),
    TypeCase("date_first", "DATE", "'0001-01-01'", -719162),
    TypeCase("date_last", "DATE", "'9999-12-31'", 2932896),
    TypeCase("time", "TIME", "'23:59:59'", 86399000),
    TypeCase("time_24", "TIME", "'24.00.00'", 86400000),
    TypeCase("timestamp", "TIMESTAMP", "'1969-12-31 23:59:59.999999'", -1),
    TypeCase("timestamp_0", "TIMESTAMP(0)", "'2020-02-29 23:59:59'", 1583020799000),
    TypeCase("timestamp_24", "TIMESTAMP", "'2020-01-01-24.00.00'", 1577923200000000),
    TypeCase("timestamp_12", "TIMESTAMP(12)", "'2020-01-01-00.00.00.123456789012'", 1577836800123456789),
    TypeCase("char_padded", "CHAR(5)", "'ab'", "ab   "),
    TypeCase("varchar_empty", "VARCHAR(9)", "''", ""),
    TypeCase("varchar", "VARCHAR(60)", "'Žluťoučký Жук İı 漢字'", "Žluťoučký Жук İı 漢字"),
    TypeCase("varchar_beyond", "VARCHAR(20)", "'🐘'", "🐘"),
    TypeCase("graphic", "GRAPHIC(3)", "'漢'", "漢  "),
    TypeCase("vargraphic", "VARGRAPHIC(20)", "'漢字 Жук'", "漢字 Жук"),
    TypeCase("char_bits", "CHAR(4) FOR BIT DATA", "X'00FF0102'", "00ff0102"),
    TypeCase("varchar_bits", "VARCHAR(9) FOR BIT DATA", "X'00FF'", "00ff"),
    TypeCase("binary", "BINARY(4)", "BX'00FF0102'", "00ff0102"),
    TypeCase("varbinary", "VARBINARY(9)", "BX'00FF'", "00ff"),
)
_LARGE = (
    TypeCase("clob", "CLOB(1M)", "'large text'", "large text"),
    TypeCase("blob", "BLOB(1M)", "BLOB(X'00FF')", "00ff"),
    TypeCase("dbclob", "DBCLOB(1M)", "DBCLOB('漢字')", "漢字"),
    TypeCase("xml", "XML", "XMLPARSE(DOCUMENT '<a>é</a>')", "<a>é</a>"),
)
TYPES = {"common": _COMMON, "large": _LARGE}
KEYS = (
    KeyCase("varchar", "VARCHAR(40)", ("a", "B", "b", "é", "z", "Ж", "漢字")),
    KeyCase("char_padded", "CHAR(3)", ("a", "B", "b", "z", "zz")),
    KeyCase(
        "timestamp_of_12_digits",
        "TIMESTAMP(12)",
        tuple(f"2020-01-01-00.00.00.00000000000{digit}" for digit in range(1, 8)),
    ),
    KeyCase("decimal_wide", "DECIMAL(31,10)", ("-1.0000000001", "0", "0.5", "99999999999999999999.0000000001")),
)
