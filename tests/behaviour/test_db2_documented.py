"""The SQL of Db2's page, run in its order on the stand-in, and a pipeline of its user. A table has a large object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.connectors import registry
from tests.behaviour.stepping import Stepped
from tests.conformance.db2 import CDC, PASSWORD, Db2Source
from tests.servers.db2.server import Db2

PAGE = Path(__file__).parents[2] / "docs" / "connectors" / "db2.md"
# The rights that the page lists for a RESTRICTIVE database: nothing is PUBLIC in the stand-in.
CATALOG = ("SYSCAT.TABLES", "SYSCAT.COLUMNS", "SYSCAT.INDEXES", "SYSCAT.INDEXCOLUSE", "SYSCAT.DATAPARTITIONS")
HISTORY = "SYSIBMADM.DB_HISTORY"


def blocks() -> dict[str, list[str]]:
    """The SQL statements of each section of the page, in order."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^#+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        texts = re.findall(r"^ *```sql\n(.*?)^ *```", section, re.DOTALL | re.MULTILINE)
        statements = [" ".join(each.split()) for text in texts for each in text.split(";\n")]
        found[section.partition("\n")[0]] = [each for each in statements if each]
    return {title: each for title, each in found.items() if each}


class Shop(Db2Source):
    """The schema of the page."""

    def __init__(self, server: Db2) -> None:
        super().__init__(server, "SHOP")
        self.run(
            "CREATE TABLE SHOP.ORDERS (ID INTEGER NOT NULL PRIMARY KEY, AMOUNT INTEGER, NOTES CLOB(1M))",
            "INSERT INTO SHOP.ORDERS VALUES (1, 10, 'one')",
        )

    def properties(self, pipeline: str) -> dict[str, str]:
        """The properties of the page's user."""
        own = {"database.user": CDC, "database.password": PASSWORD, "table.include.list": r"SHOP\.ORDERS"}
        return {**super().properties(pipeline), **own, "snapshot.isolation.mode": "read_committed"}


@pytest.fixture
def shop(db2: Db2) -> Iterator[Shop]:
    shop = Shop(db2)
    yield shop
    shop.close()


def test_the_documented_set_up_makes_a_pipeline_run(shop: Shop) -> None:
    found, server = blocks(), shop.server
    *made, grant, _, _, _ = found["Prepare the server"]
    assert len(made) == 3
    assert grant.startswith("GRANT")
    package = registry.named("db2").load()
    properties = {**shop.properties("p"), "topic.prefix": "t"}
    admin = package.admin(package.resolve({**properties, "database.user": server.user}))
    printed = [" ".join(each.rstrip(";").split()) for each in admin.preparation([shop.id("ORDERS")])]
    assert printed[:3] == made
    shop.run(*made, printed[3])
    server.services("reinit")
    read = ("SHOP.ORDERS", "ASNCDC.CDC_SHOP_ORDERS", *CATALOG, HISTORY)
    shop.run(*found["Prepare the server"][3:], *(f"GRANT SELECT ON {each} TO USER {CDC}" for each in read))
    own = package.admin(package.resolve(properties))
    assert [each.what for each in own.checks() if each.ok is False] == []
    stream = Stepped("db2", shop, {})
    events = [event for _ in range(2) for event in stream.step()[0]]
    assert [event["after"] for event in events] == [{"ID": 1, "AMOUNT": 10, "NOTES": "one"}]
    shop.run("INSERT INTO SHOP.ORDERS VALUES (2, 20, 'two')")
    assert [event["after"]["NOTES"] for event in stream.step()[0]] == ["two"]
    for statement in found["New columns"]:
        shop.run(statement)
        if statement.startswith("UPDATE"):
            server.services("reinit")
    shop.run("INSERT INTO SHOP.ORDERS (ID, AMOUNT, NOTES, NOTE) VALUES (3, 30, 'three', 'new')")
    (event,) = (event for event in stream.step()[0] if event["op"] == "c")
    assert event["after"] == {"ID": 3, "AMOUNT": 30, "NOTES": "three", "NOTE": "new"}
    stream.close()


def test_every_block_of_the_page_is_run() -> None:
    assert [*blocks()] == ["Prepare the server", "New columns"]
