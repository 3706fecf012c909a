"""Keys of SQL Server's tables: with nulls, in other code pages, compared by the column's own rules. On the stand-in."""

from __future__ import annotations

import json

import pytest

from tailrace.connectors import registry
from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.sqlserver import ENABLE, SqlServerSource
from tests.servers.sqlserver.server import SqlServer


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


def test_a_snapshot_that_resumes_among_keys_with_nulls_reads_each_row_once(source: SqlServerSource) -> None:
    source.run("CREATE TABLE loose (a int, b int)", "CREATE UNIQUE INDEX loose_key ON loose (a, b)")
    keys = [(None, b) for b in range(1, 9)] + [(-1, 1), (0, 0), (5, 5)]
    for a, b in keys:
        source.run(f"INSERT INTO loose VALUES ({'NULL' if a is None else a}, {b})")
    given = {"table.include.list": r"dbo\.loose", "snapshot.max.threads": "2", "snapshot.max.threads.multiplier": "2"}
    found: list[tuple[int | None, int]] = []
    offset = None
    for steps in (3, 8):
        stream = Stepped("sqlserver", source, given)
        stream.offset = stream.offset if offset is None else json.loads(json.dumps(offset))
        batches = [[(event["after"]["a"], event["after"]["b"]) for event in stream.step()[0]] for _ in range(steps)]
        offset = stream.offset
        stream.close()
        # The first process has ended while its last batch was written: the second one reads it again.
        found += [key for batch in (batches[:-1] if steps == 3 else batches) for key in batch]
    assert sorted(found, key=str) == sorted(keys, key=str)


def test_chunks_among_keys_with_nulls_read_each_row_once(source: SqlServerSource) -> None:
    """Also where the offset between two chunks was written and read again."""
    source.run("CREATE TABLE loose (a int, b varchar(9))", "CREATE UNIQUE INDEX loose_key ON loose (a, b)")
    source.run(ENABLE.format("loose"))
    keys = [(None, None), (None, ""), (None, "x"), (None, "y"), (0, None), (0, ""), (5, "z"), (-1, "")]
    for a, b in keys:
        source.run(f"INSERT INTO loose VALUES ({'NULL' if a is None else a}, {'NULL' if b is None else repr(b)})")
    given = {
        "incremental.snapshot.chunk.size": "1",
        "signal.data.collection": f"{source.name}.dbo.signals",
        "snapshot.mode": "no_data",
        "table.include.list": r"dbo\.loose",
    }
    stream = Stepped("sqlserver", source, given)
    stream.step()
    source.signal("s", "execute-snapshot", json.dumps({"data-collections": [f"{source.name}.dbo.loose"]}))
    found = []
    for _ in range(14):
        found += [(event["after"]["a"], event["after"]["b"]) for event in stream.step()[0] if event["op"] == "r"]
        stream.offset = json.loads(json.dumps(stream.offset))
    stream.close()
    assert sorted(found, key=str) == sorted(keys, key=str)


def chunked(source: SqlServerSource, name: str, **properties: str) -> list[str]:
    """The keys of an incremental snapshot of a table, by chunks of two rows."""
    given = {"incremental__snapshot__chunk__size": "2", "signal__data__collection": f"{source.name}.dbo.signals"}
    with stepping("sqlserver", source, table__include__list=rf"dbo\.{name}", **given, **properties) as stream:
        stream.step()
        source.signal("s", "execute-snapshot", json.dumps({"data-collections": [f"{source.name}.dbo.{name}"]}))
        events = [event for _ in range(12) for event in stream.step()[0]]
        return [event["after"]["code"] for event in events if event["source"]["table"] == name]


CYRILLIC = ("varchar(20) COLLATE Cyrillic_General_CI_AS", ["Абв", "Ж", "ж2", "Яя", "a", "Z", "Ё"])


@pytest.mark.parametrize(
    ("kind", "keys", "databases"),
    [
        (*CYRILLIC, 1),
        (*CYRILLIC, 2),
        ("char(4) COLLATE Greek_CS_AS", ["αβ", "Ω", "x"], 2),
        ("varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8", ["漢字", "Ж", "é", "a", "😀"], 2),
        ("varchar(20) COLLATE Turkish_CI_AS", ["\u0131", "İ2", "ğ", "Iz", "şey"], 2),
        ("nvarchar(20) COLLATE Cyrillic_General_CI_AS", ["Ж", "漢字", "b"], 1),
        ("varchar(20) COLLATE Latin1_General_BIN2", ["a", "A", "é"], 1),
    ],
)
def test_chunks_compare_keys_in_their_own_code_page(
    source: SqlServerSource, sqlserver: SqlServer, kind: str, keys: list[str], databases: int
) -> None:
    """With several databases a connection has none of its own, and the server's code page is the current one."""
    source.run(f"CREATE TABLE codes (code {kind} NOT NULL PRIMARY KEY, v int)", ENABLE.format("codes"))
    for number, key in enumerate(keys):
        text = f"N'{key}' COLLATE {kind.rpartition(' ')[2]}"
        source.run(f"INSERT INTO codes VALUES ({text}, {number})")
    assert {key.rstrip() for (key,) in source.run("SELECT CONVERT(nvarchar(20), code) FROM codes")} == set(keys)
    other = SqlServerSource(sqlserver, f"{source.name}b") if databases > 1 else None
    given = {} if other is None else {"database__names": f"{source.name},{other.name}"}
    try:
        found = chunked(source, "codes", **given)
    finally:
        if other is not None:
            other.close()
    assert sorted(key.rstrip() for key in found) == sorted(keys)


def test_rows_of_given_keys_are_those_of_the_column_s_code_page(source: SqlServerSource) -> None:
    """As `reconcile` looks them up."""
    source.run("CREATE TABLE codes (code varchar(20) COLLATE Cyrillic_General_CI_AS NOT NULL PRIMARY KEY, v int)")
    source.run(ENABLE.format("codes"), "INSERT INTO codes VALUES (N'Ж' COLLATE Cyrillic_General_CI_AS, 1)")
    package = registry.named("sqlserver").load()
    config = package.resolve({**source.properties("p"), "topic.prefix": "t", "table.include.list": r"dbo\.codes"})
    with package.admin(config).now() as now:
        table = now.table(source.id("codes"))
        ((found, _),) = list(now.rows_of(table, ("code",), [("Ж",)]))
        assert found.to_pylist() == [{"code": "Ж", "v": 1}]
        (understood,) = list(now.understood(table, ("code",), [("Ж",)]))
        assert understood.to_pylist() == [{"code": "Ж"}]
