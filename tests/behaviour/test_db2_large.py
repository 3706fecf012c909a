"""Large objects of Db2: read by lengths, not by declared sizes, and looked up where the log has an indicator alone."""

from __future__ import annotations

import base64
import resource
from collections.abc import Iterator

import pytest

from tailrace.connectors import registry
from tailrace.connectors.db2 import client
from tailrace.errors import SourceError
from tests.behaviour.stepping import Record
from tests.behaviour.test_db2 import streaming, write
from tests.conformance.db2 import Db2Source
from tests.servers.db2.server import Db2


@pytest.fixture
def source(db2: Db2, request: pytest.FixtureRequest) -> Iterator[Db2Source]:
    source = Db2Source(db2, f"L{abs(hash(request.node.name)) % 10**8}")
    yield source
    source.close()


def create(source: Db2Source, columns: str, *, key: str = "NOT NULL PRIMARY KEY") -> str:
    table = source.name("orders")
    source.run(f'CREATE TABLE {table} ("id" INTEGER {key}, "v" INTEGER, {columns})')
    source.server.capture((source.schema, "orders"))
    return table


def after(events: list[Record]) -> list[tuple[str, object]]:
    return [(each["op"], (each["after"] or {}).get("body")) for each in events]


@pytest.mark.parametrize("kind", ["CLOB(1M)", "CLOB(1G)", "CLOB(2G)", "BLOB(1M)", "BLOB(1G)", "BLOB(2G)"])
def test_a_declared_size_takes_no_memory(source: Db2Source, kind: str) -> None:
    table = create(source, f'"body" {kind}')
    value = "'größer'" if kind[0] == "C" else "CAST(X'0102' AS BLOB)"
    source.run(f"INSERT INTO {table} VALUES (1, 1, {value}), (2, 2, NULL)")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    package = registry.named("db2").load()
    config = package.resolve({**source.properties("p"), "topic.prefix": "t"})
    connection = client.connect(config)
    try:
        (block,) = connection.blocks(f'SELECT "id", "body" FROM {table} ORDER BY "id"', 1000)
    finally:
        connection.close()
    assert block[1].to_pylist() == ["größer" if kind[0] == "C" else b"\x01\x02", None]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


def test_values_of_all_lengths_come_in_order(source: Db2Source) -> None:
    table = create(source, '"body" CLOB(2G)')
    lengths = [0, 1, 3, 32_000, 100, 5, 300_000, 7]
    for key, length in enumerate(lengths):
        write(source, f"INSERT INTO {table} VALUES ({key}, {length}, CAST('' AS CLOB))")
        for piece in range(0, length, 30_000):
            text = "é" * min(30_000, length - piece)
            write(source, f'UPDATE {table} SET "body" = "body" || \'{text}\' WHERE "id" = {key}')
    with streaming(source, snapshot__mode="initial") as stream:
        stream.capture.close()
    package = registry.named("db2").load()
    connection = client.connect(package.resolve({**source.properties("p"), "topic.prefix": "t"}))
    blocks = list(connection.blocks(f'SELECT "v", "body" FROM {table} ORDER BY "id"', 1000))
    connection.close()
    found = [row for block in blocks for row in zip(*(column.to_pylist() for column in block), strict=True)]
    assert [(v, len(text), {*text} <= {"é"}) for v, text in found] == [(each, each, True) for each in lengths]


def test_a_value_above_the_limit_is_a_sentence(source: Db2Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST", 10)
    table = create(source, '"body" CLOB(1M)')
    source.run(f"INSERT INTO {table} VALUES (1, 1, 'more than ten')")
    with pytest.raises(SourceError, match="13, and 10 bytes is the largest") as caught, streaming(source):
        pass
    assert (caught.value.where, "column.exclude.list" in (caught.value.remedy or "")) == ("column body", True)


@pytest.mark.parametrize("kind", ["CLOB(1M)", "BLOB(1M)"])
def test_changed_values_are_those_of_the_row(source: Db2Source, kind: str) -> None:
    def value(text: str) -> str:
        return f"'{text}'" if kind[0] == "C" else f"CAST(X'{text.encode().hex()}' AS BLOB)"

    def shown(text: str | None) -> str | None:
        return text if kind[0] == "C" or text is None else base64.b64encode(text.encode()).decode()

    table = create(source, f'"body" {kind}')
    with streaming(source) as stream:
        write(source, f"INSERT INTO {table} VALUES (1, 1, {value('one')}), (2, 2, NULL)")
        assert after(stream.step()[0]) == [("c", shown("one")), ("c", None)]
        write(source, f'UPDATE {table} SET "v" = 10 WHERE "id" = 1')
        (event,) = stream.step()[0]
        assert (event["op"], event["before"]["body"], event["after"]["body"]) == ("u", None, shown("one"))
        write(source, f'UPDATE {table} SET "body" = {value("two")} WHERE "id" = 2')
        assert after(stream.step()[0]) == [("u", shown("two"))]
        write(source, f'UPDATE {table} SET "body" = NULL WHERE "id" = 1')
        write(source, f"INSERT INTO {table} VALUES (3, 3, {value('gone')})")
        write(source, f'DELETE FROM {table} WHERE "id" = 3')
        unavailable = "__debezium_unavailable_value"
        assert after(stream.step()[0]) == [("u", None), ("c", shown(unavailable)), ("d", None)]


def test_without_a_key_there_are_no_large_objects(source: Db2Source) -> None:
    table = create(source, '"body" CLOB(1M)', key="NOT NULL")
    with streaming(source) as stream:
        write(source, f"INSERT INTO {table} VALUES (1, 1, 'one')")
        (event,) = stream.step()[0]
        assert event["after"] == {"id": 1, "v": 1}


def test_the_printed_statements_give_large_objects_an_indicator(source: Db2Source) -> None:
    source.run(
        f'CREATE TABLE {source.name("docs")} ("id" INTEGER NOT NULL PRIMARY KEY, "body" CLOB(1M), "x" VARCHAR(5))'
    )
    package = registry.named("db2").load()
    given = source.properties("p") | {"topic.prefix": "t", "table.include.list": rf"{source.schema}\.docs"}
    admin = package.admin(package.resolve(given))
    statements = admin.preparation([source.id("docs")])
    (made,) = [each for each in statements if each.startswith("CREATE TABLE")]
    assert 'CAST(NULL AS CHAR(1)) AS "body"' in made
    assert 't."x"' in made
    assert "t.*" not in made
