"""SQL Server's types with literals of their values."""

from __future__ import annotations

from tests.compare.rows import Kind

_DATES = ("'2018-07-13'", "'0001-01-01'", "'9999-12-31'", "'1582-10-15'", "'1969-12-31'")
_TIMES = ("'00:00:00'", "'10:23:45.678901'", "'23:59:59.999999'", "'12:00:00.1'")
_MOMENTS = (
    "'2018-07-13 11:23:45.345678'",
    "'0001-01-01 00:00:00'",
    "'9999-12-31 23:59:59.999'",
    "'1969-12-31 23:59:59.5'",
)
_OFFSETS = ("'2018-07-13 12:23:45.456 +11:00'", "'2020-02-29 00:00:00 -03:30'", "'1900-01-01 00:00:00.000001 +00:00'")
_TEXTS = ("''", "'it''s'", "'ab'", "' lead'", "'trail  '", "'tab\tend'", "'a\"b\\c'")
_UNICODE = ("N''", "N'Žluťoučký'", "N'日本 😀'", "N'x'", "N'a''b'")
_BYTES = ("0x", "0x00", "0x01020304", "0xFBEFFF00")


def _number(number: int) -> str:
    return str(number)


KINDS = (
    Kind("BIT", ("0", "1"), ("1", "0", "((1))")),
    Kind("TINYINT", ("0", "255", "7"), ("5",)),
    Kind("SMALLINT", ("-32768", "32767", "0"), ("-7",), _number),
    Kind("INT", ("-2147483648", "2147483647", "0", "1"), ("42", "-1", "(1 + 2)"), _number),
    Kind("BIGINT", ("-9223372036854775808", "9223372036854775807", "0"), ("3000000000",), _number),
    Kind("DECIMAL(10,2)", ("12345678.91", "-0.01", "0", "1.50"), ("1.5", "0"), lambda number: f"{number}.25"),
    Kind("DECIMAL(5,0)", ("99999", "-1", "0"), ("7",)),
    Kind("DECIMAL(38,10)", ("1234567890123456789012345678.0123456789", "-0.0000000001", "0"), ("0.5",)),
    Kind("NUMERIC(18,0)", ("999999999999999999", "0"), ("12",), _number),
    Kind("NUMERIC(5,5)", ("0.12345", "-0.00001"), ("0.1",)),
    Kind("MONEY", ("922337203685477.5807", "-0.0001", "12.5", "0"), ("1.25", "0")),
    Kind("SMALLMONEY", ("214748.3647", "-1", "0"), ("3.5",)),
    Kind("REAL", ("1.5", "-0.1", "3.4E38", "0", "1E-10"), ("1.5", "2")),
    Kind("FLOAT", ("1.7976931348623157E+308", "0.1", "-2.5E-10", "0", "100"), ("0.25", "1E3")),
    Kind("FLOAT(24)", ("0.25", "16777216"), ("1",)),
    Kind("DATE", _DATES, ("'2020-01-01'",)),
    Kind("TIME(0)", _TIMES, ("'01:02:03'",)),
    Kind("TIME(3)", _TIMES, ("'01:02:03.004'",)),
    Kind("TIME(6)", _TIMES, ("'01:02:03.000004'",)),
    Kind(
        "DATETIME",
        ("'2018-07-13 13:23:45.780'", "'1753-01-01 00:00:00'", "'9999-12-31 23:59:59.997'"),
        ("'2020-01-01'",),
    ),
    Kind("SMALLDATETIME", ("'2018-07-13 14:24:00'", "'1900-01-01'", "'2079-06-06 23:59:00'"), ("'2020-01-01 01:02'",)),
    Kind("DATETIME2(0)", _MOMENTS[:2], ("'2020-01-01 01:02:03'",)),
    Kind("DATETIME2(3)", _MOMENTS, ("'2020-01-01 01:02:03.5'",)),
    Kind("DATETIME2(6)", _MOMENTS, ("'2020-01-01 01:02:03.000004'",)),
    Kind("DATETIMEOFFSET(3)", _OFFSETS, ("'2020-01-01 01:02:03 +01:00'",)),
    Kind("DATETIMEOFFSET(6)", _OFFSETS),
    Kind("CHAR(8)", _TEXTS, ("'x'",), lambda number: f"'k{number}'"),
    Kind("VARCHAR(40)", _TEXTS, ("'x'", "''", "'it''s'"), lambda number: f"'key {number}'"),
    Kind("NCHAR(12)", _UNICODE[:2], ("N'y'",)),
    Kind("NVARCHAR(40)", _UNICODE, ("N'dé'", "'plain'"), lambda number: f"N'ключ {number}'"),
    Kind("VARCHAR(MAX)", _TEXTS, ("'m'",)),
    Kind("NVARCHAR(MAX)", _UNICODE),
    Kind("TEXT", _TEXTS[1:]),
    Kind("NTEXT", _UNICODE[1:]),
    Kind("XML", ("'<a b=\"1\"><c>x</c></a>'", "'<e/>'", "'<a>&amp;&lt;</a>'")),
    Kind(
        "UNIQUEIDENTIFIER",
        ("'6F9619FF-8B86-D011-B42D-00C04FC964FF'", "'00000000-0000-0000-0000-000000000000'"),
        (),
        lambda number: f"'00000000-0000-0000-0000-{number:012}'",
    ),
    Kind("BINARY(4)", _BYTES),
    Kind("VARBINARY(20)", _BYTES, ("0xFF",), lambda number: f"0x{number:08X}"),
    Kind("VARBINARY(MAX)", _BYTES),
    Kind("IMAGE", _BYTES[1:]),
)
