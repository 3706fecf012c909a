"""Unusual contents of SQL Server's log: dropped instances, half updates, clean-up, a stopped Agent. On the stand-in."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pymssql
import pytest

from tailrace.connectors import registry
from tailrace.connectors.change_tables import connector, ranges, reader
from tailrace.connectors.sqlserver.arrow_client import ArrowConnection
from tailrace.connectors.sqlserver.client import Connection, Server
from tailrace.connectors.sqlserver.log.end import AGENT_DOWN, AgentCheck
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.errors import ConfigError, DecodeError, OffsetError, SourceError
from tests.behaviour.proxies import proxy
from tests.behaviour.stepping import Stepped, statements, stepping
from tests.conformance.sqlserver import ENABLE, LOGIN, PASSWORD, SqlServerSource
from tests.servers.sqlserver.server import SqlServer


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


@contextmanager
def streaming(source: SqlServerSource, **properties: str) -> Iterator[Stepped]:
    """A pipeline whose snapshot is read."""
    with stepping("sqlserver", source, table__include__list=r"dbo\.orders", **properties) as stream:
        yield stream


def test_a_table_that_is_no_longer_captured_sends_a_drop(source: SqlServerSource) -> None:
    with streaming(source) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert [event["after"]["id"] for event in stream.step()[0]] == [1]
        disable = (
            "EXEC sys.sp_cdc_disable_table @source_schema = 'dbo', @source_name = 'orders', @capture_instance = 'all'"
        )
        source.run(disable)
        source.run("INSERT INTO signals VALUES ('x', 'x', NULL)")
        (notified,) = stream.step()[1]
        (change,) = notified["tableChanges"]
        assert (change["type"], change["table"], notified["ddl"]) == ("DROP", None, None)
        assert stream.step()[1] == []


def test_a_new_column_is_read_from_its_capture_instance(source: SqlServerSource) -> None:
    with streaming(source) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        source.add_column("orders", "extra")
        source.run("INSERT INTO orders VALUES (2, 2, N'b', 22)")
        events, structures = stream.step()
        assert [event["after"].get("extra", "none") for event in events] == ["none", 22]
        (change,) = structures[0]["tableChanges"]
        assert (change["type"], structures[0]["ddl"]) == ("ALTER", None)
        assert [column["name"] for column in change["table"]["columns"]] == ["id", "v", "note", "extra"]


def test_a_table_that_is_captured_later_gives_no_second_create(source: SqlServerSource) -> None:
    """SqlServerStreamingChangeEventSource sends a CREATE only for tables whose structure it does not know."""
    source.run("CREATE TABLE whole (id int PRIMARY KEY, v int)", "CREATE TABLE part (id int PRIMARY KEY, v int)")
    lists = {"table__include__list": r"dbo\.(orders|whole|part|new)"}
    with stepping("sqlserver", source, **lists) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        stream.step()
        source.run("CREATE TABLE new (id int PRIMARY KEY)")
        for name in ("whole", "new"):
            source.run(ENABLE.format(name))
        source.run(f"{ENABLE.format('part')}, @captured_column_list = N'id'")
        for name in ("whole", "part"):
            source.run(f"INSERT INTO {name} VALUES (1, 1)")
        source.run("INSERT INTO new VALUES (1)")
        events, structures = stream.step()
        assert sorted(each["source"]["table"] for each in events) == ["new", "part", "whole"]
        told = [(each["tableChanges"][0]["type"], each["tableChanges"][0]["id"].split(".")[-1]) for each in structures]
        assert sorted(told) == [("ALTER", '"part"'), ("CREATE", '"new"')]


def test_a_new_default_comes_with_a_new_capture_instance(source: SqlServerSource) -> None:
    with streaming(source) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        stream.step()
        source.run("ALTER TABLE orders ADD CONSTRAINT v_default DEFAULT 5 FOR v")
        source.run("INSERT INTO orders VALUES (2, 1, N'a')")
        assert stream.step()[1] == []
        source.run(f"{ENABLE.format('orders')}, @capture_instance = 'dbo_orders_v2'")
        source.run("INSERT INTO orders (id) VALUES (3)")
        (told,) = stream.step()[1]
        assert told["tableChanges"][0]["table"]["columns"][1]["defaultValueExpression"] == "((5))"


@pytest.mark.parametrize("most", [1, 3, 500, 0])
def test_a_batch_has_so_many_transactions(source: SqlServerSource, most: int) -> None:
    with streaming(source, max__iteration__transactions=str(most)) as stream:
        for number in range(0, 14, 2):
            source.run(
                "BEGIN TRANSACTION",
                *(f"INSERT INTO orders VALUES ({key}, 0, NULL)" for key in (number, number + 1)),
                "COMMIT",
            )
        sizes = []
        while events := stream.step(1)[0]:
            sizes.append(len(events))
    assert sizes == {1: [2] * 7, 3: [6, 6, 2]}.get(most, [14])


@pytest.mark.parametrize("has_order", [False, True])
def test_change_tables_are_read_side_by_side(
    source: SqlServerSource, monkeypatch: pytest.MonkeyPatch, has_order: bool
) -> None:
    monkeypatch.setattr(ranges, "ROWS", 10)
    source.create("items")
    lists = {"table__include__list": r"dbo\.(orders|items)", "provide__transaction__metadata": str(has_order)}
    with stepping("sqlserver", source, **lists) as stream:
        for number in range(10):
            each = (f"INSERT INTO {table} VALUES ({number}, 0, NULL)" for table in ("orders", "items"))
            source.run("BEGIN TRANSACTION", *each, f"UPDATE orders SET v = 1 WHERE id = {number}", "COMMIT")
        before, (events, _) = stream.offset, stream.step()
        assert len(stream.capture.plan(before, stream.offset)) == (1 if has_order else 2)
        for table, size in (("orders", 2), ("items", 1)):
            mine = [event["after"] for event in events if event["source"]["table"] == table]
            assert [(row["id"], row["v"]) for row in mine] == [(key, v) for key in range(10) for v in range(size)]


def test_a_few_rows_of_many_tables_are_one_part(source: SqlServerSource) -> None:
    source.create("items")
    with stepping("sqlserver", source, table__include__list=r"dbo\.(orders|items)") as stream:
        source.run("INSERT INTO orders VALUES (1, 0, NULL)", "INSERT INTO items VALUES (1, 0, NULL)")
        before, (events, _) = stream.offset, stream.step()
        assert len(stream.capture.plan(before, stream.offset)) == 1
        assert [event["source"]["table"] for event in events] == ["orders", "items"]


def instances(source: SqlServerSource) -> list[str]:
    """The capture instances of `orders`, by start."""
    query = (
        "SELECT capture_instance FROM cdc.change_tables WHERE capture_instance LIKE 'dbo_orders%' ORDER BY start_lsn"
    )
    return [row[0] for row in source.run(query)]


def test_capture_instances_are_created_and_dropped(
    source: SqlServerSource, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "_LOOKS_S", 0.0)  # it looks at each poll

    def written(stream: Stepped, *statements: str) -> list[dict[str, Any]]:
        source.run(*statements)
        found = stream.step()[0]
        return [event["after"] for event in (*found, *stream.step()[0])]

    with streaming(source, capture__instance__auto="true") as stream:
        assert len(written(stream, "INSERT INTO orders VALUES (1, 1, N'a')")) == 1
        assert instances(source) == ["dbo_orders"], "nothing was altered"
        written(stream, "ALTER TABLE orders ADD one int")
        assert instances(source) == ["dbo_orders", "dbo_orders_tailrace1"]
        (row,) = written(stream, "INSERT INTO orders VALUES (2, 2, N'b', 21)")
        assert row["one"] == 21
        # The first instance is another one's, so it stays, and there is no room for a third.
        with caplog.at_level(logging.WARNING):
            written(stream, "ALTER TABLE orders ADD two int")
            written(stream, "INSERT INTO orders VALUES (3, 3, N'c', 31, 32)")
        assert [each.message.partition(": ")[2] for each in caplog.records if "auto" in each.message] == [
            f"{source.name}.dbo.orders has new columns that are not captured: dbo_orders has to be disabled first: "
            "it was not created by Tailrace"
        ]
        disable = "EXEC sys.sp_cdc_disable_table @source_schema = 'dbo', @source_name = 'orders', "
        source.run(f"{disable} @capture_instance = 'dbo_orders'")
        written(stream)
        assert instances(source) == ["dbo_orders_tailrace1", "dbo_orders_tailrace2"]
        (row,) = written(stream, "INSERT INTO orders VALUES (4, 4, N'd', 41, 42)")
        assert row["two"] == 42
        written(stream, "INSERT INTO orders VALUES (5, 5, N'e', 51, 52)")
        assert instances(source) == ["dbo_orders_tailrace2"], "the own one that is read is dropped"


def test_a_column_that_becomes_wider_is_read_with_its_new_type(source: SqlServerSource) -> None:
    with streaming(source) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert [event["after"]["v"] for event in stream.step()[0]] == [1]
        source.run("ALTER TABLE orders ALTER COLUMN v bigint", f"INSERT INTO orders VALUES (2, {2**40}, N'b')")
        assert [event["after"]["v"] for event in stream.step()[0]] == [2**40]


def test_half_an_update_names_its_table_and_place(source: SqlServerSource) -> None:
    with streaming(source) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        source.run("UPDATE orders SET v = 2")
        source.server.capture.scan(int(source.server.lookup(f"SELECT ms.db_id('{source.name}')") or 0))
        source.run("DELETE FROM cdc.dbo_orders_CT WHERE __$operation = 3")
        with pytest.raises(DecodeError, match="has no partner") as caught:
            stream.step()
        assert f"{source.name}.dbo.orders, commit " in str(caught.value)


def test_an_idle_poll_queries_only_the_end_of_the_log(source: SqlServerSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "_LOOKS_S", 600.0)
    with streaming(source) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert len(stream.step()[0]) == 1
        assert stream.step()[0] == []
        asked = statements(monkeypatch, Connection)
        assert stream.step()[0] == []
        assert len(asked) == 1, asked
        assert "fn_cdc_get_max_lsn" in asked[0]


def test_clean_up_that_passed_the_position_is_an_error(source: SqlServerSource) -> None:
    with streaming(source) as stream:
        for number in range(3):
            source.run(f"INSERT INTO orders VALUES ({number}, 1, N'a')")
        source.server.capture.scan(int(source.server.lookup(f"SELECT ms.db_id('{source.name}')") or 0))
        cleaned = "DECLARE @low binary(10) = sys.fn_cdc_get_max_lsn(); EXEC sys.sp_cdc_cleanup_change_table "
        source.run(cleaned + "@capture_instance = 'dbo_orders', @low_water_mark = @low")
        with pytest.raises(OffsetError, match="clean-up has removed changes") as caught:
            stream.step()
        assert "sp_cdc_change_job" in (caught.value.remedy or "")


def test_when_needed_no_data_continues_at_the_end_of_the_log(source: SqlServerSource) -> None:
    """WhenNeededNoDataSnapshotter: structures are sent again, rows are not read."""
    lists = {"table__include__list": r"dbo\.orders", "snapshot__mode": "when_needed_no_data"}
    with stepping("sqlserver", source, **lists) as stream:
        for number in range(3):
            source.run(f"INSERT INTO orders VALUES ({number}, 1, N'a')")
        source.server.capture.scan(int(source.server.lookup(f"SELECT ms.db_id('{source.name}')") or 0))
        cleaned = "DECLARE @low binary(10) = sys.fn_cdc_get_max_lsn(); EXEC sys.sp_cdc_cleanup_change_table "
        source.run(cleaned + "@capture_instance = 'dbo_orders', @low_water_mark = @low")
        assert stream.step() == ([], [])
        source.run("INSERT INTO orders VALUES (7, 1, N'a')")
        events, structures = stream.step()
        assert [(each["op"], each["after"]["id"]) for each in events] == [("c", 7)]
        assert [each["source"]["snapshot"] for each in structures][-1:] == ["last"]


def test_recovery_begins_nothing(source: SqlServerSource) -> None:
    """BaseSourceTask.validateSchemaHistory."""
    with pytest.raises(ConfigError, match="no position to continue from"), streaming(source, snapshot__mode="recovery"):
        pass


def test_clean_up_that_passes_a_range_while_it_is_read_is_an_error(
    source: SqlServerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reader.RangeReader.chunks

    def late(self: reader.RangeReader, wanted: ranges.LogRange) -> Iterator[Any]:
        source.run("DELETE TOP (1) FROM cdc.dbo_orders_CT")
        yield from read(self, wanted)

    with streaming(source) as stream:
        for number in range(3):
            source.run(f"INSERT INTO orders VALUES ({number}, 1, N'a')")
        monkeypatch.setattr(reader.RangeReader, "chunks", late)
        with pytest.raises(OffsetError, match=r"clean-up has removed changes while they were read: 2 of 3 rows"):
            stream.step()


@pytest.mark.parametrize("place", ["#db", "[#db]"])
def test_a_stopped_agent_is_logged_once(sqlserver: SqlServer, caplog: pytest.LogCaptureFixture, place: str) -> None:
    asked: list[str] = []

    class Answers:
        def value(self, statement: str) -> int:
            asked.append(statement)
            return 0

    given = {"database.hostname": "h", "database.names": "shop", "topic.prefix": "t", "database.user": LOGIN}
    given |= {"database.password": PASSWORD, "database.sqlserver.agent.status.query": f"SELECT {place}.running()"}
    check = AgentCheck(registry.named("sqlserver").load().resolve(given))
    with caplog.at_level(logging.ERROR):
        for end in ("", ""):
            check.look(Answers(), "shop", end)  # type: ignore[arg-type]
    assert asked == ["SELECT [shop].running()"]
    assert [record.message for record in caplog.records] == [AGENT_DOWN]


def test_connections_that_are_cut_are_opened_again(source: SqlServerSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "ROWS", 100)  # so that a table is read in several blocks
    cuts = iter([1, 2, 3])
    blocks = ArrowConnection.blocks

    def cut(self: ArrowConnection, statement: str, size: int) -> Iterator[Sequence[Any]]:
        for number, block in enumerate(blocks(self, statement, size)):
            if number == next(cuts, -1):
                raise pymssql.OperationalError(20047, b"DBPROCESS is dead or not enabled")
            yield block

    monkeypatch.setattr(ArrowConnection, "blocks", cut)
    with streaming(source, retriable__restart__connector__wait__ms="1") as stream:
        source.run("INSERT INTO orders SELECT value, 1, N'a' FROM GENERATE_SERIES(1, 1000, 1)")
        for number in range(1001, 1400):
            source.run(f"INSERT INTO orders VALUES ({number}, 1, N'b')")
        assert [event["after"]["id"] for event in stream.step()[0]] == [*range(1, 1400)]
    assert next(cuts, None) is None


def test_a_connection_that_is_cut_anywhere_is_logged_and_reconnected(source: SqlServerSource) -> None:
    given = source.properties("p") | {"topic.prefix": "t", "errors.max.retries": "0", "driver.loginTimeout": "5"}
    question = "SELECT name, object_id FROM sys.objects"
    with proxy(source.server.port) as between:
        given |= {"database.hostname": "127.0.0.1", "database.port": str(between.port)}
        server = Server(registry.named("sqlserver").load().resolve(given))
        expected = server.ask(lambda connection: connection.rows(question))
        whole = between.links[-1].sent
        outcomes = set[object]()
        for between.cut in [*range(1, whole, max(1, whole // 40)), None]:
            server.close()
            try:
                outcomes.add(server.ask(lambda connection: connection.rows(question)) == expected)
            except SourceError as error:
                outcomes.add(error.what.partition(": ")[2].partition(":")[0])
        assert outcomes == {True, "the server cannot be reached"}
        # A connection that the server has ended is made again by itself.
        between.cut = 0
        with pytest.raises(SourceError, match="cannot be reached"):
            server.ask(lambda connection: connection.rows(question))
        between.cut = None
        assert server.ask(lambda connection: connection.rows(question)) == expected


def test_any_unique_index_may_be_the_key(source: SqlServerSource) -> None:
    source.run(
        "CREATE TABLE both (id int PRIMARY KEY, mail int NOT NULL, v int)",
        "CREATE UNIQUE INDEX by_mail ON both (mail)",
    )
    package, table = registry.named("sqlserver").load(), source.id("both")
    given = {**source.properties("p"), "topic.prefix": "t"}
    for columns, is_unique in (("mail", True), ("v", False)):
        config = package.resolve({**given, "message.key.columns": f"dbo.both:{columns}"})
        admin = package.admin(config)
        assert any("share an event key" in each.what for each in admin.checks()) is not is_unique
        with admin.now() as now:
            assert (now.obstacle(now.table(table), (columns,)) is None) is is_unique


def test_a_clustered_unique_index_is_the_key_before_others(source: SqlServerSource) -> None:
    """JdbcConnection.readTableUniqueIndices takes the first that sp_statistics has."""
    source.run(
        "CREATE TABLE keyed (a int NOT NULL, b int NOT NULL)",
        "CREATE UNIQUE INDEX first_name ON keyed (a)",
        "CREATE UNIQUE CLUSTERED INDEX second_name ON keyed (b)",
    )
    config = registry.named("sqlserver").load().resolve({**source.properties("p"), "topic.prefix": "t"})
    with closing(DIALECT.server(config)) as server:
        found = server.ask(lambda connection: DIALECT.catalog(connection, config).table(source.id("keyed")))
    assert found is not None
    assert found.schema.key == ("b",)


def test_a_key_that_is_captured_in_part_is_none(source: SqlServerSource) -> None:
    source.run(
        "CREATE TABLE parts (a int NOT NULL, b int NOT NULL, c int)",
        "CREATE UNIQUE INDEX by_both ON parts (a, b)",
    )
    source.run(f"{ENABLE.format('parts')}, @captured_column_list = N'a, c'")
    given = {**source.properties("p"), "topic.prefix": "t"}
    config = registry.named("sqlserver").load().resolve(given)
    with closing(DIALECT.server(config)) as server:

        def asked(connection: Any) -> list[Any]:
            catalog, table = DIALECT.catalog(connection, config), source.id("parts")
            newest = catalog.newest()
            return [catalog.at(newest[table]), catalog.now(table, newest, catalog.tables()[table])]

        assert [found.key for found in server.ask(asked)] == [(), ()]


def test_alias_types_are_read_as_their_base_types_and_keep_their_names(source: SqlServerSource) -> None:
    source.run("CREATE TYPE dbo.Remark FROM nvarchar(20)", "CREATE TABLE aliased (id int PRIMARY KEY, r dbo.Remark)")
    source.run(ENABLE.format("aliased"))
    lists = {"table__include__list": r"dbo\.aliased", "column__propagate__source__type": r".*\.r"}
    with stepping("sqlserver", source, **lists) as stream:
        source.run("INSERT INTO aliased VALUES (1, N'a')")
        (event,), _ = stream.step()
        assert event["after"] == {"id": 1, "r": "a"}
    config = stream.config
    with closing(DIALECT.server(config)) as server:

        def asked(connection: Any) -> list[Any]:
            catalog = DIALECT.catalog(connection, config)
            at, table = catalog.newest()[source.id("aliased")], source.id("aliased")
            return [catalog.at(at), catalog.described(table, catalog.tables()[table])]

        for found in server.ask(asked):
            assert [column.type_name for column in found.shown()] == ["int", "Remark"]
            assert found.columns[1].type.declared == "nvarchar(20)"
