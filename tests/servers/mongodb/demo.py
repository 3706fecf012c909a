"""The demo on MongoDB: `python -m tests.servers.mongodb.demo [--keep]`."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tailrace.cli.demo import arguments, show
from tailrace.cli.demo_shop import DATABASE, DemoShop, Rows
from tailrace.override import override
from tailrace.sinks.replica.target import read_table
from tests.servers.mongodb.server import Client, ReplicaSet

CUSTOMERS, PRODUCTS, ORDERS = "customers", "products", "orders"


class DocumentShop(DemoShop):
    """A shop of documents: orders have their lines in them. Implements DemoShop."""

    tables = (CUSTOMERS, PRODUCTS, ORDERS)

    def __init__(self, servers: ReplicaSet) -> None:
        self._servers = servers

    @override
    def load(self) -> None:
        with self._servers.client() as client:
            shop = client[DATABASE]
            shop[CUSTOMERS].insert_many({"_id": n, "name": f"Customer {n}", "active": True} for n in range(500))
            shop[PRODUCTS].insert_many(
                {"_id": f"P-{n}", "title": f"Product {n}", "price": n % 90 + 0.99, "stock": 1000} for n in range(100)
            )
            shop[ORDERS].insert_many(_order(n, random.Random(n)) for n in range(2000))

    @override
    def url(self) -> str:
        head, _, options = self._servers.url().partition("/?")
        return f"{head}/{DATABASE}?{options}"

    @contextmanager
    @override
    def open(self) -> Iterator[Callable[[], None]]:
        with self._servers.client() as client:
            yield Traffic(client).step

    @override
    def compared(self, root: str, options: Mapping[str, str]) -> Iterator[tuple[str, Rows, Rows]]:
        """Documents by their keys."""
        with self._servers.client() as client:
            for table in self.tables:
                source = {(document["_id"],): document for document in client[DATABASE][table].find()}
                documents = map(
                    json.loads, read_table(root, f"{DATABASE}.{table}", options).column("document").to_pylist()
                )
                yield table, source, {(document["_id"],): document for document in documents}


class Traffic:
    """Live traffic; each `step` is one transaction or one change."""

    def __init__(self, client: Client) -> None:
        self._client, self._shop = client, client[DATABASE]
        self._random = random.Random(1)
        self._number = 2000
        self._actions: dict[Callable[[], Any], int] = {
            self._place: 40,
            self._ship: 25,
            self._restock: 15,
            self._cancel: 10,
            self._leave: 5,
            self._replace: 5,
        }

    def step(self) -> None:
        """Make a change."""
        (action,) = self._random.choices(list(self._actions), list(self._actions.values()))
        action()

    def _place(self) -> None:
        """An order takes its products from the stock, in one transaction."""
        self._number += 1
        order = _order(self._number, self._random)
        with self._client.start_session() as session, session.start_transaction():
            self._shop[ORDERS].insert_one(order, session=session)
            for line in order["lines"]:
                taken = {"$inc": {"stock": -line["quantity"]}}
                self._shop[PRODUCTS].update_one({"_id": line["product"]}, taken, session=session)

    def _ship(self) -> None:
        self._shop[ORDERS].update_many({"status": "new", "_id": {"$mod": [3, 0]}}, {"$set": {"status": "shipped"}})

    def _restock(self) -> None:
        product = f"P-{self._random.randrange(100)}"
        self._shop[PRODUCTS].update_one({"_id": product}, {"$inc": {"stock": 10}, "$unset": {"note": ""}})

    def _cancel(self) -> None:
        self._shop[ORDERS].delete_one({"status": "new"})

    def _leave(self) -> None:
        self._shop[CUSTOMERS].update_one({"_id": self._random.randrange(500)}, {"$set": {"active": False}})

    def _replace(self) -> None:
        product = f"P-{self._random.randrange(100)}"
        self._shop[PRODUCTS].replace_one({"_id": product}, {"title": "Replaced", "stock": 5, "note": "new"})


def _order(number: int, draw: random.Random) -> dict[str, Any]:
    products = draw.sample(range(100), 3)
    lines = [{"product": f"P-{product}", "quantity": draw.randint(1, 4)} for product in products]
    return {"_id": number, "customer": draw.randrange(500), "status": "new", "lines": lines}


if __name__ == "__main__":
    show("MongoDB", ReplicaSet, DocumentShop, **arguments(sys.argv))
