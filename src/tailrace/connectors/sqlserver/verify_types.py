"""The types and keys that `verify` tries on SQL Server: declaration, value, and what an event has of it."""

from __future__ import annotations

from tailrace.connectors.probe import KeyCase, TypeCase

# ruff: noqa: RUF001
_CYRILLIC, _UTF8 = "COLLATE Cyrillic_General_CI_AS", "COLLATE Latin1_General_100_CI_AS_SC_UTF8"
_TURKISH = "COLLATE Turkish_CI_AS"

_COMMON = (
    TypeCase("bit", "bit", "1", True),
    TypeCase("tinyint_max", "tinyint", "255", 255),
    TypeCase("smallint_min", "smallint", "-32768", -32768),
    TypeCase("int_max", "int", "2147483647", 2147483647),
    TypeCase("bigint_min", "bigint", "-9223372036854775808", -9223372036854775808),
    TypeCase(
        "decimal_wide",
        "decimal(38,10)",
        "-1234567890123456789012345678.0123456789",
        "-1234567890123456789012345678.0123456789",
    ),
    TypeCase("numeric_whole", "numeric(19,0)", "9999999999999999999", "9999999999999999999"),
    TypeCase("money_max", "money", "922337203685477.5807", "922337203685477.5807"),
    TypeCase("smallmoney_min", "smallmoney", "-214748.3648", "-214748.3648"),
    TypeCase("real", "real", "1.5", 1.5),
    TypeCase("float_max", "float", "1.7976931348623157E+308", 1.7976931348623157e308),
    TypeCase("date_first", "date", "'0001-01-01'", -719162),
    TypeCase("date_last", "date", "'9999-12-31'", 2932896),
    TypeCase("time_0", "time(0)", "'10:23:45.5'", 37426000),
    TypeCase("time_7", "time(7)", "'23:59:59.9999999'", 86399999999900),
    TypeCase("datetime_first", "datetime", "'1753-01-01'", -6847804800000),
    TypeCase("datetime_rounded", "datetime", "'2020-02-29T23:59:59.999'", 1583020800000),
    TypeCase("smalldatetime", "smalldatetime", "'2020-01-01T10:30:30'", 1577874660000),
    TypeCase("datetime2_0", "datetime2(0)", "'2020-01-01T10:30:30.5'", 1577874631000),
    TypeCase("datetime2_6", "datetime2(6)", "'1969-12-31T23:59:59.999999'", -1),
    TypeCase("datetime2_7", "datetime2(7)", "'2020-02-29T23:59:59.9999999'", 1583020799999999900),
    TypeCase(
        "datetimeoffset",
        "datetimeoffset(7)",
        "'2018-07-13T12:23:45.1234567+11:00'",
        "2018-07-13T12:23:45.1234567+11:00",
    ),
    TypeCase("char_padded", "char(5)", "'ab'", "ab   "),
    TypeCase("varchar_empty", "varchar(9)", "''", ""),
    TypeCase("varchar_cyrillic", f"varchar(20) {_CYRILLIC}", "N'Жук'", "Жук"),
    TypeCase("varchar_utf8", f"varchar(40) {_UTF8}", "N'漢字 🐘'", "漢字 🐘"),
    TypeCase("varchar_turkish", f"varchar(20) {_TURKISH}", "N'İıŞğ'", "İıŞğ"),
    TypeCase("nchar_padded", "nchar(3)", "N'ž'", "ž  "),
    TypeCase("nvarchar", "nvarchar(40)", "N'Žluťoučký 漢字 🐘'", "Žluťoučký 漢字 🐘"),
    TypeCase("binary_padded", "binary(4)", "0x01", "01000000"),
    TypeCase("varbinary_empty", "varbinary(9)", "0x", ""),
    TypeCase(
        "uniqueidentifier",
        "uniqueidentifier",
        "'6F9619FF-8B86-D011-B42D-00C04FC964FF'",
        "6F9619FF-8B86-D011-B42D-00C04FC964FF",
    ),
    TypeCase("hierarchyid", "hierarchyid", "'/1.1/'", "62c0"),
)
_LARGE = (
    TypeCase("varchar_max_cyrillic", f"varchar(max) {_CYRILLIC}", "N'Жук'", "Жук"),
    TypeCase("nvarchar_max", "nvarchar(max)", "REPLICATE(CONVERT(nvarchar(max), N'ž'), 9000)", "ž" * 9000),
    TypeCase("text", "text", "'text'", "text"),
    TypeCase("ntext", "ntext", "N'ntext ü'", "ntext ü"),
    TypeCase("xml", "xml", "N'<a b=\"1\">é</a>'", '<a b="1">é</a>'),
    TypeCase("varbinary_max", "varbinary(max)", "0x00010203", "00010203"),
    TypeCase("image", "image", "0x22", "22"),
)
TYPES = {"common": _COMMON, "large": _LARGE}
KEYS = (
    KeyCase("cyrillic_varchar", f"varchar(20) {_CYRILLIC}", ("z", "а", "Б", "Жук", "Ю", "Яма", "яр")),
    KeyCase("utf8_varchar", f"varchar(40) {_UTF8}", ("a", "é", "z", "Ж", "漢字", "🐘")),
    KeyCase("turkish_nvarchar", f"nvarchar(20) {_TURKISH}", ("Ankara", "Iğdır", "İzmir", "ışık", "şeker", "zil")),
    KeyCase(
        "uniqueidentifier",
        "uniqueidentifier",
        tuple(
            f"{first}000000-0000-0000-0000-0000000000{last}"
            for first, last in (("01", "FF"), ("FF", "01"), ("7F", "80"))
        ),
    ),
)
