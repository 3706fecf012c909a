"""DDL that the triggers of `tailrace init --ddl` report: which events are sent, in which order, and which are not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.options import SLOT_NAME
from tailrace.connectors.postgres.position import SOURCE
from tailrace.events.record import RecordEncoder
from tailrace.model.change import ChangeBatch
from tailrace.model.schema_change import SchemaChange
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database


@pytest.fixture(params=["database", "database16"])
def streaming(request: pytest.FixtureRequest) -> Iterator[Capture]:
    """A pipeline that streams from a database with the triggers; on PostgreSQL 18 and 16."""
    with capturing(request.getfixturevalue(request.param)) as capture:
        event_triggers.install(capture.config)
        capture.step()
        yield capture


def batches(capture: Capture) -> list[ChangeBatch]:
    """The batches of the next step, in their order."""
    return [batch for split in capture.plan() for chunk in capture.reader.read(split) for batch in chunk.batches]


def changes(capture: Capture) -> list[tuple[str, SchemaChange]]:
    """The schema changes of the next step, each with its table."""
    return [(str(each.table.id), each.schema_change) for each in batches(capture) if each.schema_change is not None]


def kinds(capture: Capture) -> list[tuple[str, str]]:
    return [(table, change.kind) for table, change in changes(capture)]


def test_tables_are_created_altered_and_dropped(streaming: Capture) -> None:
    streaming.database.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE t (id serial PRIMARY KEY, price numeric(9, 2) NOT NULL, name varchar(10) DEFAULT 'x', m mood)",
        "COMMENT ON COLUMN t.price IS 'in euro'",
        "ALTER TABLE t ADD tags text[]",
        "ALTER TABLE t RENAME name TO title",
        "ALTER TABLE t ALTER price TYPE numeric(12, 3), DROP m",
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, price)",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE u",
    )
    found = changes(streaming)
    assert [(table, change.kind) for table, change in found] == [
        ("public.t", "CREATE"),
        *[("public.t", "ALTER")] * 5,
        ("public.u", "ALTER"),
        ("public.u", "DROP"),
    ]
    created, commented, added, renamed, retyped, rekeyed, moved, dropped = (change for _, change in found)
    assert created.statement is not None
    assert created.statement.startswith("CREATE TABLE t")
    assert created.key == ("id",)
    columns = {column.name: column for column in created.columns}
    assert list(columns) == ["id", "price", "name", "m"]
    assert (columns["id"].auto_incremented, columns["id"].optional, columns["id"].jdbc_type) == (True, False, 4)
    assert (columns["price"].length, columns["price"].scale, columns["price"].type_expression) == (9, 2, "numeric(9,2)")
    assert (columns["name"].length, columns["name"].default) == (10, "'x'::character varying")
    assert columns["m"].enum_values == ("sad", "ok")
    assert commented.columns[1].comment == "in euro"
    assert (added.columns[-1].name, added.columns[-1].jdbc_type) == ("tags", 2003)
    assert renamed.renamed == (("name", "title"),)
    assert (retyped.renamed, retyped.dropped, retyped.columns[1].scale) == ((), ("m",), 3)
    assert [column.position for column in retyped.columns] == [1, 2, 3, 4]
    assert rekeyed.key == ("id", "price")
    assert str(moved.previous) == "public.t"
    assert (dropped.columns, dropped.previous) == ((), None)


def test_rows_and_ddl_keep_their_order(streaming: Capture) -> None:
    streaming.database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE other (id int PRIMARY KEY)")
    streaming.step()
    with streaming.database.connect() as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1, 'a')")
        connection.execute("INSERT INTO other VALUES (1)")
        connection.execute("ALTER TABLE t RENAME v TO w")
        connection.execute("INSERT INTO t VALUES (2, 'b')")
        connection.execute("INSERT INTO other VALUES (2)")
        connection.execute("ALTER TABLE t RENAME TO moved")
        connection.execute("INSERT INTO moved VALUES (3, 'c')")
        connection.execute("COMMIT")
    found = batches(streaming)
    order = [row["order"] for batch in found for row in batch.rows.to_pylist()]
    lines = [(str(batch.table.id), row["op"], row["after"]) for batch in found for row in batch.rows.to_pylist()]
    assert [line for line in lines if line[0] != "public.other"] == [
        ("public.t", "c", {"id": 1, "v": "a"}),
        ("public.t", "s", None),
        ("public.t", "c", {"id": 2, "w": "b"}),
        ("public.moved", "s", None),
        ("public.moved", "c", {"id": 3, "w": "c"}),
    ]
    assert order == sorted(order), "what stands before and after a schema change is not mixed with it"
    assert len({json.dumps(row["source"]["txId"]) for batch in found for row in batch.rows.to_pylist()}) == 1


def test_rows_of_tables_that_swapped_their_names_since_keep_their_keys(streaming: Capture) -> None:
    streaming.database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v text NOT NULL)",
        "CREATE TABLE b (code text PRIMARY KEY)",
        "INSERT INTO a VALUES (1, 'x')",
        "INSERT INTO b VALUES ('y')",
        "ALTER TABLE a RENAME TO c",
        "ALTER TABLE b RENAME TO a",
        "ALTER TABLE c RENAME TO b",
        "ALTER TABLE b RENAME id TO number",
    )
    tables = {str(batch.table.id): batch.table for batch in batches(streaming) if batch.schema_change is None}
    assert {name: table.key for name, table in tables.items()} == {"public.a": ("id",), "public.b": ("code",)}
    assert tables["public.a"].column("v").schema.optional is False


def test_what_is_rolled_back_temporary_or_left_out_gives_nothing(streaming: Capture) -> None:
    with streaming.database.connect() as connection:
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE never (id int)")
        connection.execute("ROLLBACK")
        connection.execute("CREATE TEMP TABLE passing (id int)")
        connection.execute("ALTER TABLE passing ADD v int")
        connection.execute("DROP TABLE passing")
        connection.execute("CREATE UNLOGGED TABLE light (id int)")
        connection.execute("CREATE VIEW seen AS SELECT 1 AS a")
        connection.execute("ALTER TABLE seen RENAME a TO b")
        connection.execute("CREATE MATERIALIZED VIEW kept AS SELECT 1 AS a")
        connection.execute("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    assert kinds(streaming) == []


def test_statements_in_a_block_and_in_a_transaction(streaming: Capture) -> None:
    streaming.database.execute("CREATE TABLE t (a int, b int)")
    streaming.step()
    block = "DO $$ BEGIN ALTER TABLE t RENAME a TO c; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME c TO b; END $$"
    streaming.database.execute(block)
    found = [change for _, change in changes(streaming)]
    assert [change.renamed for change in found] == [(("a", "c"),), (("b", "a"),), (("c", "b"),)]
    assert {change.statement for change in found} == {block}
    streaming.database.execute("ALTER TABLE t DROP a, ADD a text")
    (change,) = [change for _, change in changes(streaming)]
    assert (change.renamed, change.dropped) == ((), ("a",))


def test_a_change_of_another_transaction_is_not_reported_twice(streaming: Capture) -> None:
    """A snapshot of the transaction's, or the statement's that waits for a lock, shows the catalog as it was before."""
    streaming.database.execute("CREATE TABLE t (id int, a int, x int, k int)", "CREATE TABLE o (id int, z int)")
    streaming.step()
    with (
        streaming.database.connect() as late,
        streaming.database.connect() as waiting,
        streaming.database.connect() as holder,
    ):
        late.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        late.execute("SELECT 1")
        holder.execute("BEGIN")
        for statement in ("RENAME a TO b", "DROP x", "ADD x text", "RENAME TO u"):
            holder.execute(f"ALTER TABLE t {statement}".encode())
        with ThreadPoolExecutor(1) as pool:
            blocked = pool.submit(waiting.execute, b"ALTER TABLE o RENAME z TO zz; ALTER TABLE t RENAME k TO kk")
            while holder.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is None:
                time.sleep(0.01)
            holder.execute("ALTER TABLE u RENAME TO t")
            holder.execute("COMMIT")
            blocked.result(120)
        late.execute("ALTER TABLE t ADD y int")
        late.execute("SAVEPOINT s")
        late.execute("ALTER TABLE t RENAME y TO yy")
        late.execute("ALTER TABLE t RENAME yy TO yyy")
        late.execute("COMMIT")
    found = [
        (change.renamed, change.dropped, change.previous and change.previous.table) for _, change in changes(streaming)
    ]
    assert found == [
        ((("a", "b"),), (), None),
        ((), ("x",), None),
        ((), (), None),
        ((), (), "t"),
        ((), (), "u"),
        ((("z", "zz"),), (), None),
        ((("k", "kk"),), (), None),
        ((), (), None),
        ((("y", "yy"),), (), None),
        ((("yy", "yyy"),), (), None),
    ]


def test_partitions_schemas_and_types_change_tables_too(streaming: Capture) -> None:
    streaming.database.execute(
        "CREATE TABLE p (id int, v int) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "CREATE TYPE pair AS (x int, y int)",
        "CREATE SCHEMA s CREATE TABLE inside (id int, at pair)",
    )
    assert kinds(streaming) == [("public.p", "CREATE"), ("public.p1", "CREATE"), ("s.inside", "CREATE")]
    streaming.database.execute("ALTER TABLE p RENAME v TO w", "ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY")
    found = changes(streaming)
    assert [(table, change.renamed) for table, change in found[:2]] == [
        ("public.p", (("v", "w"),)),
        ("public.p1", (("v", "w"),)),
    ]
    streaming.database.execute("ALTER SCHEMA s RENAME TO z", "ALTER TABLE z.inside SET SCHEMA public")
    assert [(table, str(change.previous)) for table, change in changes(streaming)] == [
        ("z.inside", "s.inside"),
        ("public.inside", "z.inside"),
    ]
    streaming.database.execute(
        "DROP TYPE pair CASCADE", "CREATE TABLE made AS SELECT 1 AS one", "DROP SCHEMA public CASCADE"
    )
    found = changes(streaming)
    assert [(table, change.kind, change.dropped) for table, change in found[:2]] == [
        ("public.inside", "ALTER", ("at",)),
        ("public.made", "CREATE", ()),
    ]
    assert {(table, change.kind) for table, change in found[2:]} == {
        (f"public.{name}", "DROP") for name in ("p", "p1", "inside", "made")
    }


@pytest.mark.parametrize(
    "given", [{"table__include__list": r"public\.(kept|new)", "column__exclude__list": ".*secret"}]
)
def test_filters_see_both_names(database: Database, given: dict[str, str]) -> None:
    with capturing(database, **given) as capture:
        event_triggers.install(capture.config)
        capture.step()
        database.execute(
            "CREATE TABLE other (id int)",
            "CREATE TABLE kept (id int, secret text)",
            "ALTER TABLE kept RENAME TO outside",
            "ALTER TABLE outside ADD v int",
            "ALTER TABLE outside RENAME TO new",
            "ALTER TABLE new RENAME TO kept",
        )
        found = changes(capture)
    assert [(table, str(change.previous)) for table, change in found] == [
        ("public.kept", "None"),
        ("public.outside", "None"),
        ("public.new", "None"),
        ("public.kept", "public.new"),
    ]
    assert [column.name for column in found[0][1].columns] == ["id"]


def records(capture: Capture) -> list[dict[str, Any]]:
    """The Kafka records of the next step."""
    encoder = RecordEncoder(capture.config, SOURCE, "run")
    return [row for batch in batches(capture) for part in encoder.encode(batch) for row in part.to_pylist()]


def test_a_record_is_as_debeziums(database: Database) -> None:
    with capturing(database) as capture:
        event_triggers.install(capture.config)
        capture.step()
        database.execute('CREATE TABLE "T" (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, twice int)')
        database.execute('DROP TABLE "T"')
        created, dropped = records(capture)
    assert (created["topic"], created["partition"]) == ("t", 0)
    assert [header["key"].rpartition(".")[2] for header in created["headers"]] == [
        *("connectorLogicalName", "taskId", "connectorName", "runId")
    ]
    key, value = json.loads(created["key"]), json.loads(created["value"])
    assert key["schema"]["name"] == "io.debezium.connector.postgresql.SchemaChangeKey"
    assert key["payload"] == {"databaseName": database.name}
    assert value["schema"]["name"] == "io.debezium.connector.postgresql.SchemaChangeValue"
    payload = value["payload"]
    assert list(payload) == ["source", "ts_ms", "databaseName", "schemaName", "ddl", "tableChanges"]
    assert (payload["source"]["schema"], payload["source"]["table"]) == ("public", "T")
    assert payload["source"]["lsn"] > 0
    (change,) = payload["tableChanges"]
    assert (change["type"], change["id"]) == ("CREATE", f'"{database.name}"."public"."T"')
    assert change["table"]["primaryKeyColumnNames"] == ["id"]
    assert change["table"]["columns"][0] == {
        "name": "id",
        "jdbcType": -5,
        "nativeType": 20,
        "typeName": "int8",
        "typeExpression": "bigint",
        "charsetName": None,
        "length": None,
        "scale": None,
        "position": 1,
        "optional": False,
        "autoIncremented": True,
        "generated": False,
        "comment": None,
        "defaultValueExpression": None,
        "enumValues": None,
    }
    (change,) = json.loads(dropped["value"])["payload"]["tableChanges"]
    assert (change["type"], change["table"]) == ("DROP", None)


def test_records_can_be_left_out(database: Database) -> None:
    with capturing(database, include__schema__changes="false") as capture:
        event_triggers.install(capture.config)
        capture.step()
        database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        assert [record["topic"] for record in records(capture)] == ["t.public.t"]


def test_a_restart_gives_the_same_once(streaming: Capture) -> None:
    streaming.database.execute("CREATE TABLE t (a int)", "ALTER TABLE t RENAME a TO b")
    splits = streaming.plan()
    first = [
        (batch.schema_change, batch.rows.to_pylist())
        for _ in range(2)
        for split in splits
        for chunk in streaming.reader.read(split)
        for batch in chunk.batches
    ]
    assert first[:2] == first[2:]
    streaming.forget_streams()
    assert kinds(streaming) == []


def test_installing_twice_and_removing(streaming: Capture) -> None:
    event_triggers.install(streaming.config)
    streaming.database.execute("CREATE TABLE t (a int)")
    assert kinds(streaming) == [("public.t", "CREATE")]
    slot = streaming.config[SLOT_NAME]
    with streaming.database.connect() as connection:
        assert event_triggers.remove(connection, "another") == [
            f"DDL triggers: kept, as other slots may need them: {slot}"
        ]
        assert event_triggers.remove(connection, slot) == ["DDL triggers: dropped"]
        assert event_triggers.remove(connection, slot) == []
    streaming.database.execute("CREATE TABLE u (a int)")
    assert kinds(streaming) == []


def test_any_role_may_run_ddl_where_the_triggers_are(streaming: Capture) -> None:
    role = f"maker_{streaming.database.name}"
    streaming.database.execute(f"CREATE ROLE {role}", f"GRANT CREATE ON SCHEMA public TO {role}")
    try:
        with streaming.database.connect() as connection:
            connection.execute(f"SET ROLE {role}".encode())
            connection.execute("CREATE TABLE hers (a int)")
            connection.execute("ALTER TABLE hers RENAME a TO b")
        assert kinds(streaming) == [("public.hers", "CREATE"), ("public.hers", "ALTER")]
    finally:
        streaming.database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
