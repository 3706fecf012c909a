"""One pipeline over several databases of SQL Server: windows, notifications and order. On the stand-in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.sqlserver import SqlServerSource
from tests.servers.sqlserver.server import SqlServer


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


@pytest.fixture
def other(sqlserver: SqlServer, request: pytest.FixtureRequest) -> Iterator[SqlServerSource]:
    """A database beside `source`, whose name sorts before that one's."""
    other = SqlServerSource(sqlserver, f"a{abs(hash(request.node.name)) % 10**8}")
    other.create("orders")
    yield other
    other.close()


def both(first: SqlServerSource, second: SqlServerSource, **properties: str) -> dict[str, str]:
    """The properties of a pipeline of two databases, each with a signal table."""
    names = [first.name, second.name]
    signals = ",".join(f"{name}.dbo.signals" for name in names)
    given = {"database__names": ",".join(names), "signal__data__collection": signals}
    return {"table__include__list": r"dbo\.orders", **given, **properties}


def test_a_window_is_marked_in_the_database_of_its_table(source: SqlServerSource, other: SqlServerSource) -> None:
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    with stepping("sqlserver", source, **both(other, source)) as stream:
        source.signal("s1", "execute-snapshot", f'{{"data-collections": ["{source.name}.dbo.orders"]}}')
        found = [event for _ in range(3) for event in stream.step()[0]]
    assert [event["after"]["id"] for event in found if event["source"]["table"] == "orders"] == [1]
    opened = "SELECT type FROM signals WHERE id LIKE '%-open' OR id LIKE '%-close'"
    kinds = {row[0] for row in source.run(opened)}
    assert kinds == {"snapshot-window-open", "snapshot-window-close"}
    assert other.run(opened) == []


def notified(file: Path, *databases: SqlServerSource) -> list[tuple[str, str]]:
    """Type and tables of the notifications so far, the names of databases as their letter."""
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    file.unlink()
    notes = [(each["type"], each["additional_data"].get("data_collections", "")) for each in found]
    for letter, each in zip("ab", databases, strict=True):
        notes = [(kind, tables.replace(each.name, letter)) for kind, tables in notes]
    return notes


@pytest.mark.parametrize("mode", ["initial", "no_data"])
def test_a_snapshot_of_each_database_sends_notifications(
    source: SqlServerSource, other: SqlServerSource, tmp_path: Path, mode: str
) -> None:
    """Debezium reads one database after another, each by a snapshot that it begins and completes."""
    other.create("items")
    file = tmp_path / "told.jsonl"
    noted = {"notification__enabled__channels": "file", "notification__file": str(file), "snapshot__mode": mode}
    lists = {"table__include__list": r"dbo\.(orders|items)", "signal__data__collection": ""}
    with stepping("sqlserver", source, **both(other, source, **noted, **lists)) as stream:
        here = stream.offset
        tables = {"a": ("items", "orders"), "b": ("orders",)}
        expected = []
        for database, names in tables.items():
            listed = ",".join(f"{database}.dbo.{name}" for name in names)
            rows = [(kind, listed) for _ in names for kind in ("IN_PROGRESS", "TABLE_SCAN_COMPLETED")]
            expected += [("STARTED", ""), *(rows if mode == "initial" else []), ("COMPLETED", "")]
        found = notified(file, other, source)
        assert [(kind, ",".join(sorted(names.split(",")))) for kind, names in found] == expected
    again = Stepped("sqlserver", source, dict(stream.config.given))
    again.offset = here
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    again.step()
    again.close()
    assert notified(file, other, source) == [("SKIPPED", "")] * 2


def test_a_database_without_tables_sends_notifications_as_well(
    source: SqlServerSource, other: SqlServerSource, tmp_path: Path
) -> None:
    file = tmp_path / "told.jsonl"
    noted = {"notification__enabled__channels": "file", "notification__file": str(file)}
    for name, before, after in (("b", 1, 0), ("a", 0, 1)):
        database = {"a": other, "b": source}[name].name
        lists = {"snapshot__include__collection__list": rf"{database}\.dbo\.orders", "signal__data__collection": ""}
        with stepping("sqlserver", source, **both(other, source, **noted, **lists)):
            kinds = [kind for kind, _ in notified(file, other, source)]
        empty, read = ["STARTED", "COMPLETED"], ["STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED"]
        assert kinds == empty * before + read + empty * after


def test_databases_are_read_in_one_order(source: SqlServerSource, other: SqlServerSource) -> None:
    """Structures, rows of the snapshot, and changes."""
    for each in (source, other):
        each.create("items")
        each.run("INSERT INTO orders VALUES (1, 1, N'a')", "INSERT INTO items VALUES (1, 1, N'a')")
    names = {"database.names": f"{other.name},{source.name}", "include.schema.changes": "true"}
    lists = {"table.include.list": r"dbo\.orders,dbo\.items", "snapshot.tables.order.by.row.count": "ascending"}
    stream = Stepped("sqlserver", source, {**names, **lists})
    expected = sorted([source.name, other.name])
    events, structures = stream.step()
    assert [each["source"]["db"] for each in events] == [name for name in expected for _ in range(2)]
    assert [each["source"]["db"] for each in structures] == [name for name in expected for _ in range(3)]
    stream.step()
    for each in (source, other):
        each.run("INSERT INTO orders VALUES (2, 2, N'a')")
        each.settle()
    assert [each["source"]["db"] for each in stream.step()[0]] == expected
    stream.close()
