"""Db2's types with literals of their values, as far as the stand-in has them."""

from __future__ import annotations

from tests.compare.rows import Kind


def _number(number: int) -> str:
    return str(number)


KINDS = (
    Kind("SMALLINT", ("-32768", "32767", "0"), ("7",), _number),
    Kind("INTEGER", ("-2147483648", "2147483647", "0"), ("5", "-1"), _number),
    Kind("BIGINT", ("-9223372036854775808", "9223372036854775807", "0"), ("3000000000",), _number),
    Kind("REAL", ("-3.4E+38", "1.25", "0.1", "0"), ("1.5",)),
    Kind("DOUBLE", ("1.7E+308", "-0.1", "0", "100"), ("0.25",)),
    Kind("FLOAT(24)", ("-1.5", "0.1")),
    Kind("DECIMAL(5,0)", ("99999", "-1", "0"), ("7",), _number),
    Kind("DECIMAL(10,2)", ("12345678.91", "-0.01", "1.50", "0"), ("1.5", "0"), lambda number: f"{number}.25"),
    Kind("DECIMAL(31,10)", ("123456789012345678901.0123456789", "-0.0000000001"), ("0.5",)),
    Kind("NUMERIC(8,3)", ("12345.678", "-0.001"), ("3.125",)),
    Kind("BOOLEAN", ("TRUE", "FALSE")),
    Kind("CHAR(8)", ("''", "'abc'", "' x'", "'é'"), ("'x'",), lambda number: f"'k{number}'"),
    Kind(
        "VARCHAR(100)",
        ("''", "'it''s'", "'Grüße, 日本語 €'", "'a\"b\\c'", "'trail  '"),
        ("'it''s'", "''"),
        lambda number: f"'key {number}'",
    ),
    Kind("CHAR(4) FOR BIT DATA", ("X'01020304'", "X'00000000'"), (), lambda number: f"X'{number:08X}'"),
    Kind("VARCHAR(20) FOR BIT DATA", ("X'DEADBEEF'", "X''", "X'00'")),
    Kind("DATE", ("'2018-06-20'", "'0001-01-01'", "'9999-12-31'", "'1582-10-15'", "'1969-12-31'"), ("'2022-01-01'",)),
    Kind("TIME", ("'15:13:16'", "'00:00:00'", "'23:59:59'"), ("'01:02:03'",)),
    Kind(
        "TIMESTAMP",
        (
            "'2018-06-20 15:13:16.945104'",
            "'0001-01-01 00:00:00'",
            "'9999-12-31 23:59:59.999999'",
            "'1969-12-31 23:59:59.5'",
        ),
        ("'2022-01-01 01:02:03'",),
    ),
)
