"""The statements that SQL Server is sent: each is on its page of the docs, and is T-SQL."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlglot

from tailrace.connectors import registry
from tailrace.connectors.sqlserver.arrow_client import ArrowConnection
from tailrace.connectors.sqlserver.client import Connection, Server
from tailrace.connectors.sqlserver.log.capture import _pause
from tailrace.connectors.sqlserver.platform import platform
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.sqlserver import ENABLE, SqlServerSource
from tests.servers.sqlserver.server import SqlServer

CHOSEN = "SELECT * FROM dbo.orders WHERE id > 5 ORDER BY id DESC"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sqlserver-statements.md"
# What differs from run to run or from table to table, and what stands for it on the page.
_VARIABLE = (
    (r"0x[0-9a-f]{20}\b", "0x00000027000007580005"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "1f6a8b1e-0f5d-4c0e-9d0a-3c1b6a2d4e5f"),
    (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "2026-01-02T03:04:05Z"),
    (r"N'\d{4}-\d\d-\d\dT[0-9:.]+'", "N'2026-01-02T03:04:05'"),
    (r"(SELECT) \d+ (WHERE)", r"\1 0 \2"),
    (r"\[dbo\]\.\[other\]", "[dbo].[orders]"),
    (r"(dbo_)(orders_tailrace1|other)(_CT)", r"\1orders\3"),
    (r"object_id = \d+", "object_id = 1205579333"),
    (r"object_id IN \(\d+\)", "object_id IN (1205579333)"),
    (r"N'\d+'", "N'5'"),
    (r"(place / )\d+(\) \* )\d+", r"\g<1>100\g<2>100"),
    (r"TOP (\(?)(?!1\b)\d+", r"TOP \g<1>100"),
    (r"(dbo_)(late|signals|orders_tailrace1)(_CT)", r"\1orders\3"),
    (r"(\[dbo\]\.\[)signals(\]', N'OBJECT')", r"\1orders\2"),
    (r"SELECT \d+, COUNT_BIG", "SELECT 0, COUNT_BIG"),
    (r" AND cdc_data\.\[__\$start_lsn\] < 0x\w+", ""),
    (r", (cdc_data\.)?\[extra\]( AS \[extra\])?", ""),
    (r"cdc_data\.\[type\], cdc_data\.\[data\]", "cdc_data.[v], cdc_data.[note]"),
)


def shown(statement: str, database: str) -> str:
    """A statement as the page has it."""
    text = " ".join(statement.split()).replace(database, "shop")
    for pattern, instead in _VARIABLE:
        text = re.sub(pattern, instead, text)
    # Of many tables that are asked of by one statement the page has the first.
    return text.partition(" UNION ALL ")[0] if text.startswith("SELECT 0") else text


@pytest.fixture
def source(sqlserver: SqlServer) -> Iterator[SqlServerSource]:
    source = SqlServerSource(sqlserver, "b8317statements")
    source.create("orders")
    yield source
    source.close()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The statements that the connector sends from now on."""
    found: set[str] = set()
    rows, names, run, blocks = Connection.rows, Connection.names, Connection.run, ArrowConnection.blocks

    def asked(self: Connection, statement: str) -> list[Any]:
        found.add(statement)
        return rows(self, statement)

    def named(self: Connection, statement: str) -> list[str]:
        found.add(statement)
        return names(self, statement)

    def told(self: Connection, *statements: str) -> None:
        found.update(statements)
        run(self, *statements)

    def read(self: ArrowConnection, statement: str, size: int) -> Iterator[Sequence[Any]]:
        found.add(statement)
        return blocks(self, statement, size)

    monkeypatch.setattr(Connection, "rows", asked)
    monkeypatch.setattr(Connection, "names", named)
    monkeypatch.setattr(Connection, "run", told)
    monkeypatch.setattr(ArrowConnection, "blocks", read)
    return found


def commands(source: SqlServerSource) -> None:
    """What the commands ask."""
    package = registry.named("sqlserver").load()
    given = {**source.properties("p"), "topic.prefix": "t", "snapshot.isolation.mode": "snapshot"}
    admin = package.admin(package.resolve(given))
    admin.checks()
    server = Server(package.resolve(given))
    server.ask(lambda connection: _pause(connection, platform(connection), source.name))
    server.ask(lambda connection: DIALECT.has_log_around(connection, source.name, "00000025:00000008:0003"))
    server.close()
    admin.overview()
    admin.state()
    source.run(f"{ENABLE.format('orders')}, @capture_instance = 'second'")
    admin.problems(begun=True)
    source.run("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'second'")
    source.run("CREATE TABLE late (id int PRIMARY KEY)")
    admin.preparation([source.id("late")])
    admin.extend([source.id("late")])
    with admin.now() as now:
        assert now.horizon
        assert source.id("orders") in now.tables()
        table = now.table(source.id("orders"))
        rows, *_ = now.rows(table)
        keys = now.texts(rows.select(["id"]))[:2]
        list(now.understood(table, ("id",), keys))
        list(now.rows_of(table, ("id",), keys))


def signal(source: SqlServerSource, stream: Stepped, kind: str, condition: str = "") -> None:
    """A snapshot of orders by a signal."""
    name = f"{source.name}.dbo.orders"
    chosen = [{"data-collection": name, "filter": condition}] if condition else []
    data = {"data-collections": [name], "type": kind, "additional-conditions": chosen}
    source.signal(str(uuid4()), "execute-snapshot", json.dumps(data))
    for _ in range(6):
        stream.step()


def renewed(source: SqlServerSource, stream: Stepped, sent: set[str]) -> None:
    """A column is added, and the pipeline makes a capture instance that has it: it looks once a second."""
    source.run("ALTER TABLE orders ADD extra int")
    until = time.monotonic() + 120
    while not any("orders_tailrace1" in statement for statement in sent):
        assert time.monotonic() < until, "no new capture instance"
        source.run("UPDATE orders SET v = v + 1 WHERE id = 1")
        stream.step()
    for _ in range(2):
        source.run("UPDATE orders SET v = v + 1 WHERE id = 1")
        stream.step()


def pipelines(source: SqlServerSource, sent: set[str]) -> None:
    """What pipelines of several configurations ask."""
    given = {"signal__data__collection": f"{source.name}.dbo.signals", "table__include__list": r"dbo\.(orders|other)"}
    threads = {"snapshot__max__threads": "2", "snapshot__tables__order__by__row__count": "ascending"}
    auto = {"capture__instance__auto": "true", "incremental__snapshot__watermarking__strategy": "insert_delete"}
    auto["table__watch__interval__ms"] = "1"
    with stepping("sqlserver", source, **given, **threads, **auto) as stream:
        source.run("UPDATE orders SET v = 2 WHERE id = 1")
        stream.step()
        signal(source, stream, "incremental")
        signal(source, stream, "blocking")
        signal(source, stream, "incremental", "v > 1")
        signal(source, stream, "blocking", "SELECT * FROM dbo.orders WHERE v > 1")
        renewed(source, stream, sent)
        source.run(
            "CREATE TABLE other (id int, v int, note nvarchar(400))",
            "EXEC sys.sp_cdc_enable_table N'dbo', N'other', @role_name = NULL",
        )
        source.run("INSERT INTO other VALUES (1, 1, N'a')")
        stream.step()
        stream.step()
    source.run("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'dbo_orders'", "DROP TABLE other")
    other = {
        "data__query__mode": "function",
        "max__iteration__transactions": "1",
        "skipped__operations": "u",
        "snapshot__isolation__mode": "read_committed",
        "snapshot__select__statement__overrides": f"{source.name}.dbo.orders",
        f"snapshot__select__statement__overrides.{source.name}.dbo.orders": CHOSEN,
    }
    with stepping("sqlserver", source, **given, **other) as stream:
        source.run("INSERT INTO orders VALUES (9001, 1, N'a', 2)")
        stream.step(1)
        signal(source, stream, "incremental")


def test_every_statement_is_on_the_page_and_is_t_sql(source: SqlServerSource, sent: set[str]) -> None:
    source.run("INSERT INTO orders SELECT value, 1, N'a' FROM GENERATE_SERIES(1, 300, 1)")
    commands(source)
    pipelines(source, sent)
    listed = (
        set(re.findall(r"```sql\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)) if PAGE.exists() else set()
    )
    found = {shown(statement, source.name) for statement in sent}
    assert sorted(found - listed) == []
    assert sorted(listed - found) == []
    for statement in listed:
        assert sqlglot.parse(statement, dialect="tsql"), statement


def test_names_of_the_catalogue_are_in_lower_case() -> None:
    """As the server has them: in a database with a case-sensitive collation another case is another name."""
    listed = re.findall(r"```sql\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    bare = [re.sub(r"N?'(?:[^']|'')*'|\[(?:[^\]]|\]\])*\]", "x", statement) for statement in listed]
    words = {word for statement in bare for word in re.findall(r"[A-Za-z_][\w$]*", statement)}
    # What is in capitals is T-SQL's own: keywords and functions, which have no case. The other is an alias.
    assert {word for word in words if word not in (word.lower(), word.upper())} == {"isRunning"}
    assert not [statement for statement in bare if re.search(r"\.[A-Z]", statement)]
