"""The preflight on a real server: each problem a person may meet is named, with what mends it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tailrace.capture.offset import Offset
from tailrace.connectors.offset import BEGIN, SNAPSHOT, STREAM
from tailrace.connectors.postgres.admin.admin import PostgresAdmin
from tailrace.connectors.postgres.admin.checks import Finding, check
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.position import format_lsn, remembered
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.snapshot.reading import Reading
from tailrace.testing.postgres import EmbeddedPostgres
from tests.conftest import Database

TABLES = """
CREATE TABLE fine (id int PRIMARY KEY, a text);
CREATE TABLE keyless (a text);
CREATE TABLE keyless_full (a text); ALTER TABLE keyless_full REPLICA IDENTITY FULL;
CREATE TABLE unique_only (code int NOT NULL UNIQUE, a text);
CREATE TABLE silent (id int PRIMARY KEY); ALTER TABLE silent REPLICA IDENTITY NOTHING;
CREATE TABLE by_index (id int PRIMARY KEY, code int NOT NULL);
CREATE UNIQUE INDEX by_code ON by_index (code); ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_code;
CREATE UNLOGGED TABLE forgotten (id int PRIMARY KEY);
CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
"""


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(settings={"max_replication_slots": "3", "max_wal_senders": "3"}) as server:
        yield server


@pytest.fixture
def admin(server: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    server.create_database("shop")
    with server.connect("shop") as connection:
        yield connection
    server.drop_database("shop")


def findings(server: EmbeddedPostgres, **properties: str) -> list[Finding]:
    given = {name.replace("__", "."): value for name, value in properties.items()}
    return check(resolve({**server.properties("shop"), "topic.prefix": "t", **given}))


def standing(
    server: EmbeddedPostgres, committed: Offset | None, planned: Offset | None, **properties: str
) -> list[Finding]:
    """What is found of a pipeline that has come so far."""
    given = {name.replace("__", "."): value for name, value in properties.items()}
    offsets = tuple(None if one is None else one.to_json(format_lsn) for one in (committed, planned))
    config = resolve({**server.properties("shop"), "topic.prefix": "t", "slot.name": "mine", **given})
    return check(config, (offsets[0], offsets[1]))


def about(name: str, found: list[Finding], ok: bool | None = False) -> list[str]:
    return [f"{finding.what} | {finding.remedy}" for finding in found if finding.name == name and finding.ok is ok]


def test_a_server_that_is_ready_has_no_problem(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    found = findings(server)
    assert [finding for finding in found if finding.ok is not True] == []
    assert {"connection", "version", "wal_level", "encoding", "role", "tables", "select", "identity"} <= {
        finding.name for finding in found
    }
    assert {"publication", "slot", "slots", "senders", "retention"} <= {finding.name for finding in found}
    assert admin.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)


def test_nothing_listens(server: EmbeddedPostgres) -> None:
    (finding,) = findings(server, database__port="1")
    assert finding.ok is False
    assert "database.port" in (finding.remedy or "")


def test_a_wrong_password_is_one_sentence_and_never_shown(server: EmbeddedPostgres) -> None:
    (finding,) = findings(server, database__password="not-the-one")
    assert "password authentication failed" in finding.what
    assert "database.password" in (finding.remedy or "")
    assert "not-the-one" not in str(finding)


def test_a_database_that_is_not_there(server: EmbeddedPostgres) -> None:
    (finding,) = findings(server, database__dbname="nowhere")
    assert 'database "nowhere" does not exist' in finding.what
    assert "database.dbname" in (finding.remedy or "")


def test_tables_their_keys_and_identities(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute(TABLES)
    found = findings(server)
    refused, uncovered = about("identity", found, None)
    assert refused.startswith("public.keyless, public.silent, public.unique_only:")
    assert 'ALTER TABLE "public"."keyless" REPLICA IDENTITY FULL' in refused
    assert uncovered.startswith("public.by_index:")
    assert 'ALTER TABLE "public"."by_index" REPLICA IDENTITY FULL' in uncovered
    assert [text.split(":")[0] for text in about("key", found, None)] == ["public.keyless_full"]
    assert [text.split(":")[0] for text in about("tables", found, None)] == ["public.forgotten"]


def test_message_key_columns_of_the_identity_fix_the_key(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute(TABLES)
    found = findings(server, table__include__list="public.by_index", message__key__columns="public.by_index:code")
    assert about("identity", found, None) == []


def test_no_table_matches(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    assert "no table of shop matches" in about("tables", findings(server, table__include__list="fine"))[0]


def test_a_role_without_rights(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    admin.execute("CREATE ROLE poor LOGIN PASSWORD 'p'")
    try:
        login = {"database__user": "poor", "database__password": "p"}
        found = findings(server, **login, publication__autocreate__mode="filtered")
        assert "Postgres roles LOGIN and REPLICATION are not assigned to user: poor" in about("role", found)[0]
        assert 'ALTER ROLE "poor" LOGIN REPLICATION' in about("role", found)[0]
        assert 'GRANT SELECT ON "public"."fine" TO "poor"' in about("select", found)[0]
        (owner,) = about("publication", found)
        made = 'CREATE PUBLICATION "dbz_publication" FOR TABLE "public"."fine" WITH'
        assert f"{made} (publish_generated_columns = stored); then set" in owner
        (superuser,) = about("publication", findings(server, **login))
        assert "only a superuser" in superuser
        assert "publication.autocreate.mode=filtered" not in superuser
        (create,) = about("publication", findings(server, **login, publication__autocreate__mode="no_tables"))
        assert 'GRANT CREATE ON DATABASE "shop" TO "poor"' in create
        assert about("select", findings(server, **login, snapshot__mode="no_data")) == []
    finally:
        admin.execute("DROP ROLE poor")


def test_publications(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
    disabled = about("publication", findings(server, publication__autocreate__mode="disabled"))
    assert "Publication autocreation is disabled, please create one and restart the connector." in disabled[0]
    admin.execute("CREATE PUBLICATION dbz_publication FOR TABLE fine WITH (publish = 'insert')")
    found = findings(server, table__include__list="public.*")
    narrow, lacks = about("publication", found)
    assert "does not publish update, delete" in narrow
    assert 'lacks public.other: no changes of these come | ALTER PUBLICATION "dbz_publication" ADD TABLE' in lacks
    assert "lacks public.other" in about("publication", findings(server), None)[0]
    admin.execute("ALTER PUBLICATION dbz_publication SET (publish = 'insert, update, delete')")
    assert about("publication", findings(server, publication__autocreate__mode="filtered")) == []
    admin.execute("CREATE PUBLICATION whole FOR ALL TABLES")
    filtered = {"publication__name": "whole", "publication__autocreate__mode": "filtered"}
    assert "is FOR ALL TABLES" in about("publication", findings(server, **filtered))[0]


def test_partitions_count_as_published_through_their_root(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute(TABLES)
    admin.execute("CREATE PUBLICATION dbz_publication FOR TABLE parts WITH (publish_via_partition_root)")
    assert about("publication", findings(server, table__include__list=r"public\.parts.*")) == []


def test_slots_of_others(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    admin.execute("SELECT pg_create_logical_replication_slot('mine', 'pgoutput')")
    assert about("slot", findings(server, slot__name="mine"), True) == ["mine exists | None"]
    elsewhere = check(resolve({**server.properties("postgres"), "topic.prefix": "t", "slot.name": "mine"}))
    assert "mine belongs to the database shop, not postgres" in about("slot", elsewhere)[0]
    admin.execute("SELECT pg_create_physical_replication_slot('standby')")
    try:
        assert "standby is a physical slot" in about("slot", findings(server, slot__name="standby"))[0]
    finally:
        admin.execute("SELECT pg_drop_replication_slot('standby')")


def test_a_slot_that_a_checkpoint_needs(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    """A pipeline that has begun does not get a new one: what the start would say is said."""
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    row = admin.execute(
        "SELECT system_identifier::text, (pg_current_wal_flush_lsn() - '0/0')::int8 FROM pg_control_system()"
    ).fetchone()
    assert row is not None
    begin = Offset("postgresql", f"{row[0]}/shop/mine", "p", BEGIN, log=remembered())
    whole = begin.at(phase=SNAPSHOT)
    stream = begin.at(phase=STREAM, position=row[1])
    fresh = ["mine will be created | None"]
    assert about("slot", standing(server, None, whole), True) == fresh
    assert about("slot", standing(server, stream, stream, snapshot__mode="initial_only"), True) == fresh
    for committed, planned in (
        (whole, whole),
        (whole, stream),
        (stream, stream),
        (stream.at(position=row[1] - 8), stream),
    ):
        found = standing(server, committed, planned)
        (said,) = about("slot", found)
        assert said.startswith("the slot does not exist; changes from")
        assert "set snapshot.mode=when_needed, which reads the tables again, or start with a new checkpoint" in said
        assert about("slot", found, True) == []
    (again,) = about("slot", standing(server, stream, stream, snapshot__mode="when_needed"), None)
    assert again.startswith("the slot does not exist;")
    partly = whole.at(reading=Reading(SnapshotPlace(("public.fine",), is_whole=True)))
    assert about("slot", standing(server, partly, partly), None) != []
    elsewhere = stream.at(source="1/shop/mine")
    assert "the checkpoint belongs to" in about("checkpoint", standing(server, elsewhere, elsewhere))[0]
    admin.execute("SELECT pg_create_logical_replication_slot('mine', 'pgoutput')")
    assert about("slot", standing(server, stream.at(position=row[1] - 1), stream))[0].startswith("the slot was moved;")
    here = admin.execute("SELECT (confirmed_flush_lsn - '0/0')::int8 FROM pg_replication_slots").fetchone()
    assert here is not None
    there = stream.at(position=here[0])
    assert about("slot", standing(server, there, there), True) == ["mine exists | None"]


def test_a_slot_in_use_names_its_holder(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY); CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    admin.execute("SELECT pg_create_logical_replication_slot('mine', 'pgoutput')")
    dsn = server.dsn("shop", application_name="stranger", replication="database")
    with psycopg.connect(dsn, autocommit=True) as stream:
        answer = stream.pgconn.exec_(
            b"START_REPLICATION SLOT mine LOGICAL 0/0 (proto_version '1', publication_names 'dbz_publication')"
        )
        assert answer.status == psycopg.pq.ExecStatus.COPY_BOTH
        (held,) = about("slot", findings(server, slot__name="mine"))
        assert "mine is in use by stranger (pid " in held
        stream.close()


def test_no_slot_is_free(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    for name in ("a", "b", "c"):
        admin.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
    assert "no replication slot is free: the slot cannot be created" in about("slots", findings(server))[0]
    assert "snapshot beside an existing slot" in about("slots", findings(server, slot__name="a"), None)[0]
    assert about("slots", findings(server, slot__name="a", snapshot__mode="no_data"), True)


def test_an_invalidated_slot(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    admin.execute("SELECT pg_create_logical_replication_slot('mine', 'pgoutput')")
    admin.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    admin.execute("SELECT pg_reload_conf()")
    try:
        for _ in range(4):
            admin.execute("SELECT pg_logical_emit_message(false, 't', 'x'), pg_switch_wal()")
        admin.execute("CHECKPOINT")
        found = findings(server, slot__name="mine")
        assert "mine is invalidated (wal_removed)" in about("slot", found)[0]
        assert "pg_drop_replication_slot('mine')" in about("slot", found)[0]
        assert "max_slot_wal_keep_size is 1MB" in about("retention", found, None)[0]
    finally:
        admin.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        admin.execute("SELECT pg_reload_conf()")


def test_wal_level_and_an_older_server() -> None:
    with EmbeddedPostgres(version=16, settings={"wal_level": "replica"}) as server:
        found = check(resolve({**server.properties(), "topic.prefix": "t"}))
    assert "wal_level is replica | ALTER SYSTEM SET wal_level = logical" in about("wal_level", found)[0]
    assert about("version", found, True) == ["PostgreSQL 16 | None"]
    assert [finding for finding in found if "could not be checked" in finding.what] == []


ROOT, PARTS = {"table__include__list": r"public\.parts"}, {"table__include__list": r"public\.parts_\d"}
FILTERED = {"publication__autocreate__mode": "filtered"}
BY_PARTS = "dbz_publication sends changes of public.parts by the names of its partitions (public.parts_1), which"
BY_ROOT = "dbz_publication sends changes of the partition public.parts_1 by the name of public.parts, which"


def test_a_partitioned_table_whose_changes_would_be_sent_under_other_names(
    server: EmbeddedPostgres, admin: psycopg.Connection
) -> None:
    """Whether the publication is there, or is to be made."""
    admin.execute(TABLES)
    via_root = {"publish__via__partition__root": "true"}
    (said,) = about("publication", findings(server, **ROOT, **FILTERED))
    assert said.startswith(BY_PARTS)
    assert "| set publish.via.partition.root=true, or let" in said
    assert about("publication", findings(server, **ROOT))[0].startswith(BY_PARTS)
    assert about("publication", findings(server, **ROOT, **FILTERED, **via_root)) == []
    assert about("publication", findings(server, **PARTS, **FILTERED)) == []
    assert about("publication", findings(server, **PARTS, **via_root))[0].startswith(BY_ROOT)
    assert about("publication", findings(server, **ROOT, **FILTERED, snapshot__mode="initial_only")) == []
    create = about("publication", findings(server, **ROOT, publication__autocreate__mode="disabled"))[0].split(" | ")[1]
    assert 'FOR TABLE "public"."parts" WITH (publish_via_partition_root = true, ' in create
    admin.execute("CREATE PUBLICATION dbz_publication FOR TABLE parts")
    for given in (FILTERED, {}, {"publication__autocreate__mode": "disabled"}):
        (said,) = about("publication", findings(server, **ROOT, **given))
        assert said.startswith(BY_PARTS)
        alter = said.split(" | ")[1].split(", or")[0]
    assert about("publication", findings(server, **PARTS)) == []
    admin.execute(alter)
    assert about("publication", findings(server, **ROOT)) == []
    (said,) = about("publication", findings(server, **PARTS))
    assert said.startswith(BY_ROOT)
    admin.execute(said.split(" | ")[1].split(", or")[0])
    assert about("publication", findings(server, **PARTS)) == []
    admin.execute("ALTER PUBLICATION dbz_publication SET TABLE fine")
    assert "lacks public.parts:" in about("publication", findings(server, **ROOT))[0]


def test_filters_and_selects_of_the_snapshot_that_concern_no_table(
    server: EmbeddedPostgres, admin: psycopg.Connection
) -> None:
    admin.execute("CREATE TABLE fine (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
    admin.execute('CREATE SCHEMA "My.Schema"; CREATE TABLE "My.Schema"."Order.Items" (id int PRIMARY KEY)')
    selects = "snapshot.select.statement.overrides"
    given = {
        "snapshot.include.collection.list": r"public\.fin,public\.o.*",
        selects: 'public.fine,public.Fine,"My.Schema"."Order.Items"',
        **{f"{selects}.{name}": "SELECT 1" for name in ("public.fine", '"My.Schema"."Order.Items"', "public.other")},
    }
    pattern, name, statement = about("snapshot", findings(server, **given), None)
    assert pattern.startswith(r"snapshot.include.collection.list: no captured table matches public\.fin |")
    assert name.startswith(f"{selects}: no captured table is called public.Fine |")
    assert statement == f"{selects}.public.other has no effect, as the table is not listed | name it in {selects}"


def test_remedies_for_many_tables_can_be_run_as_they_are(server: EmbeddedPostgres, admin: psycopg.Connection) -> None:
    admin.execute("CREATE UNLOGGED TABLE forgotten (id int PRIMARY KEY)")
    for number in range(8):
        admin.execute(f'CREATE SCHEMA "S {number}"; CREATE TABLE "S {number}"."t.{number}" (id int)'.encode())
    admin.execute("CREATE ROLE many LOGIN REPLICATION PASSWORD 'p'")
    given = {"database__user": "many", "database__password": "p", "publication__autocreate__mode": "disabled"}
    try:
        found = findings(server, **given)
        (select,), (publication,) = about("select", found), about("publication", found)
        assert "and 4 more | " in select  # with the table that has no log
        (identity,) = about("identity", found, None)
        (unlogged,) = about("tables", found, None)
        for said in (select, publication, unlogged, identity.replace("add a primary key, or: ", "")):
            admin.execute(said.split(" | ")[1].encode())
        found = findings(server, **given)
        assert [about(name, found) for name in ("select", "publication")] == [[], []]
        assert about("identity", found, None) == []
        admin.execute('ALTER PUBLICATION dbz_publication SET TABLE "S 1"."t.1"')
        (lacks,) = about("publication", findings(server, **given, table__include__list="S.*"))
        admin.execute(lacks.split(" | ")[1].encode())
        assert about("publication", findings(server, **given, table__include__list="S.*")) == []
    finally:
        admin.execute("DROP OWNED BY many; DROP ROLE many")


def test_what_keeps_a_replica_incomplete_is_named_in_advance(
    server: EmbeddedPostgres, admin: psycopg.Connection
) -> None:
    admin.execute(TABLES)
    admin.execute(
        "CREATE TABLE heir () INHERITS (fine);"
        "CREATE TABLE filtered (id int PRIMARY KEY, v text);"
        "CREATE PUBLICATION dbz_publication FOR TABLE parts, fine, heir, filtered WHERE (id > 1)"
        " WITH (publish_via_partition_root = true)"
    )
    given = {"rows__for__replica": "true", "publication__autocreate__mode": "disabled"}
    listed = {"table__include__list": "public.(parts.*|fine|heir|filtered|forgotten)"}
    said = about("replica", findings(server, **given, **listed), None)
    assert [each.split(": ")[0] for each in said] == [
        "public.filtered",
        "public.forgotten",
        "public.parts",
        "public.fine",
    ]
    assert "sends only rows that fulfil its condition; the replica stays incomplete" in said[0]
    assert "it is unlogged" in said[1]
    assert "attached, detached, dropped or truncated" in said[2]
    assert "no rows of the tables that inherit from it" in said[3]
    (halves,) = about("replica", findings(server, **given, **listed), True)
    assert halves.startswith("public.parts_1: no replica")
    assert about("replica", findings(server, publication__autocreate__mode="disabled", **listed), None) == []


def test_tables_are_listed_while_one_of_them_is_being_altered(database: Database) -> None:
    """By a prepared transaction, say, for hours: its exact size would be waited for, without a word."""
    database.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    config = resolve({**database.properties, "topic.prefix": "t"})
    with database.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
        assert [each.id.table for each in PostgresAdmin(config).overview()] == ["a", "b"]
