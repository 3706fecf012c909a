"""The types and keys that `verify` tries on SQL Server: declaration, value, and what an event has of it."""

from __future__ import annotations

from tailrace.connectors.probe import KeyCase, TypeCase

_CYRILLIC, _UTF8 = "COLLATE Cyrillic_General_CI_AS", "COLLATE Latin1_General_100_CI_AS_SC_UTF8"
_TURKISH = "COLLATE Turkish_CI_AS"

TYPES = (
    TypeCase("bit", "bit", "1", None),
    TypeCase("tinyint_max", "tinyint", "255", None),
    TypeCase("smallint_min", "smallint", "-32768", None),
    TypeCase("int_max", "int", "2147483647", None),
    TypeCase("bigint_min", "bigint", "-9223372036854775808", None),
    TypeCase("decimal_wide", "decimal(38,10)", "-1234567890123456789012345678.0123456789", None),
    TypeCase("numeric_whole", "numeric(19,0)", "9999999999999999999", None),
    TypeCase("money_max", "money", "922337203685477.5807", None),
    TypeCase("smallmoney_min", "smallmoney", "-214748.3648", None),
    TypeCase("real", "real", "1.5", None),
    TypeCase("float_max", "float", "1.7976931348623157E+308", None),
    TypeCase("date_first", "date", "'0001-01-01'", None),
    TypeCase("date_last", "date", "'9999-12-31'", None),
    TypeCase("time_0", "time(0)", "'10:23:45.5'", None),
    TypeCase("time_7", "time(7)", "'23:59:59.9999999'", None),
    TypeCase("datetime_first", "datetime", "'1753-01-01'", None),
    TypeCase("datetime_rounded", "datetime", "'2020-02-29T23:59:59.999'", None),
    TypeCase("smalldatetime", "smalldatetime", "'2020-01-01T10:30:30'", None),
    TypeCase("datetime2_0", "datetime2(0)", "'2020-01-01T10:30:30.5'", None),
    TypeCase("datetime2_6", "datetime2(6)", "'1969-12-31T23:59:59.999999'", None),
    TypeCase("datetime2_7", "datetime2(7)", "'2020-02-29T23:59:59.9999999'", None),
    TypeCase("datetimeoffset", "datetimeoffset(7)", "'2018-07-13T12:23:45.1234567+11:00'", None),
    TypeCase("char_padded", "char(5)", "'ab'", None),
    TypeCase("varchar_empty", "varchar(9)", "''", None),
    TypeCase("varchar_cyrillic", f"varchar(20) {_CYRILLIC}", "N'Жук'", None),
    TypeCase("varchar_utf8", f"varchar(40) {_UTF8}", "N'漢字 🐘'", None),
    TypeCase("varchar_turkish", f"varchar(20) {_TURKISH}", "N'İıŞğ'", None),
    TypeCase("char_cyrillic_max", f"varchar(max) {_CYRILLIC}", "N'Жук'", None),
    TypeCase("nchar_padded", "nchar(3)", "N'ž'", None),
    TypeCase("nvarchar", "nvarchar(40)", "N'Žluťoučký 漢字 🐘'", None),
    TypeCase("nvarchar_max", "nvarchar(max)", "REPLICATE(CONVERT(nvarchar(max), N'ž'), 9000)", "ž" * 9000),
    TypeCase("text", "text", "'text'", None),
    TypeCase("ntext", "ntext", "N'ntext ü'", None),
    TypeCase("xml", "xml", "N'<a b=\"1\">é</a>'", None),
    TypeCase("binary_padded", "binary(4)", "0x01", None),
    TypeCase("varbinary_empty", "varbinary(9)", "0x", None),
    TypeCase("varbinary_max", "varbinary(max)", "0x00010203", None),
    TypeCase("image", "image", "0x22", None),
    TypeCase("uniqueidentifier", "uniqueidentifier", "'6F9619FF-8B86-D011-B42D-00C04FC964FF'", None),
    TypeCase("hierarchyid", "hierarchyid", "'/1.1/'", None),
)
KEYS = (
    KeyCase("cyrillic_varchar", f"varchar(20) {_CYRILLIC}", ("z", "а", "Б", "Жук", "Ю", "Яма", "яр")),
    KeyCase("utf8_varchar", f"varchar(40) {_UTF8}", ("a", "é", "z", "Ж", "漢字", "🐘")),
    KeyCase("turkish_nvarchar", f"nvarchar(20) {_TURKISH}", ("I", "i", "ı2", "İ2", "ş", "z")),
    KeyCase(
        "uniqueidentifier",
        "uniqueidentifier",
        tuple(f"{first}000000-0000-0000-0000-0000000000{last}" for first, last in (("01", "FF"), ("FF", "01"), ("7F", "80"))),
    ),
)
