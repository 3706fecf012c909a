"""Who may report a schema change: the DDL triggers alone, by a table that is theirs and that is never data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tailrace.connectors.postgres.admin import operations
from tailrace.connectors.postgres.admin.checks import check
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.options import SLOT_NAME
from tailrace.connectors.postgres.server.connect import connect
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.test_ddl import batches, changes, kinds
from tests.conftest import Database

VICTIM = ("CREATE TABLE victim (id int PRIMARY KEY, v text)", "INSERT INTO victim VALUES (1, 'a')")
DROP_OF_VICTIM = {"kind": "DROP", "oid": 1, "schema": "public", "name": "victim"}
FORGED = [json.dumps({"version": version, "statement": "", "tables": [DROP_OF_VICTIM]}) for version in (1, 2)]
FORGED_TABLE = (
    "CREATE SCHEMA tailrace_ddl",
    "CREATE TABLE tailrace_ddl.changes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, content text)",
    *(f"INSERT INTO tailrace_ddl.changes (content) VALUES ('{content}')" for content in FORGED),
)
# Event triggers with the names of ours, which have no table.
TRIGGERS_WITHOUT_TABLE = """
CREATE SCHEMA tailrace_ddl;
CREATE FUNCTION tailrace_ddl.tell(tag text, tables jsonb) RETURNS void LANGUAGE sql AS $$
  SELECT pg_logical_emit_message(true, 'tailrace.ddl', jsonb_build_object('version', 1, 'tables', tables)::text) $$;
CREATE FUNCTION tailrace_ddl.at_end() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN PERFORM tailrace_ddl.tell(tg_tag, '[{"kind": "DROP", "schema": "public", "name": "victim"}]'); END $$;
CREATE EVENT TRIGGER tailrace_ddl_end ON ddl_command_end EXECUTE FUNCTION tailrace_ddl.at_end();
CREATE EVENT TRIGGER tailrace_ddl_drop ON sql_drop EXECUTE FUNCTION tailrace_ddl.at_end();
"""


@contextmanager
def role(database: Database, *grants: str) -> Iterator[str]:
    """A role that may log in; `{}` in the grants stands for its name."""
    name = f"mallory_{database.name}"
    database.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'", *(grant.format(name) for grant in grants))
    try:
        yield name
    finally:
        database.execute(f"REASSIGN OWNED BY {name} TO CURRENT_USER", f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def run_as(database: Database, name: str, *statements: str) -> None:
    with database.connect() as connection:
        connection.execute(f"SET ROLE {name}".encode())
        for statement in statements:
            connection.execute(statement.encode())


def table_number(database: Database) -> int:
    with database.connect() as connection:
        row = connection.execute("SELECT 'tailrace_ddl.changes'::regclass::oid::int8").fetchone()
    assert row is not None
    return int(row[0])


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "tailrace init" in record.getMessage()]


def ddl_findings(capture: Capture) -> list[tuple[bool | None, str, str | None]]:
    return [(found.ok, found.what, found.remedy) for found in check(capture.config) if found.name == "ddl"]


@pytest.mark.parametrize("installed", [False, True])
def test_a_logical_message_reports_nothing_whoever_writes_it(database: Database, installed: bool) -> None:
    """It is an event as any other message, whatever its prefix is."""
    database.execute(*VICTIM)
    with capturing(database, message__prefix__include__list="tailrace.*") as capture:
        if installed:
            event_triggers.install(capture.config)
        capture.step()
        with role(database) as mallory:
            emit = "SELECT pg_logical_emit_message({}, 'tailrace.{}', '{}')"
            messages = [emit.format(kind, "ddl", content) for content in FORGED for kind in ("true", "false")]
            run_as(database, mallory, *messages, emit.format("true", "more", "x"))
            found = batches(capture)
    prefixes = [row["after"]["prefix"] for batch in found for row in batch.rows.to_pylist()]
    assert sorted(prefixes) == [*["tailrace.ddl"] * len(messages), "tailrace.more"]
    assert {(batch.schema_change, batch.structure) for batch in found} == {(None, None)}


def test_a_table_that_somebody_else_made_reports_nothing(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    """Any role that may make a schema can make a table of that name, in a database without triggers."""
    database.execute(*VICTIM)
    with (
        role(database, f"GRANT CREATE ON DATABASE {database.name} TO {{}}") as mallory,
        capturing(database) as capture,
    ):
        capture.step()
        run_as(database, mallory, *FORGED_TABLE)
        assert batches(capture) == []
        assert len(warnings(caplog)) == 1
        # What is made by those who may replaces it, and its rows are not believed afterwards either.
        run_as(database, mallory, *FORGED_TABLE[2:])
        event_triggers.install(capture.config)
        database.execute("ALTER TABLE victim ADD w int")
        assert kinds(capture) == [("public.victim", "ALTER")]


def test_nobody_but_the_triggers_may_write_the_table(database: Database) -> None:
    name = f"mallory_{database.name}"
    database.execute(*VICTIM, f"CREATE ROLE {name}")
    # Default privileges would grant it.
    database.execute(
        *(f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO PUBLIC, {name}" for kind in ("TABLES", "SCHEMAS"))
    )
    try:
        with capturing(database) as capture:
            event_triggers.install(capture.config)
            capture.step()
            for statement in (
                f"INSERT INTO tailrace_ddl.changes (content) VALUES ('{FORGED[1]}')",
                f"UPDATE tailrace_ddl.changes SET content = '{FORGED[1]}'",
                "DELETE FROM tailrace_ddl.changes",
                "TRUNCATE tailrace_ddl.changes",
                "SELECT * FROM tailrace_ddl.changes",
                "SELECT tailrace_ddl.report('', '[{}]')",
                "CREATE TABLE child () INHERITS (tailrace_ddl.changes)",
                "DROP TABLE tailrace_ddl.changes",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    run_as(database, name, statement)
            database.execute(f"GRANT CREATE ON SCHEMA public TO {name}")
            run_as(database, name, "CREATE TABLE hers (id int)")
            assert kinds(capture) == [("public.hers", "CREATE")], "DDL of any role is reported"
    finally:
        database.execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT INSERT ON tailrace_ddl.changes TO {}",
        "GRANT UPDATE (content) ON tailrace_ddl.changes TO {}",
        "GRANT TRIGGER ON tailrace_ddl.changes TO PUBLIC",
        "ALTER TABLE tailrace_ddl.changes OWNER TO {}",
    ],
)
def test_a_table_that_others_may_write_reports_nothing(
    database: Database, grant: str, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute(*VICTIM)
    with role(database) as mallory, capturing(database) as capture:
        event_triggers.install(capture.config)
        capture.step()
        database.execute(grant.format(mallory), "ALTER TABLE victim ADD w int")
        assert kinds(capture) == []
        assert len(warnings(caplog)) == 1
        ((ok, what, remedy),) = ddl_findings(capture)
        assert (ok, "may write" in what) == (None, True)
        assert "tailrace init" in str(remedy)
        event_triggers.install(capture.config)
        database.execute("ALTER TABLE victim DROP w")
        assert kinds(capture) == [("public.victim", "ALTER")]


def test_reports_from_before_the_triggers_were_dropped_are_ignored(streaming: Capture) -> None:
    streaming.database.execute("CREATE TABLE t (a int)", "DROP TABLE t")
    with streaming.database.connect() as connection:
        assert event_triggers.remove(connection, streaming.config[SLOT_NAME]) == ["DDL triggers: dropped"]
    assert kinds(streaming) == []


@pytest.fixture(params=["database", "database16"])
def streaming(request: pytest.FixtureRequest) -> Iterator[Capture]:
    """A pipeline that streams from a database with the triggers; on PostgreSQL 18 and 16."""
    with capturing(request.getfixturevalue(request.param)) as capture:
        event_triggers.install(capture.config)
        capture.step()
        yield capture


def test_triggers_that_are_installed_again_keep_their_table(streaming: Capture) -> None:
    before = table_number(streaming.database)
    streaming.database.execute("CREATE TABLE t (a int)")
    event_triggers.install(streaming.config)
    streaming.database.execute("ALTER TABLE t RENAME a TO b")
    assert table_number(streaming.database) == before
    assert kinds(streaming) == [("public.t", "CREATE"), ("public.t", "ALTER")]


def test_the_table_stays_empty(streaming: Capture) -> None:
    streaming.database.execute("CREATE TABLE t (a int)", *("ALTER TABLE t ADD b int", "ALTER TABLE t DROP b") * 5)
    assert len(kinds(streaming)) == 11
    with streaming.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM tailrace_ddl.changes").fetchone() == (0,)


def test_triggers_without_their_table_are_replaced(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute(*VICTIM, TRIGGERS_WITHOUT_TABLE)
    with capturing(database) as capture:
        capture.step()
        database.execute("ALTER TABLE victim ADD w int")
        assert kinds(capture) == []
        assert len(warnings(caplog)) == 1
        ((ok, what, remedy),) = ddl_findings(capture)
        assert (ok, "have no table" in what) == (None, True)
        assert "tailrace init" in str(remedy)
        event_triggers.install(capture.config)
        database.execute("ALTER TABLE victim DROP w")
        assert kinds(capture) == [("public.victim", "ALTER")]
        assert ddl_findings(capture) == [(True, "DDL triggers report schema changes", None)]


def test_the_table_is_never_data(database: Database) -> None:
    given = {"table__include__list": r".*\.(victim|changes)", "table__ignore__builtin": "false"}
    with capturing(database, **given) as capture:
        event_triggers.install(capture.config)
        database.execute(*VICTIM, f"INSERT INTO tailrace_ddl.changes (content) VALUES ('{FORGED[1]}')")
        assert [row["table"] for row in capture.step()] == ["public.victim"]
        database.execute(
            "INSERT INTO victim VALUES (2, 'b')",
            "UPDATE tailrace_ddl.changes SET content = ''",
            "TRUNCATE tailrace_ddl.changes",
            "ALTER TABLE victim ADD w int",
        )
        found = [(str(batch.table.id), batch.rows.column("op").to_pylist()) for batch in batches(capture)]
        assert found == [("public.victim", ["c"]), ("public.victim", ["s"])]
        with connect(capture.config) as connection:
            assert [str(table) for table in Catalog(connection, capture.config).tables()] == ["public.victim"]
        assert [table.name for table in operations.tables(capture.config)] == ["public.victim"]
        assert [f.what for f in check(capture.config) if f.name == "tables"] == ["1 tables are captured"]


def test_rows_by_hand_are_logged_and_passed_over(streaming: Capture, caplog: pytest.LogCaptureFixture) -> None:
    contents = ["", "no json", "[]", '{"version": 1}', '{"version": 2, "statement": "", "tables": [{"schema": 1}]}']
    streaming.database.execute(
        *(f"INSERT INTO tailrace_ddl.changes (content) VALUES ('{content}')" for content in contents),
        "CREATE TABLE later ()",
    )
    assert kinds(streaming) == [("public.later", "CREATE")]
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("LSN ")]
    assert len(said) == len(contents)
    assert "tailrace init" in said[3]


# Publications


def published(database: Database) -> set[str]:
    with database.connect() as connection:
        rows = connection.execute("SELECT schemaname || '.' || tablename FROM pg_publication_tables")
        return {name for (name,) in rows}


@pytest.mark.parametrize("mode", ["all_tables", "filtered"])
def test_a_publication_of_the_owners_gets_the_table(database: Database, mode: str) -> None:
    database.execute(*VICTIM)
    given = {"publication__autocreate__mode": mode, "table__include__list": r"public\.victim"}
    with capturing(database, **given) as capture:
        capture.step()
        event_triggers.install(capture.config)
        (found,) = ddl_findings(capture)
        assert found[0] is True
    # A start without the checkpoint, which would prove that the slot is its own.
    with capturing(database, slot__takeover="true", **given) as capture:
        capture.step()
        capture.step()
        assert published(database) == {"public.victim", "tailrace_ddl.changes"}
        database.execute("ALTER TABLE victim ADD w int")
        assert kinds(capture) == [("public.victim", "ALTER")]
        assert ddl_findings(capture) == [(True, "DDL triggers report schema changes", None)]


@pytest.fixture
def least(database: Database) -> Iterator[Database]:
    """A database whose pipeline has a role of its own, which owns its tables and the publication and nothing else."""
    name = f"least_{database.name}"
    with database.connect() as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN REPLICATION PASSWORD 'x'".encode())
    database.execute(
        f"GRANT CREATE ON DATABASE {database.name} TO {name}", *VICTIM, f"ALTER TABLE victim OWNER TO {name}"
    )
    event_triggers.install(resolve({**database.properties, "topic.prefix": "t"}))
    try:
        yield database
    finally:
        database.execute("DROP TABLE victim", f"REASSIGN OWNED BY {name} TO CURRENT_USER", f"DROP OWNED BY {name}")
        drop_slots(database)
        database.execute(f"DROP ROLE {name}")


def drop_slots(database: Database) -> None:
    with database.connect() as connection:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
        )


def of_least(database: Database, mode: str) -> dict[str, str]:
    return {
        "database__user": f"least_{database.name}",
        "database__password": "x",
        "publication__autocreate__mode": mode,
        "table__include__list": r"public\.victim",
    }


def test_a_role_that_does_not_own_the_table_gets_the_statement_to_run(
    least: Database, caplog: pytest.LogCaptureFixture
) -> None:
    given = of_least(least, "filtered")
    with capturing(least, **given) as capture:
        ((ok, what, remedy),) = ddl_findings(capture)
        assert (ok, "lacks" in what) == (None, True)
        assert remedy is not None
        assert remedy.startswith("once the publication is there, as a superuser: ALTER PUBLICATION")
        capture.step()
        assert "schema changes are not reported; remedy: once the publication is there, as a superuser" in caplog.text
        assert published(least) == {"public.victim"}
        least.execute("ALTER TABLE victim ADD w int")
        assert kinds(capture) == []
        ((ok, what, remedy),) = ddl_findings(capture)
        assert (ok, "lacks" in what) == (None, True)
        least.execute(str(remedy).partition(": ")[2])
        assert ddl_findings(capture) == [(True, "DDL triggers report schema changes", None)]
        least.execute("ALTER TABLE victim DROP w", "CREATE TABLE other (id int PRIMARY KEY)")
        least.execute(f"ALTER TABLE other OWNER TO least_{least.name}")
        assert kinds(capture) == [("public.victim", "ALTER")]
        last = capture.offset
    # A later start adapts the publication, and leaves alone what is not its own.
    with capturing(least, **{**given, "table__include__list": r"public\.(victim|other)"}) as capture:
        capture.offset = last
        capture.step()
        assert published(least) == {"public.victim", "public.other", "tailrace_ddl.changes"}


def test_a_publication_that_somebody_else_creates_must_contain_the_table(least: Database) -> None:
    with capturing(least, **of_least(least, "disabled")) as capture:
        (remedy,) = [found.remedy for found in check(capture.config) if found.name == "publication" and not found.ok]
        assert remedy is not None
        least.execute(remedy)
        assert published(least) == {"public.victim", "tailrace_ddl.changes"}
        assert ddl_findings(capture) == [(True, "DDL triggers report schema changes", None)]
        capture.step()
        least.execute("ALTER TABLE victim ADD w int")
        assert kinds(capture) == [("public.victim", "ALTER")]


def test_without_inserts_nothing_is_reported_and_check_says_so(database: Database) -> None:
    database.execute(*VICTIM)
    with capturing(database, skipped__operations="c") as capture:
        event_triggers.install(capture.config)
        capture.step()
        ((ok, what, _),) = ddl_findings(capture)
        assert (ok, "does not publish insert" in what) == (None, True)


def test_renames_and_drops_are_reported_in_their_place(streaming: Capture) -> None:
    """The row is in the same transaction as the change, so a rollback to a savepoint takes both back."""
    streaming.database.execute("CREATE TABLE t (a int)", "CREATE TABLE u (a int)")
    streaming.step()
    with streaming.database.connect() as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("SAVEPOINT s")
        connection.execute("DROP TABLE u")
        connection.execute("ROLLBACK TO SAVEPOINT s")
        connection.execute("ALTER TABLE t RENAME a TO b")
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("COMMIT")
    found = batches(streaming)
    assert [row["after"] or "schema" for batch in found for row in batch.rows.to_pylist()] == [
        {"a": 1},
        "schema",
        {"b": 2},
    ]
    assert [change.renamed for _, change in changes(streaming)] == []
