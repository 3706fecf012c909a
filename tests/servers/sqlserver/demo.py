"""The demo on the stand-in for SQL Server, or on a server given: `python -m tests.servers.sqlserver.demo [--keep]`.

TAILRACE_SQLSERVER_URL gives one. Its database `shop` is dropped and created again; the user is a member of sysadmin.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from tailrace.cli.demo import arguments, show
from tailrace.cli.demo_shop import DATABASE, DemoShop, Rows
from tailrace.override import override
from tailrace.sinks.replica.target import read_table
from tests.servers.sqlserver.client import GIVEN, SqlServerClient
from tests.servers.sqlserver.server import SqlServer

KEYS = {"customers": ("id",), "products": ("sku",), "orders": ("id",), "order_lines": ("order_id", "line_no")}
SCHEMA = """
CREATE TABLE customers (id int NOT NULL PRIMARY KEY, name nvarchar(60) NOT NULL, active bit NOT NULL);
CREATE TABLE products (
  sku varchar(20) NOT NULL PRIMARY KEY, title nvarchar(60) NOT NULL, price decimal(10,2), stock int);
CREATE TABLE orders (
  id int NOT NULL PRIMARY KEY, customer_id int NOT NULL, status varchar(10) NOT NULL, placed datetime2(3));
CREATE TABLE order_lines (order_id int NOT NULL, line_no smallint NOT NULL, sku varchar(20), quantity int,
  PRIMARY KEY (order_id, line_no));
"""
HISTORY = 1000


class SqlShop(DemoShop):
    """A shop in four captured tables. Implements DemoShop."""

    tables = tuple(KEYS)

    def __init__(self, server: SqlServer | SqlServerClient) -> None:
        self._server = server

    @override
    def load(self) -> None:
        self._server.create(DATABASE)
        with closing(self._server.connect(DATABASE)) as connection, connection.cursor() as cursor:
            cursor.execute(SCHEMA)
            for table in self.tables:
                named = f"@source_schema = 'dbo', @source_name = '{table}', @role_name = NULL"
                cursor.execute(f"EXEC sys.sp_cdc_enable_table {named}")
            _insert(cursor, "customers", ((n, f"Customer {n}", 1) for n in range(500)))
            _insert(cursor, "products", ((f"P-{n}", f"Product {n}", n % 90 + 0.99, 1000) for n in range(100)))
            placed = "2026-01-02T03:04:05.678"
            _insert(cursor, "orders", ((n, n % 500, "shipped", placed) for n in range(HISTORY)))
            lines = ((n, line, f"P-{n * line % 100}", line) for n in range(HISTORY) for line in (1, 2, 3))
            _insert(cursor, "order_lines", lines)

    @override
    def url(self) -> str:
        server = self._server
        user, password = (quote(each, safe="") for each in (server.user, server.password))
        return f"mssql://{user}:{password}@{server.host}:{server.port}/{DATABASE}"

    @contextmanager
    @override
    def open(self) -> Iterator[Callable[[], None]]:
        with closing(self._server.connect(DATABASE)) as connection, connection.cursor() as cursor:
            yield Traffic(cursor).step
        self._server.settle(DATABASE)

    @override
    def compared(self, root: str, options: Mapping[str, str]) -> Iterator[tuple[str, Rows, Rows]]:
        with closing(self._server.connect(DATABASE)) as connection, connection.cursor() as cursor:
            for table, key in KEYS.items():
                cursor.execute(f"SELECT * FROM {table}")
                names = [column[0] for column in cursor.description]
                found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
                kept = read_table(root, f"{DATABASE}.dbo.{table}", options).to_pylist()
                yield table, _by_key(key, found), _by_key(key, kept)


class Traffic:
    """Live traffic; each `step` is one transaction."""

    def __init__(self, cursor: Any) -> None:
        self._cursor, self._random, self._number = cursor, random.Random(1), HISTORY
        self._actions: dict[Callable[[], str], int] = {
            self._place: 40,
            self._ship: 25,
            self._restock: 20,
            self._cancel: 10,
            self._rename: 5,
        }

    def step(self) -> None:
        """Make a change."""
        (action,) = self._random.choices(list(self._actions), list(self._actions.values()))
        self._cursor.execute(f"BEGIN TRANSACTION; {action()}; COMMIT")

    def _place(self) -> str:
        """An order takes its products from the stock."""
        self._number += 1
        sku, quantity = self._random.randrange(100), self._random.randint(1, 4)
        return (
            f"INSERT INTO orders VALUES ({self._number}, {self._random.randrange(500)}, 'new', SYSDATETIME()); "
            f"INSERT INTO order_lines VALUES ({self._number}, 1, 'P-{sku}', {quantity}); "
            f"UPDATE products SET stock = stock - {quantity} WHERE sku = 'P-{sku}'"
        )

    def _ship(self) -> str:
        return "UPDATE orders SET status = 'shipped' WHERE status = 'new' AND id % 3 = 0"

    def _restock(self) -> str:
        return f"UPDATE products SET stock = stock + 10 WHERE sku = 'P-{self._random.randrange(100)}'"

    def _cancel(self) -> str:
        order = self._random.randrange(self._number)
        return f"DELETE FROM order_lines WHERE order_id = {order}; DELETE FROM orders WHERE id = {order}"

    def _rename(self) -> str:
        number = self._random.randrange(500)
        return f"UPDATE customers SET name = N'Kundin {number} Größe', active = 0 WHERE id = {number}"


def _insert(cursor: Any, table: str, rows: Iterator[tuple[object, ...]]) -> None:
    listed = [f"({', '.join(repr(value) for value in row)})" for row in rows]
    for start in range(0, len(listed), 500):
        cursor.execute(f"INSERT INTO {table} VALUES {', '.join(listed[start : start + 500])}")


def _by_key(key: tuple[str, ...], found: list[dict[str, Any]]) -> Rows:
    return {tuple(row[name] for name in key): row for row in found}


if __name__ == "__main__":
    url = os.environ.get(GIVEN)
    if url:
        show("the demo on the server given", lambda: SqlServerClient(url), SqlShop, **arguments(sys.argv))
    else:
        show("the stand-in for SQL Server", SqlServer, SqlShop, **arguments(sys.argv))
