"""Values of every type: stored, compared and sent exactly as SQL Server has them."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pytds
import pytest

from .conftest import Client
from .server import SqlServer

UTC = datetime.timezone.utc


def offset(minutes: int) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(minutes=minutes))


# Declaration, literal, value.
VALUES: list[tuple[str, str, Any]] = [
    ("BIT", "1", True),
    ("BIT", "'false'", False),
    ("TINYINT", "255", 255),
    ("SMALLINT", "-32768", -32768),
    ("INT", "2147483647", 2147483647),
    ("BIGINT", "-9223372036854775808", -9223372036854775808),
    ("DECIMAL(5,0)", "-99999", Decimal("-99999")),
    ("DECIMAL(18,4)", "12345678901234.5678", Decimal("12345678901234.5678")),
    ("NUMERIC(19,0)", "9999999999999999999", Decimal("9999999999999999999")),
    ("DECIMAL(38,10)", "-1234567890123456789012345678.0123456789", Decimal("-1234567890123456789012345678.0123456789")),
    ("DECIMAL(5,2)", "1.005", Decimal("1.01")),
    ("MONEY", "922337203685477.5807", Decimal("922337203685477.5807")),
    ("MONEY", "-0.0001", Decimal("-0.0001")),
    ("SMALLMONEY", "-214748.3648", Decimal("-214748.3648")),
    ("REAL", "1.5", 1.5),
    ("FLOAT", "1.7976931348623157E+308", 1.7976931348623157e308),
    ("FLOAT", "-2.5E-300", -2.5e-300),
    ("FLOAT(24)", "-1024", -1024.0),
    ("DATE", "'0001-01-01'", datetime.date(1, 1, 1)),
    ("DATE", "'9999-12-31'", datetime.date(9999, 12, 31)),
    ("TIME(0)", "'10:23:45.5'", datetime.time(10, 23, 46)),
    ("TIME(3)", "'23:59:59.999'", datetime.time(23, 59, 59, 999000)),
    ("TIME(7)", "'10:23:45.6789012'", datetime.time(10, 23, 45, 678901)),
    ("DATETIME", "'1753-01-01'", datetime.datetime(1753, 1, 1)),
    ("DATETIME", "'2020-02-29 23:59:59.999'", datetime.datetime(2020, 3, 1)),
    ("DATETIME", "'2020-01-01 00:00:00.008'", datetime.datetime(2020, 1, 1, 0, 0, 0, 7000)),
    ("SMALLDATETIME", "'2020-01-01 10:30:30'", datetime.datetime(2020, 1, 1, 10, 31)),
    ("DATETIME2(0)", "'2020-01-01 10:30:30.5'", datetime.datetime(2020, 1, 1, 10, 30, 31)),
    ("DATETIME2(6)", "'1969-12-31 23:59:59.999999'", datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("DATETIME2", "'9999-12-31T23:59:59.9999990'", datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("DATETIMEOFFSET(0)", "'2018-07-13 12:23:45 +11:00'", datetime.datetime(2018, 7, 13, 12, 23, 45, 0, offset(660))),
    ("DATETIMEOFFSET", "'1970-01-01 00:00:00.000001 -12:00'", datetime.datetime(1970, 1, 1, 0, 0, 0, 1, offset(-720))),
    ("DATETIMEOFFSET(3)", "'2020-01-01'", datetime.datetime(2020, 1, 1, tzinfo=offset(0))),
    ("CHAR(5)", "'ab'", "ab   "),
    ("NCHAR(3)", "N'ž'", "ž  "),
    ("VARCHAR(9)", "'trail  '", "trail  "),
    ("VARCHAR(9)", "''", ""),
    ("VARCHAR(9)", "N'žŁ€'", "ž?€"),
    ("VARCHAR(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8", "N'日本 😀'", "日本 😀"),
    ("VARCHAR(20) COLLATE Czech_CI_AS", "N'kůň'", "kůň"),
    ("NVARCHAR(20)", "N'Žluťoučký 日本 😀'", "Žluťoučký 日本 😀"),
    ("VARCHAR(MAX)", "REPLICATE(CAST('abc' AS VARCHAR(MAX)), 50000)", "abc" * 50000),
    ("NVARCHAR(MAX)", "REPLICATE(CAST(N'ž😀' AS NVARCHAR(MAX)), 50000)", "ž😀" * 50000),
    ("NVARCHAR(MAX)", "N''", ""),
    ("TEXT", "'text'", "text"),
    ("NTEXT", "N'ntext ü'", "ntext ü"),
    ("XML", '\'<?xml version="1.0"?><a b="1"><c></c></a>\'', '<a b="1"><c/></a>'),
    ("BINARY(4)", "0x01", b"\x01\0\0\0"),
    ("VARBINARY(9)", "0x", b""),
    ("VARBINARY(MAX)", "0x00010203", b"\0\1\2\3"),
    ("IMAGE", "0x22", b"\x22"),
    ("UNIQUEIDENTIFIER", "'6F9619FF-8B86-D011-B42D-00C04FC964FF'", uuid.UUID("6F9619FF-8B86-D011-B42D-00C04FC964FF")),
    ("HIERARCHYID", "'/1/'", b"\x58"),
    ("HIERARCHYID", "'/1.1/'", b"\x62\xc0"),
    (
        "GEOMETRY",
        "geometry::STGeomFromText('POINT (3 4)', 0)",
        bytes.fromhex("00000000010c00000000000008400000000000001040"),
    ),
]


@pytest.fixture(scope="module")
def kept(server: SqlServer) -> Any:
    server.execute("CREATE DATABASE test_db")
    return Client(server, "test_db")


@pytest.fixture(scope="module", autouse=True)
def table(server: SqlServer, kept: Client) -> Any:
    """One table with a column for each value, once with it and once all null."""
    columns = ", ".join(f"c{number} {declared}" for number, (declared, _, _) in enumerate(VALUES))
    kept.run(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
    kept.run(f"INSERT t VALUES (1, {', '.join(literal for _, literal, _ in VALUES)})")
    kept.run("INSERT t (id) VALUES (2)")
    yield
    kept.close()
    server.execute("DROP DATABASE test_db")


@pytest.mark.parametrize(
    "number", range(len(VALUES)), ids=[f"{declared} {literal[:40]}" for declared, literal, _ in VALUES]
)
def test_value(kept: Client, number: int) -> None:
    declared, _, expected = VALUES[number]
    value, null = (row[0] for row in kept.run(f"SELECT c{number} FROM t"))
    assert null is None
    assert value == expected
    assert type(value) is type(expected) or declared == "REAL"
    if declared.startswith("DATETIMEOFFSET"):
        assert value.utcoffset() == expected.utcoffset()


def test_all_values_in_one_row(server: SqlServer, kept: Client) -> None:
    """Rows of many columns, with and without nulls, by another client too."""
    expected = tuple(value for _, _, value in VALUES)
    assert kept.run("SELECT * FROM t") == [(1, *expected), (2, *(None for _ in VALUES))]
    with (
        pytds.connect(server.host, "test_db", server.user, server.password, port=server.port) as other,
        other.cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM t")
        full, empty = cursor.fetchall()
    assert empty == (2, *(None for _ in VALUES))
    clr = ("HIERARCHYID", "GEOMETRY")  # python-tds returns objects of its own, and does not know UTF-8 collations
    for (declared, _, value), found in zip(VALUES, full[1:], strict=True):
        if declared not in clr and "UTF8" not in declared and value != "ž?€":
            assert found == value or (isinstance(value, Decimal) and Decimal(found) == value), declared


def test_columns_that_are_not_nullable(kept: Client) -> None:
    kept.run(
        "CREATE TABLE n (a INT NOT NULL, b BIT NOT NULL, c FLOAT NOT NULL, d MONEY NOT NULL, e DATETIME NOT NULL,"
        " f VARCHAR(5) NOT NULL)"
    )
    kept.run("INSERT n VALUES (1, 1, 1.5, 2.5, '2020-01-01', 'x')")
    assert kept.run("SELECT * FROM n") == [(1, True, 1.5, Decimal("2.5000"), datetime.datetime(2020, 1, 1), "x")]


def test_uniqueidentifiers_sort_by_their_last_bytes(kept: Client) -> None:
    first, second = "FFFFFFFF-FFFF-FFFF-FFFF-000000000001", "00000000-0000-0000-0000-000000000002"
    kept.run("CREATE TABLE g (id UNIQUEIDENTIFIER PRIMARY KEY)")
    kept.run(f"INSERT g VALUES ('{second}'), ('{first}')")
    assert kept.run("SELECT id FROM g") == [(uuid.UUID(first),), (uuid.UUID(second),)]
    assert kept.run(f"SELECT COUNT(*) FROM g WHERE id > '{first}'") == [(1,)]


def test_rowversion_grows(kept: Client) -> None:
    kept.run("CREATE TABLE v (id INT PRIMARY KEY, version ROWVERSION); INSERT v (id) VALUES (1), (2)")
    first, second = (row[0] for row in kept.run("SELECT version FROM v"))
    kept.run("UPDATE v SET id = 3 WHERE id = 1")
    assert len(first) == 8
    assert first < second < kept.value("SELECT version FROM v WHERE id = 3") == kept.value("SELECT @@DBTS")
    assert kept.error("INSERT v (id, version) VALUES (5, 0x01)") == 273


def test_sql_variant_keeps_the_type(kept: Client) -> None:
    kept.run("CREATE TABLE s (id INT PRIMARY KEY, v SQL_VARIANT)")
    kept.run("INSERT s VALUES (1, 5), (2, N'text'), (3, CAST(1.5 AS DECIMAL(9,2))), (4, NULL)")
    found = kept.run(
        "SELECT CAST(SQL_VARIANT_PROPERTY(v, 'BaseType') AS NVARCHAR(20)), CAST(v AS VARCHAR(20)) FROM s ORDER BY id"
    )
    assert found == [("int", "5"), ("nvarchar", "text"), ("decimal", "1.50"), (None, None)]


def test_nul_and_lone_surrogates_survive(kept: Client) -> None:
    assert kept.value("SELECT N'a' + NCHAR(0) + N'b'") == "a\0b"
    assert kept.value("SELECT CAST(N'a' + NCHAR(55357) AS VARBINARY(8))") == b"a\0=\xd8"


def test_seventh_fractional_digit(kept: Client) -> None:
    kept.run("CREATE TABLE f (a DATETIME2, b TIME, c DATETIMEOFFSET)")
    kept.run(
        "INSERT f VALUES ('2020-01-01 00:00:00.1234567', '00:00:00.1234567', '2020-01-01 00:00:00.1234567 +01:00')"
    )
    assert kept.run("SELECT CAST(a AS VARCHAR(40)), CAST(b AS VARCHAR(40)), CAST(c AS VARCHAR(40)) FROM f") == [
        ("2020-01-01 00:00:00.1234567", "00:00:00.1234567", "2020-01-01 00:00:00.1234567 +01:00")
    ]
