"""Unusual contents of Db2's log: row pairs, changed registrations, pruning, cut connections. On the stand-in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tailrace.connectors import registry
from tailrace.connectors.change_tables import connector as change_tables
from tailrace.connectors.db2 import connector
from tailrace.connectors.db2.cli.library import Db2Error
from tailrace.connectors.db2.client import Connection, Server, connect
from tailrace.connectors.db2.snapshot import DIALECT
from tailrace.errors import DecodeError, OffsetError, SourceError
from tests.behaviour.proxies import proxy
from tests.behaviour.stepping import Record, Stepped, statements, stepping
from tests.conformance.db2 import REGISTER, Db2Source
from tests.servers.db2.server import Db2

CHANGES = 'ASNCDC."CDC_{}_orders"'


@pytest.fixture
def source(db2: Db2, request: pytest.FixtureRequest) -> Iterator[Db2Source]:
    source = Db2Source(db2, f"B{abs(hash(request.node.name)) % 10**8}")
    source.create("orders")
    yield source
    source.close()


@contextmanager
def streaming(source: Db2Source, **properties: str) -> Iterator[Stepped]:
    """A pipeline whose snapshot is read."""
    given = {"table__include__list": rf"{source.schema}\.orders", "snapshot__isolation__mode": "read_committed"}
    with stepping("db2", source, **{**given, **properties}) as stream:
        yield stream


def values_of(events: list[Record]) -> list[tuple[str, int | None, int | None]]:
    """Operation, and the values of `v` before and after."""
    return [(each["op"], *(each[image] and each[image]["v"] for image in ("before", "after"))) for each in events]


def insert(source: Db2Source, key: int, value: int) -> str:
    return f"INSERT INTO {source.name('orders')} VALUES ({key}, {value}, NULL)"


def delete(source: Db2Source, key: int) -> str:
    return f'DELETE FROM {source.name("orders")} WHERE "id" = {key}'


def write(source: Db2Source, *statements: str) -> None:
    """One transaction."""
    with source.server.session() as session:
        session.transaction(*statements)


def test_rows_next_to_each_other_in_a_commit_are_an_update(source: Db2Source) -> None:
    with streaming(source) as stream:
        write(source, insert(source, 1, 10), insert(source, 2, 20))
        assert values_of(stream.step()[0]) == [("c", None, 10), ("c", None, 20)]
        write(source, delete(source, 1), insert(source, 1, 11))
        assert values_of(stream.step()[0]) == [("u", 10, 11)]
        write(source, delete(source, 1), delete(source, 2), insert(source, 2, 22))
        assert values_of(stream.step()[0]) == [("d", 11, None), ("u", 20, 22)]
        write(source, insert(source, 3, 30), delete(source, 3))
        assert values_of(stream.step()[0]) == [("c", None, 30), ("d", 30, None)]
        write(source, delete(source, 2))
        write(source, insert(source, 2, 23))
        assert values_of(stream.step()[0]) == [("d", 22, None), ("c", None, 23)], "in two commits they are none"


def test_a_new_key_is_three_records_with_headers_and_one_position(source: Db2Source) -> None:
    with streaming(source) as stream:
        write(source, insert(source, 1, 10))
        stream.step()
        write(source, delete(source, 1), insert(source, 100, 10))
        stream.step()
        shown = [(each["value"] and each["value"]["payload"]["op"], each["key"]["payload"]) for each in stream.records]
        assert shown == [("d", {"id": 1}), (None, {"id": 1}), ("c", {"id": 100})]
        keys = [[name for name in each["headers"] if name.endswith("key")] for each in stream.records]
        assert (keys[0], keys[2]) == (["__debezium.newkey"], ["__debezium.oldkey"])
        sources = [each["value"]["payload"]["source"] for each in stream.records if each["value"]]
        assert len({(each["commit_lsn"], each["change_lsn"]) for each in sources}) == 1


def test_a_single_row_of_an_update_is_for_zos(source: Db2Source) -> None:
    with streaming(source) as stream:
        write(source, insert(source, 1, 10))
        source.settle()
        source.run(f"UPDATE {CHANGES.format(source.schema)} SET IBMSNAP_OPERATION = 'U'")
        with pytest.raises(DecodeError, match="a row has the operation 'U'") as caught:
            stream.step()
        assert "CHG_UPD_TO_DEL_INS" in (caught.value.remedy or "")
        assert f"{source.schema}.orders, commit 00000000:" in str(caught.value)


def test_zos_has_another_catalog_with_other_names_of_types(source: Db2Source) -> None:
    table = source.name("kinds")
    columns = {
        "s": ("SMALLINT", "1"), "r": ("REAL", "1.5"), "d": ("DOUBLE", "2.5"), "p": ("DECIMAL(7, 2)", "3.25"),
        "c": ("CHAR(3)", "'abc'"), "x": ("VARCHAR(4) FOR BIT DATA", "X'01'"),
        "t": ("TIMESTAMP", "'2020-01-02 03:04:05'"),
    }  # fmt: skip
    listed = ", ".join(f'"{name}" {kind}' for name, (kind, _) in columns.items())
    source.run(f'CREATE TABLE {table} ("id" INTEGER NOT NULL PRIMARY KEY, {listed})')
    source.server.capture((source.schema, "kinds"))
    insert = f"INSERT INTO {table} VALUES ({{}}, {', '.join(value for _, value in columns.values())})"
    source.run(insert.format(1))
    given = {"table__include__list": rf"{source.schema}\.kinds", "snapshot__isolation__mode": "repeatable_read"}
    images: list[Any] = []
    for platform in ("LUW", "ZOS"):
        with streaming(source, **given, db2__platform=platform) as stream:
            key = 2 + len(images)
            write(source, insert.format(key))
            (event,) = stream.step()[0]
            images.append({**event["after"], "id": key})
    assert images[0].keys() == {"id", *columns}
    assert images[0] == {**images[1], "id": 2}


def test_columns_are_found_by_their_names(source: Db2Source) -> None:
    with streaming(source) as stream:
        source.server.release(source.schema, "orders")
        table = CHANGES.format(source.schema)
        source.run(f"CALL ASNCDC.ADDTABLE('{source.schema}', 'orders')", f"DROP TABLE {table}")
        head = (
            "IBMSNAP_COMMITSEQ VARCHAR(16) FOR BIT DATA NOT NULL, IBMSNAP_INTENTSEQ VARCHAR(16) FOR BIT DATA NOT NULL"
        )
        source.run(f'CREATE TABLE {table} ({head}, IBMSNAP_OPERATION CHAR(1) NOT NULL, "v" INTEGER, "id" INTEGER)')
        source.server.services("reinit")
        with pytest.raises(OffsetError, match="capture was disabled and enabled again"):
            stream.step()
    with streaming(source) as stream:
        write(source, insert(source, 7, 70))
        (event,) = stream.step()[0]
        assert event["after"] == {"id": 7, "v": 70}, "the change table has no other columns"


def test_a_registration_that_is_added_and_removed(source: Db2Source) -> None:
    with streaming(source, table__include__list=rf"{source.schema}\..*") as stream:
        source.create("later")
        source.run(f"INSERT INTO {source.name('later')} VALUES (1, 1, NULL)")
        events, structures = stream.step()
        assert values_of(events) == [("c", None, 1)]
        (change,) = structures[0]["tableChanges"]
        assert (change["type"], change["id"]) == ("CREATE", f'"{source.schema}"."later"')
        assert structures[0]["databaseName"] == source.server.database
        source.server.release(source.schema, "later")
        write(source, insert(source, 1, 10))
        events, structures = stream.step()
        assert values_of(events) == [("c", None, 10)]
        assert [each["tableChanges"][0]["type"] for each in structures] == ["DROP"]


def test_a_new_column_sends_one_schema_change(source: Db2Source) -> None:
    with streaming(source) as stream:
        write(source, insert(source, 1, 10))
        assert stream.step()[1] == []
        source.add_column("orders", "extra")
        source.run(f"INSERT INTO {source.name('orders')} VALUES (2, 20, NULL, 22)")
        events, structures = stream.step()
        assert events[0]["after"] == {"id": 2, "v": 20, "note": None, "extra": 22}
        (change,) = structures[0]["tableChanges"]
        assert (change["type"], structures[0]["ddl"]) == ("ALTER", None)
        assert [column["name"] for column in change["table"]["columns"]] == ["id", "v", "note", "extra"]
        write(source, insert(source, 3, 30).replace("NULL)", "NULL, NULL)"))
        assert stream.step()[1] == []


def prune(source: Db2Source) -> None:
    """Remove all but the last commit, as the capture program does after the retention."""
    source.settle()
    last = "(SELECT MAX(u.IBMSNAP_COMMITSEQ) FROM ASNCDC.IBMSNAP_UOW u)"
    source.run(f"DELETE FROM ASNCDC.IBMSNAP_UOW WHERE IBMSNAP_COMMITSEQ < {last}")
    source.run(f"DELETE FROM {CHANGES.format(source.schema)} WHERE IBMSNAP_COMMITSEQ < {last}")


@contextmanager
def retention(source: Db2Source, minutes: int) -> Iterator[None]:
    """With another time that changes are kept."""
    source.run(f"UPDATE ASNCDC.IBMSNAP_CAPPARMS SET RETENTION_LIMIT = {minutes}")
    try:
        yield
    finally:
        source.run("UPDATE ASNCDC.IBMSNAP_CAPPARMS SET RETENTION_LIMIT = 10080")


def test_an_idle_poll_queries_only_the_end_of_the_log(source: Db2Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_tables, "_LOOKS_S", 600.0)
    with streaming(source) as stream:
        write(source, insert(source, 1, 1))
        assert len(stream.step()[0]) == 1
        assert stream.step()[0] == []
        monkeypatch.setattr(connector, "_ASKED_S", 0.0)  # the server's time is not needed either
        asked = statements(monkeypatch, Connection)
        assert stream.step()[0] == []
        assert len(asked) == 1, asked
        assert "SYNCHPOINT" in asked[0]


@pytest.mark.parametrize("minutes", [0, 10080])
def test_changes_that_are_pruned_before_they_are_read_are_an_error(
    source: Db2Source, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "_ASKED_S", 0.0)  # it asks for the server's time at each poll
    with streaming(source) as stream, retention(source, minutes):
        for number in range(3):
            write(source, insert(source, number, number))
        prune(source)
        # Within the retention the capture program prunes nothing by itself.
        words, remedy = ("emptied by hand", "warmsi") if minutes else ("pruning has removed changes", "RETENTION_LIMIT")
        with pytest.raises(OffsetError, match=words) as caught:
            stream.step()
        assert remedy in (caught.value.remedy or "")


def test_what_was_read_may_be_pruned(source: Db2Source) -> None:
    with streaming(source) as stream, retention(source, 0):
        for number in range(3):
            write(source, insert(source, number, number))
        assert len(stream.step()[0]) == 3
        prune(source)
        write(source, insert(source, 4, 4))
        assert values_of(stream.step()[0]) == [("c", None, 4)]


def test_the_time_of_a_commit_is_the_capture_programs(source: Db2Source) -> None:
    mark = "TIMESTAMP('2001-02-03 04:05:06.789')"
    with streaming(source) as stream:
        write(source, insert(source, 1, 10))
        source.settle()
        source.run(f"UPDATE ASNCDC.IBMSNAP_UOW SET IBMSNAP_LOGMARKER = {mark}")
        (event,) = stream.step()[0]
        assert event["source"]["ts_ms"] == 981_173_106_789
        assert event["ts_ms"] > 1_700_000_000_000
    with streaming(source, source__timestamp__mode="processing") as stream:
        write(source, insert(source, 2, 20))
        source.settle()
        source.run(f"UPDATE ASNCDC.IBMSNAP_UOW SET IBMSNAP_LOGMARKER = {mark}")
        (event,) = stream.step()[0]
        assert event["source"]["ts_ms"] > 1_700_000_000_000


def test_a_batch_has_the_commits_of_a_span_of_time(source: Db2Source) -> None:
    with streaming(source, streaming__query__timespan__seconds="60") as stream:
        for number in range(4):
            write(source, insert(source, number, number))
        source.settle()
        commits = f"SELECT IBMSNAP_COMMITSEQ FROM {CHANGES.format(source.schema)} ORDER BY IBMSNAP_COMMITSEQ"
        # Two within a minute, one a little later, one after an hour.
        for (lsn,), time in zip(source.run(commits), ("10:00:00", "10:00:59", "10:01:01", "11:30:00"), strict=True):
            marked = f"IBMSNAP_LOGMARKER = TIMESTAMP('2001-02-03 {time}')"
            source.run(f"UPDATE ASNCDC.IBMSNAP_UOW SET {marked} WHERE IBMSNAP_COMMITSEQ = X'{lsn.hex()}'")
        assert [[each["after"]["id"] for each in stream.step(2**28)[0]] for _ in range(4)] == [[0, 1], [2], [3], []]


def test_a_program_that_has_never_run_is_waited_for(source: Db2Source) -> None:
    source.run("UPDATE ASNCDC.IBMSNAP_REGISTER SET SYNCHPOINT = NULL, CD_NEW_SYNCHPOINT = NULL")
    with streaming(source) as stream:
        assert stream.step() == ([], [])
        write(source, insert(source, 1, 10))
        assert values_of(stream.step()[0]) == [("c", None, 10)]


def test_an_inactive_registration_is_found(source: Db2Source) -> None:
    package = registry.named("db2").load()
    given = source.properties("p") | {"topic.prefix": "t", "table.include.list": rf"{source.schema}\.(orders|bare)"}
    source.run(f"CREATE TABLE {source.name('bare')} (a INTEGER)")
    source.run(f"UPDATE {REGISTER} SET STATE = 'I' WHERE SOURCE_TABLE = 'orders' AND SOURCE_OWNER = '{source.schema}'")
    found = {each.what: each.remedy for each in package.admin(package.resolve(given)).checks() if each.ok is False}
    inactive = next(remedy for text, remedy in found.items() if "is not active" in text)
    missing = next(remedy for text, remedy in found.items() if "has no registration" in text)
    assert "SET STATE = 'A'" in (inactive or "")
    assert f"""CALL "ASNCDC".ADDTABLE('{source.schema}', 'bare')""" in (missing or "")


def test_the_printed_statements_register_a_table(source: Db2Source) -> None:
    package = registry.named("db2").load()
    given = source.properties("p") | {"topic.prefix": "t", "table.include.list": rf"{source.schema}\.plain"}
    admin = package.admin(package.resolve(given))
    source.run(f"CREATE TABLE {source.name('plain')} (ID INTEGER NOT NULL PRIMARY KEY, V INTEGER)")
    printed = admin.preparation([source.id("plain"), source.id("orders")])
    assert printed[-1] == f"asnccmd capture_server={source.server.database} capture_schema=ASNCDC reinit"
    source.run(*(each.rstrip(";") for each in printed[:-1] if not each.startswith("GRANT")))
    source.server.services("reinit")
    assert admin.preparation([source.id("plain"), source.id("orders")]) == []
    assert [each.what for each in admin.checks() if each.ok is False] == []
    with streaming(source, table__include__list=rf"{source.schema}\.plain") as stream:
        source.run(f"INSERT INTO {source.name('plain')} VALUES (1, 2)", f"UPDATE {source.name('plain')} SET V = 3")
        assert [(each["op"], each["after"]["V"]) for each in stream.step()[0]] == [("c", 2), ("u", 3)]


@pytest.mark.long
def test_a_connection_that_is_cut_anywhere_is_logged_and_reconnected(source: Db2Source) -> None:
    given = source.properties("p") | {"topic.prefix": "t", "errors.max.retries": "0", "driver.loginTimeout": "5"}
    question = "SELECT TABSCHEMA, TABNAME FROM SYSCAT.TABLES ORDER BY TABSCHEMA, TABNAME"
    with proxy(source.server.port) as between:
        given |= {"database.hostname": "127.0.0.1", "database.port": str(between.port)}
        server = Server(registry.named("db2").load().resolve(given))
        expected = server.ask(lambda connection: connection.rows(question))
        whole = between.links[-1].sent
        outcomes = set[object]()
        for between.cut in [*range(1, whole, max(1, whole // 4)), None]:
            server.close()
            try:
                outcomes.add(server.ask(lambda connection: connection.rows(question)) == expected)
            except SourceError as error:
                outcomes.add(error.what.partition(": ")[2].partition(":")[0])
        assert outcomes == {True, "the server cannot be reached"}
        server.close()


def test_any_unique_index_may_be_the_key(source: Db2Source) -> None:
    both = source.name("both")
    source.run(f'CREATE TABLE {both} ("id" INTEGER NOT NULL PRIMARY KEY, "mail" INTEGER NOT NULL, "v" INTEGER)')
    source.run(f'CREATE UNIQUE INDEX "{source.schema}"."by_mail" ON {both} ("mail")')
    package, table = registry.named("db2").load(), source.id("both")
    given = {**source.properties("p"), "topic.prefix": "t", "table.include.list": rf"{source.schema}\.both"}
    for columns, is_unique in (("mail", True), ("v", False)):
        config = package.resolve({**given, "message.key.columns": f"{source.schema}.both:{columns}"})
        admin = package.admin(config)
        assert any("share an event key" in each.what for each in admin.checks()) is not is_unique
        with admin.now() as now:
            assert (now.obstacle(now.table(table), (columns,)) is None) is is_unique


@pytest.mark.long
def test_a_lock_for_a_snapshot_has_a_limit(source: Db2Source) -> None:
    """While somebody else holds the table."""
    package = registry.named("db2").load()
    given = {"snapshot.isolation.mode": "exclusive", "snapshot.lock.timeout.ms": "1000", "topic.prefix": "t"}
    config = package.resolve({**source.properties("p"), **given})
    one = connect(config)
    with source.server.session() as other:
        other.begin()
        other.rows(insert(source, 2, 20))
        began = time.monotonic()
        with pytest.raises(Db2Error), DIALECT.transaction(one, config):
            DIALECT.locked(one, config, source.id("orders"))
        assert time.monotonic() - began < 60
        other.end(commit=True)
    with DIALECT.transaction(one, config):
        DIALECT.locked(one, config, source.id("orders"))
    one.close()
