"""The types and keys that `verify` tries on PostgreSQL: declaration, value, and what an event has of it."""

from __future__ import annotations

from tailrace.connectors.probe import KeyCase, TypeCase

_COMMON = (
    TypeCase("smallint_min", "smallint", "'-32768'", -32768),
    TypeCase("integer_min", "integer", "'-2147483648'", -2147483648),
    TypeCase("bigint_max", "bigint", "9223372036854775807", 9223372036854775807),
    TypeCase(
        "numeric_wide",
        "numeric(38,10)",
        "'-1234567890123456789012345678.0123456789'",
        "-1234567890123456789012345678.0123456789",
    ),
    TypeCase("numeric_free", "numeric", "'1e-20'", "0.00000000000000000001"),
    TypeCase("numeric_nan", "numeric", "'NaN'", "NAN"),
    TypeCase("real", "real", "'3.4028235e38'", 3.4028235e38),
    TypeCase("double", "double precision", "'-1.7976931348623157e308'", -1.7976931348623157e308),
    TypeCase("double_nan", "double precision", "'NaN'", "NaN"),
    TypeCase("money", "money", "'-12.34'", "-12.34"),
    TypeCase("boolean", "boolean", "true", True),
    TypeCase("text_c", 'text COLLATE "C"', "'Ünïcödé 漢字 🐘'", "Ünïcödé 漢字 🐘"),
    TypeCase("text_icu", 'text COLLATE "und-x-icu"', "'Жук ß İı'", "Жук ß İı"),
    TypeCase("text_default", "text", r"E'tab\t quote\' \\'", "tab\t quote' \\"),
    TypeCase("char_padded", "char(5)", "'ab'", "ab   "),
    TypeCase("varchar_empty", "varchar(10)", "''", ""),
    TypeCase("bytea", "bytea", r"'\x00ff'", "00ff"),
    TypeCase("date_bc", "date", "'0044-03-15 BC'", -735160),
    TypeCase("date_last", "date", "'5874897-12-31'", 2145042905),
    TypeCase("date_infinite", "date", "'infinity'", -2147472692),
    TypeCase("time_last", "time", "'24:00:00'", 86400000000),
    TypeCase("timetz", "timetz", "'23:59:59.999999+05:30'", "18:29:59.999999Z"),
    TypeCase("timestamp_first", "timestamp", "'0001-01-01 00:00:00.000001'", -62135596799999999),
    TypeCase("timestamp_infinite", "timestamp", "'-infinity'", -9223372036832400000),
    TypeCase("timestamptz", "timestamptz", "'9999-12-31 23:59:59.999999+00'", "9999-12-31T23:59:59.999999Z"),
    TypeCase("interval", "interval", "'-1 year 2 months 3 days 04:05:06.7'", -26024093300000),
    TypeCase("uuid", "uuid", "'00000000-0000-0000-0000-0000000000ff'", "00000000-0000-0000-0000-0000000000ff"),
    TypeCase("json", "json", """'{"a" : [1, null]}'""", '{"a" : [1, null]}'),
    TypeCase("jsonb", "jsonb", """'{"b": 1.50, "a": "é"}'""", '{"a": "é", "b": 1.50}'),
    TypeCase("xml", "xml", "'<a>é</a>'", "<a>é</a>"),
    TypeCase("inet", "inet", "'2001:db8::1/64'", "2001:db8::1/64"),
    TypeCase("macaddr", "macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
    TypeCase("bits", "bit varying(10)", "B'10110'", "Fg=="),
    TypeCase("integers", "integer[]", "'{1,NULL,-3}'", [1, None, -3]),
    TypeCase("texts", "text[]", """'{"a,b",NULL,""}'""", ["a,b", None, ""]),
    TypeCase("int4range", "int4range", "'[1,10)'", "[1,10)"),
    TypeCase("tstzrange", "tstzrange", "'[2020-01-01 00:00+00,)'", '["2020-01-01 00:00:00+00",)'),
    TypeCase(
        "point", "point", "'(1.5,-2)'", {"x": 1.5, "y": -2.0, "wkb": "AQEAAAAAAAAAAAD4PwAAAAAAAADA", "srid": None}
    ),
    TypeCase("oid", "oid", "4294967295", 4294967295),
)
TYPES = {"common": _COMMON}
_WORDS = ("a", "B", "b", "ä", "z", "Ж", "ж")
KEYS = (
    KeyCase("binary_text", 'text COLLATE "C"', _WORDS),
    KeyCase("icu_text", 'text COLLATE "und-x-icu"', _WORDS),
    KeyCase("padded_text", "char(3)", _WORDS),
)
