"""The SQL of SQL Server's page, run in its order on the stand-in as each platform, and a pipeline of its user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tailrace.connectors import registry
from tests.behaviour.stepping import Stepped
from tests.conformance.sqlserver import SqlServerSource
from tests.servers.sqlserver import platforms
from tests.servers.sqlserver.platforms import Platform
from tests.servers.sqlserver.server import SqlServer

PAGE = Path(__file__).parents[2] / "docs" / "connectors" / "sqlserver.md"
ADMINISTRATOR, SECRET = "rdsuser", "Administrator-1"
PLATFORMS = {
    "Prepare the server": platforms.SQL_SERVER_2022,
    "Azure SQL Database": platforms.AZURE_SQL_DATABASE,
    "Amazon RDS": platforms.RDS,
}


def blocks() -> dict[str, list[str]]:
    """The SQL blocks of each section of the page, in order; those of a list without its margin."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^#+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        listed = re.findall(r"^ *```sql\n(.*?)^ *```", section, re.DOTALL | re.MULTILINE)
        found[section.partition("\n")[0]] = [re.sub(r"^ +", "", each, flags=re.MULTILINE) for each in listed]
    return {title: each for title, each in found.items() if each}


class Shop(SqlServerSource):
    """The database of the page, without change data capture."""

    def __init__(self, server: SqlServer) -> None:
        self.server, self.name = server, "shop"
        server.drop("shop")
        server.execute("CREATE DATABASE shop")
        statements = (
            "CREATE TABLE dbo.orders (id int PRIMARY KEY, v int DEFAULT 5)",
            "INSERT INTO orders VALUES (1, 1)",
        )
        server.execute(*statements, database="shop")

    def properties(self, pipeline: str) -> dict[str, str]:
        """The properties of the user that the page makes."""
        return {
            "database.hostname": self.server.host,
            "database.port": str(self.server.port),
            "database.user": "tailrace",
            "database.password": "Change-me-1",
            "database.names": "shop",
            "table.include.list": r"dbo\.orders",
        }

    def run_blocks(self, platform: Platform, texts: list[str]) -> None:
        """Run blocks, each as a batch, as who sets the platform up does it."""
        database = "shop" if platform.is_azure_database else "master"
        user = {"user": ADMINISTRATOR, "password": SECRET} if platform.is_rds else {}
        with closing(self.server.connect(database, **user)) as connection, connection.cursor() as cursor:
            for text in texts:
                cursor.execute(text)
                while cursor.nextset():
                    pass

    def end(self) -> None:
        self.server.drop("shop")
        self.server.execute("DROP USER IF EXISTS tailrace", database="msdb")
        if self.server.execute("SELECT 1 FROM sys.sql_logins WHERE name = 'tailrace'"):
            self.server.execute("DROP LOGIN tailrace")


@pytest.fixture
def shop(sqlserver: SqlServer) -> Iterator[Shop]:
    shop = Shop(sqlserver)
    sqlserver.execute(f"CREATE LOGIN {ADMINISTRATOR} WITH PASSWORD = '{SECRET}'")
    sqlserver.execute(f"CREATE USER {ADMINISTRATOR} FOR LOGIN {ADMINISTRATOR}", database="shop")
    sqlserver.execute(f"ALTER ROLE db_owner ADD MEMBER {ADMINISTRATOR}", database="shop")
    yield shop
    shop.end()
    sqlserver.execute(f"DROP LOGIN {ADMINISTRATOR}")


@pytest.mark.parametrize("title", PLATFORMS)
def test_the_documented_set_up_makes_a_pipeline_run(shop: Shop, title: str) -> None:
    found, platform = blocks(), PLATFORMS[title]
    with shop.server.being(platform):
        shop.run_blocks(platform, found[title])
        package = registry.named("sqlserver").load()
        config = package.resolve({**shop.properties("p"), "topic.prefix": "t"})
        assert [each.what for each in package.admin(config).checks() if each.ok is not True] == []
        stream = Stepped("sqlserver", shop, {})
        events = [event for _ in range(2) for event in stream.step()[0]]
        assert [event["after"] for event in events] == [{"id": 1, "v": 1}]
        if not platform.is_azure_database:
            shop.run_blocks(platform, found["New columns"])
        shop.server.execute("INSERT INTO orders (id, v) VALUES (2, 2)", database="shop")
        (event,) = stream.step()[0]
        assert event["after"]["id"] == 2
        assert "extra" in event["after"] or platform.is_azure_database
        stream.close()


def test_every_block_of_the_page_is_run(shop: Shop) -> None:
    """What is not part of a set-up is run after that of SQL Server."""
    found = blocks()
    others = [title for title in found if title not in (*PLATFORMS, "New columns")]
    shop.run_blocks(platforms.SQL_SERVER_2022, found["Prepare the server"])
    for title in others:
        shop.run_blocks(platforms.SQL_SERVER_2022, found[title])
    assert others == ["Always On availability groups"]


@pytest.mark.parametrize("user", ["first", "later"])
def test_the_name_cdc_is_change_data_capture_s_own(shop: Shop, user: str) -> None:
    """Microsoft, "Enable and disable": it "requires exclusive use of the cdc schema and cdc user"."""
    enable, create = "EXEC sys.sp_cdc_enable_db", "CREATE USER cdc WITHOUT LOGIN"
    steps = (create, enable) if user == "first" else (enable, create)
    shop.server.execute(steps[0], database="shop")
    with pytest.raises(Exception, match="22906" if user == "first" else "15023"):
        shop.server.execute(steps[1], database="shop")
