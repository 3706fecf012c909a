"""The types and keys that `verify` tries on PostgreSQL: declaration, value, and what an event has of it."""

from __future__ import annotations

from tailrace.connectors.probe import KeyCase, TypeCase

TYPES = (
    TypeCase("smallint_min", "smallint", "'-32768'", None),
    TypeCase("integer_min", "integer", "'-2147483648'", None),
    TypeCase("bigint_max", "bigint", "9223372036854775807", None),
    TypeCase("numeric_wide", "numeric(38,10)", "'-1234567890123456789012345678.0123456789'", None),
    TypeCase("numeric_free", "numeric", "'1e-20'", None),
    TypeCase("numeric_nan", "numeric", "'NaN'", None),
    TypeCase("real", "real", "'3.4028235e38'", None),
    TypeCase("double", "double precision", "'-1.7976931348623157e308'", None),
    TypeCase("double_nan", "double precision", "'NaN'", None),
    TypeCase("money", "money", "-12.34::numeric::money", None),
    TypeCase("boolean", "boolean", "true", None),
    TypeCase("text_c", 'text COLLATE "C"', "'Ünïcödé 漢字 🐘'", None),
    TypeCase("text_icu", 'text COLLATE "und-x-icu"', "'Жук ß İı'", None),
    TypeCase("text_default", "text", "E'tab\\\\t quote\\\\' null'", None),
    TypeCase("char_padded", "char(5)", "'ab'", None),
    TypeCase("varchar_empty", "varchar(10)", "''", None),
    TypeCase("bytea", "bytea", r"'\x00ff'", None),
    TypeCase("date_bc", "date", "'0044-03-15 BC'", None),
    TypeCase("date_last", "date", "'5874897-12-31'", None),
    TypeCase("date_infinite", "date", "'infinity'", None),
    TypeCase("time_last", "time", "'24:00:00'", None),
    TypeCase("timetz", "timetz", "'23:59:59.999999+05:30'", None),
    TypeCase("timestamp_first", "timestamp", "'0001-01-01 00:00:00.000001'", None),
    TypeCase("timestamp_infinite", "timestamp", "'-infinity'", None),
    TypeCase("timestamptz", "timestamptz", "'9999-12-31 23:59:59.999999+00'", None),
    TypeCase("interval", "interval", "'-1 year 2 months 3 days 04:05:06.7'", None),
    TypeCase("uuid", "uuid", "'00000000-0000-0000-0000-0000000000ff'", None),
    TypeCase("json", "json", """'{"a" : [1, null]}'""", None),
    TypeCase("jsonb", "jsonb", """'{"b": 1.50, "a": "é"}'""", None),
    TypeCase("xml", "xml", "'<a>é</a>'", None),
    TypeCase("inet", "inet", "'2001:db8::1/64'", None),
    TypeCase("macaddr", "macaddr", "'08:00:2b:01:02:03'", None),
    TypeCase("bits", "bit varying(10)", "B'10110'", None),
    TypeCase("integers", "integer[]", "'{1,NULL,-3}'", None),
    TypeCase("texts", "text[]", """'{"a,b",NULL,""}'""", None),
    TypeCase("int4range", "int4range", "'[1,10)'", None),
    TypeCase("tstzrange", "tstzrange", "'[2020-01-01 00:00+00,)'", None),
    TypeCase("point", "point", "'(1.5,-2)'", None),
    TypeCase("oid", "oid", "4294967295", None),
)
_WORDS = ("a", "B", "b", "ä", "z", "Ж", "ж")
KEYS = (
    KeyCase("binary_text", 'text COLLATE "C"', _WORDS),
    KeyCase("icu_text", 'text COLLATE "und-x-icu"', _WORDS),
    KeyCase("padded_text", "char(3)", _WORDS),
)
