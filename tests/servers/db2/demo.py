"""The demo on the stand-in for Db2: `python -m tests.servers.db2.demo [--keep]`."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tailrace.cli.demo import arguments, show
from tailrace.cli.demo_shop import DemoShop, Rows
from tailrace.override import override
from tailrace.sinks.replica.target import read_table
from tests.servers.db2.client import Session
from tests.servers.db2.server import Db2

SCHEMA = "SHOP"
KEYS = {"CUSTOMERS": ("ID",), "PRODUCTS": ("SKU",), "ORDERS": ("ID",), "ORDER_LINES": ("ORDER_ID", "LINE_NO")}
TABLES = (
    "CREATE TABLE SHOP.CUSTOMERS "
    "(ID INTEGER NOT NULL PRIMARY KEY, NAME VARCHAR(60) NOT NULL, ACTIVE SMALLINT NOT NULL)",
    "CREATE TABLE SHOP.PRODUCTS "
    "(SKU VARCHAR(20) NOT NULL PRIMARY KEY, TITLE VARCHAR(60) NOT NULL, PRICE DECIMAL(10,2), STOCK INTEGER)",
    "CREATE TABLE SHOP.ORDERS "
    "(ID INTEGER NOT NULL PRIMARY KEY, CUSTOMER_ID INTEGER NOT NULL, STATUS VARCHAR(10) NOT NULL, PLACED TIMESTAMP)",
    "CREATE TABLE SHOP.ORDER_LINES (ORDER_ID INTEGER NOT NULL, LINE_NO SMALLINT NOT NULL, SKU VARCHAR(20), "
    "QUANTITY INTEGER, PRIMARY KEY (ORDER_ID, LINE_NO))",
)
COLUMNS = {
    "CUSTOMERS": ("ID", "NAME", "ACTIVE"),
    "PRODUCTS": ("SKU", "TITLE", "PRICE", "STOCK"),
    "ORDERS": ("ID", "CUSTOMER_ID", "STATUS", "PLACED"),
    "ORDER_LINES": ("ORDER_ID", "LINE_NO", "SKU", "QUANTITY"),
}
HISTORY = 1000


class Db2Shop(DemoShop):
    """A shop in four registered tables. Implements DemoShop."""

    tables = tuple(KEYS)

    def __init__(self, server: Db2) -> None:
        self._server = server

    @override
    def load(self) -> None:
        with self._server.session() as session:
            session.rows(f"CREATE SCHEMA {SCHEMA}")
            for statement in TABLES:
                session.rows(statement)
            _insert(session, "CUSTOMERS", ((n, f"Customer {n}", 1) for n in range(500)))
            _insert(session, "PRODUCTS", ((f"P-{n}", f"Product {n}", n % 90 + 0.99, 1000) for n in range(100)))
            placed = "2026-01-02 03:04:05.678"
            _insert(session, "ORDERS", ((n, n % 500, "shipped", placed) for n in range(HISTORY)))
            lines = ((n, line, f"P-{n * line % 100}", line) for n in range(HISTORY) for line in (1, 2, 3))
            _insert(session, "ORDER_LINES", lines)
        self._server.capture(*((SCHEMA, table) for table in self.tables))

    @override
    def url(self) -> str:
        server = self._server
        place = f"{server.host}:{server.port}/{server.database}"
        return f"db2://{server.user}:{server.password}@{place}?securityMechanism=3"

    @contextmanager
    @override
    def open(self) -> Iterator[Callable[[], None]]:
        with self._server.session() as session:
            yield Traffic(session).step
        self._server.settle()

    @override
    def compared(self, root: str, options: Mapping[str, str]) -> Iterator[tuple[str, Rows, Rows]]:
        with self._server.session() as session:
            for table, key in KEYS.items():
                names = COLUMNS[table]
                listed = ", ".join("CAST(PRICE AS DOUBLE)" if name == "PRICE" else name for name in names)
                rows = session.rows(f"SELECT {listed} FROM {SCHEMA}.{table}")
                found = [dict(zip(names, row, strict=True)) for row in rows]
                kept = read_table(root, f"{SCHEMA}.{table}", options).to_pylist()
                for row in kept:
                    if "PRICE" in row:
                        row["PRICE"] = float(row["PRICE"])
                yield table, _by_key(key, found), _by_key(key, kept)


class Traffic:
    """Live traffic; each `step` is one transaction."""

    def __init__(self, session: Session) -> None:
        self._session, self._random, self._number = session, random.Random(1), HISTORY
        self._actions: dict[Callable[[], tuple[str, ...]], int] = {
            self._place: 40,
            self._ship: 25,
            self._restock: 20,
            self._cancel: 10,
            self._rename: 5,
        }

    def step(self) -> None:
        """Make a change."""
        (action,) = self._random.choices(list(self._actions), list(self._actions.values()))
        self._session.transaction(*action())

    def _place(self) -> tuple[str, ...]:
        """An order takes its products from the stock."""
        self._number += 1
        sku, quantity = self._random.randrange(100), self._random.randint(1, 4)
        return (
            f"INSERT INTO SHOP.ORDERS VALUES ({self._number}, {self._random.randrange(500)}, 'new', CURRENT TIMESTAMP)",
            f"INSERT INTO SHOP.ORDER_LINES VALUES ({self._number}, 1, 'P-{sku}', {quantity})",
            f"UPDATE SHOP.PRODUCTS SET STOCK = STOCK - {quantity} WHERE SKU = 'P-{sku}'",
        )

    def _ship(self) -> tuple[str, ...]:
        return ("UPDATE SHOP.ORDERS SET STATUS = 'shipped' WHERE STATUS = 'new' AND MOD(ID, 3) = 0",)

    def _restock(self) -> tuple[str, ...]:
        return (f"UPDATE SHOP.PRODUCTS SET STOCK = STOCK + 10 WHERE SKU = 'P-{self._random.randrange(100)}'",)

    def _cancel(self) -> tuple[str, ...]:
        order = self._random.randrange(self._number)
        return (f"DELETE FROM SHOP.ORDER_LINES WHERE ORDER_ID = {order}", f"DELETE FROM SHOP.ORDERS WHERE ID = {order}")

    def _rename(self) -> tuple[str, ...]:
        number = self._random.randrange(500)
        return (f"UPDATE SHOP.CUSTOMERS SET NAME = 'Kundin {number} Größe', ACTIVE = 0 WHERE ID = {number}",)


def _insert(session: Session, table: str, rows: Iterator[tuple[object, ...]]) -> None:
    listed = [f"({', '.join(repr(value) for value in row)})" for row in rows]
    for start in range(0, len(listed), 500):
        session.rows(f"INSERT INTO {SCHEMA}.{table} VALUES {', '.join(listed[start : start + 500])}")


def _by_key(key: tuple[str, ...], found: list[dict[str, object]]) -> Rows:
    return {tuple(row[name] for name in key): row for row in found}


if __name__ == "__main__":
    show("the stand-in for Db2", Db2, Db2Shop, **arguments(sys.argv))
