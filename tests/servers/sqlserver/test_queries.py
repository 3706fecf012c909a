"""T-SQL on the double: what statements yield, and the numbers of the errors."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from .conftest import Client

SETUP = """
CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(10), price DECIMAL(10,2));
INSERT items VALUES (1, 'x', 1.5), (2, 'Y', 2.5), (3, 'y ', NULL)
"""

QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT 1, 'a', N'ž', 1.50, NULL, 0x0102, 1e0", [(1, "a", "ž", Decimal("1.50"), None, b"\x01\x02", 1.0)]),
    ("SELECT 10 / 4, 10 / 4.0, 7 % 3, -5 / 2, 1 + '2', 'a' + NULL", [(2, Decimal("2.5"), 1, -2, 3, None)]),
    ("SELECT 5 & 3, 5 | 3, 5 ^ 3, ~5", [(1, 7, 6, -6)]),
    ("SELECT name, COUNT(*) FROM items GROUP BY name ORDER BY 2 DESC", [("Y", 2), ("x", 1)]),
    ("SELECT COUNT(DISTINCT name), SUM(price), AVG(price) FROM items", [(2, Decimal("4.00"), Decimal("2.000000"))]),
    ("SELECT id FROM items WHERE name = 'Y' ORDER BY id DESC", [(3,), (2,)]),
    ("SELECT id FROM items WHERE name LIKE '[xz]%'", [(1,)]),
    ("SELECT id FROM items WHERE name COLLATE Latin1_General_BIN2 = 'y'", [(3,)]),
    ("SELECT TOP 2 id FROM items ORDER BY price", [(3,), (1,)]),
    ("SELECT id FROM items ORDER BY price DESC OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY", [(1,), (3,)]),
    ("SELECT a.id, b.id FROM items a LEFT JOIN items b ON b.id = a.id + 1 ORDER BY 1", [(1, 2), (2, 3), (3, None)]),
    ("SELECT i.id, v.value FROM items i CROSS APPLY STRING_SPLIT('p,q', ',') v WHERE i.id = 1", [(1, "p"), (1, "q")]),
    ("SELECT id FROM items WHERE price > ALL (SELECT 1.0) AND EXISTS (SELECT 1)", [(1,), (2,)]),
    ("SELECT id, ROW_NUMBER() OVER (ORDER BY price DESC) FROM items ORDER BY id", [(1, 2), (2, 1), (3, 3)]),
    ("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT MAX(i) FROM n", [(3,)]),
    ("SELECT 1 UNION SELECT 1 UNION ALL SELECT 2 ORDER BY 1 DESC", [(2,), (1,)]),
    ("SELECT s FROM (VALUES (1, 'a'), (2, 'b')) v(i, s) WHERE i = 2", [("b",)]),
    ("SELECT CASE WHEN price > 2 THEN 'much' ELSE N'little' END FROM items", [("little",), ("much",), ("little",)]),
    ("SELECT ISNULL(NULL, 'x'), COALESCE(NULL, 1, 2), NULLIF(1, 1), IIF(1 = 1, 'a', 'b')", [("x", 1, None, "a")]),
    ("SELECT LEN('ab  '), DATALENGTH(N'ab'), LEN(N'😀')", [(2, 4, 2)]),
    ("SELECT REPLACE('aAb', 'a', 'z'), CHARINDEX('B', 'abc'), STUFF('abc', 2, 1, 'ZZ')", [("zzb", 2, "aZZc")]),
    ("SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY id DESC) FROM items", [("y ,Y,x",)]),
    ("SELECT CONVERT(VARCHAR(8), CAST('2020-02-03' AS DATE), 112), CAST(1.5 AS VARCHAR(9))", [("20200203", "1.5")]),
    ("SELECT CONVERT(VARCHAR(20), 0x0A0B, 1), CONVERT(VARBINARY(4), '0x0A0B', 1)", [("0x0A0B", b"\x0a\x0b")]),
    (
        "SELECT CAST(258 AS BINARY(4)), CAST(0x0102 AS INT), CAST(N'ab' AS VARBINARY(9))",
        [(b"\0\0\1\2", 258, b"a\0b\0")],
    ),
    ("SELECT CAST(1.5e10 AS VARCHAR(20)), CAST(CAST(1234.5678 AS MONEY) AS VARCHAR(20))", [("1.5e+010", "1234.57")]),
    ("SELECT DATEDIFF(DAY, '2020-01-01', '2020-03-01'), DATEPART(WEEKDAY, '2020-01-01')", [(60, 4)]),
    ("SELECT DATEADD(MONTH, 1, '2020-01-31')", [(datetime.datetime(2020, 2, 29),)]),
    ("SELECT DATEPART(TZOFFSET, TODATETIMEOFFSET('2020-01-01', '-03:30'))", [(-210,)]),
    ("SELECT CONVERT(VARCHAR(40), CAST('2020-01-02 03:04:05.678' AS DATETIME))", [("Jan  2 2020  3:04AM",)]),
    ("SELECT CAST(TRY_CAST('12' AS INT) AS VARCHAR(4)), TRY_CAST('x' AS INT)", [("12", None)]),
    (
        "SELECT DB_NAME(), USER_NAME(), SUSER_SNAME(), OBJECT_NAME(OBJECT_ID('items'))",
        [("test_db", "dbo", "sa", "items")],
    ),
    ("SELECT name FROM sys.databases WHERE name = 'TEST_DB'", [("test_db",)]),
    ("SELECT COUNT(*) FROM test_db..items", [(3,)]),
    ("SELECT COUNT(*) FROM [test_db].[dbo].[items] WITH (NOLOCK)", [(3,)]),
]

ERRORS = [
    ("SELECT * FROM nothing", 208),
    ("SELECT nothing FROM items", 207),
    ("SELECT id FROM items a JOIN items b ON a.id = b.id", 209),
    ("SELECT * FROM other_db.dbo.t", 208),
    ("SELEC 1", 2812),
    ("SELECT 1 FROM", 102),
    ("SELECT nothing()", 195),
    ("SELECT @nothing", 137),
    ("SELECT 1 / 0", 8134),
    ("SELECT CAST('abc' AS INT)", 245),
    ("SELECT CAST('abc' AS DECIMAL(5, 2))", 8114),
    ("SELECT CAST('abc' AS DATETIME2)", 241),
    ("SELECT CAST('1700-01-01' AS DATETIME)", 242),
    ("SELECT CAST('abc' AS UNIQUEIDENTIFIER)", 8169),
    ("SELECT CAST(300 AS TINYINT)", 220),
    ("SELECT 2147483647 + 1", 8115),
    ("SELECT (SELECT id FROM items)", 512),
    ("INSERT items VALUES (1, 'z', 1)", 2627),
    ("INSERT items VALUES (9, 'much too long', 1)", 2628),
    ("INSERT items (id) VALUES (NULL)", 515),
    ("INSERT items VALUES (1)", 213),
    ("CREATE TABLE items (id INT)", 2714),
    ("DROP TABLE nothing", 3701),
    ("CREATE DATABASE test_db", 1801),
    ("USE nothing", 911),
    ("COMMIT", 3902),
    ("ROLLBACK", 3903),
    ("EXEC nothing", 2812),
    ("RAISERROR('%s is %d', 16, 1, 'x', 5)", 50000),
    ("THROW 50001, 'thrown', 1", 50001),
]


@pytest.fixture(scope="module")
def items(server: Any) -> Any:
    server.execute("CREATE DATABASE test_db")
    client = Client(server, "test_db")
    client.run(SETUP)
    yield client
    client.close()
    server.execute("DROP DATABASE test_db")


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=[query for query, _ in QUERIES])
def test_query(items: Client, query: str, expected: list[tuple[Any, ...]]) -> None:
    assert items.run(query) == expected


@pytest.mark.parametrize(("statement", "number"), ERRORS, ids=[statement for statement, _ in ERRORS])
def test_error(items: Client, statement: str, number: int) -> None:
    assert items.error(statement) == number
    assert items.run("SELECT COUNT(*) FROM items") == [(3,)]
