"""Databases that are not in UTF-8: the server converts; what it cannot convert is a named error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tailrace.connectors.postgres.admin.admin import PostgresAdmin
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.snapshot import transfer
from tailrace.errors import SourceError
from tailrace.testing.postgres import PostgresServer
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.following import following
from tests.behaviour.streams import eventually
from tests.behaviour.test_reconcile import compared
from tests.conftest import Database

TEXTS = {"LATIN1": "Müller é", "WIN1252": "M€ller", "EUC_JP": "日本 語"}
ONCE = {"snapshot__mode": "no_data", "incremental__snapshot__chunk__size": "2", "signal__poll__interval__ms": "1"}


@contextmanager
def encoded(server: PostgresServer, encoding: str) -> Iterator[Database]:
    """An empty database in an encoding."""
    name = f"in_{encoding.lower()}"
    server.create_database(name, encoding)
    try:
        yield Database(server, name)
    finally:
        server.drop_database(name)


@contextmanager
def raw(database: Database) -> Iterator[psycopg.Connection]:
    """A connection whose texts the server takes byte by byte, as LATIN1 writes them."""
    with psycopg.connect(database.dsn, autocommit=True, client_encoding="latin1") as connection:
        yield connection


@pytest.fixture(params=TEXTS)
def filled(request: pytest.FixtureRequest, postgres18: PostgresServer) -> Iterator[tuple[Database, str]]:
    """A database in each encoding, with a table whose names, key, label and values have other letters than ASCII."""
    text = TEXTS[request.param]
    with encoded(postgres18, request.param) as database:
        with database.connect() as connection:
            connection.execute(sql.SQL("CREATE TYPE mood AS ENUM ({})").format(text))
            create = "CREATE TABLE {} ({} varchar(40) PRIMARY KEY, v text, c char(9), j jsonb, a text[], m mood)"
            connection.execute(sql.SQL(create).format(sql.Identifier(f"t {text}"), sql.Identifier(f"k {text}")))
            insert(connection, text, 1, 3)
        yield database, text


def insert(connection: psycopg.Connection, text: str, first: int, last: int, more: str = "") -> None:
    """Rows of these numbers; `more` are the values of further columns."""
    row = sql.SQL(
        "INSERT INTO {} SELECT {t} || n, {t}, {t}, to_jsonb({t}::text), ARRAY[{t}], {t}::mood{more} "
        "FROM generate_series({first}, {last}) n"
    )
    numbers = {"first": sql.Literal(first), "last": sql.Literal(last), "more": sql.SQL(f", {more}" if more else "")}
    connection.execute(row.format(sql.Identifier(f"t {text}"), t=sql.Literal(text), **numbers))


def image(text: str, number: int) -> dict[str, object]:
    """Such a row in an event."""
    own: dict[str, object] = {
        f"k {text}": f"{text}{number}",
        "v": text,
        "c": text.ljust(9),
        "j": f'"{text}"',
        "a": [text],
        "m": text,
    }
    return own


def afters(capture: Capture) -> list[dict[str, object]]:
    """The new rows of the next step."""
    return [row["after"] for row in capture.step()]


@pytest.mark.parametrize("most_text", [0, transfer.BINARY_BYTES])
def test_snapshot_and_log_are_in_utf8(
    filled: tuple[Database, str], most_text: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, text = filled
    monkeypatch.setattr(transfer, "BINARY_BYTES", most_text)
    with capturing(database) as capture:
        event_triggers.install(capture.config)
        assert afters(capture) == [image(text, number) for number in (1, 2, 3)]
        with database.connect() as connection:
            insert(connection, text, 4, 4)
            names = map(sql.Identifier, (f"t {text}", f"n {text}"))
            connection.execute(sql.SQL("ALTER TABLE {} ADD {} int").format(*names))
            insert(connection, text, 5, 5, more="7")
            connection.execute("SELECT pg_logical_emit_message(true, %s, %s)", [text, text])
        found = [batch for split in capture.plan() for chunk in capture.reader.read(split) for batch in chunk.batches]
        first, changed, second, message = found
        assert (str(first.table.id), first.rows["after"].to_pylist()) == (f"public.t {text}", [image(text, 4)])
        assert changed.schema_change is not None
        assert changed.schema_change.columns[-1].name == f"n {text}"
        assert second.rows["after"].to_pylist() == [{**image(text, 5), f"n {text}": 7}]
        assert message.rows["after"].to_pylist()[0]["prefix"] == text


@pytest.mark.parametrize(
    "filled",
    [*(pytest.param(each, marks=pytest.mark.long) for each in TEXTS if each != "EUC_JP"), "EUC_JP"],
    indirect=True,
)
def test_a_replica_is_followed_read_again_by_chunks_and_compared(filled: tuple[Database, str], tmp_path: Path) -> None:
    database, text = filled
    with following(database, tmp_path, **ONCE) as pipeline:  # type: ignore[arg-type]
        with database.connect() as connection:
            insert(connection, text, 4, 9)
        pipeline.signal("execute-snapshot", {"data-collections": [f"public.t {text}"], "type": "incremental"})
        eventually(lambda: compared(pipeline, f"public.t {text}").outcome == "equal")
        found = compared(pipeline, f"public.t {text}")
        assert (found.source_rows, found.target_rows) == (9, 9)


def test_the_check_says_who_converts(postgres18: PostgresServer) -> None:
    with encoded(postgres18, "LATIN1") as database:
        assert ("the database is in LATIN1, which the server converts", True) in checked(database)


def test_an_encoding_that_the_server_cannot_convert_is_named(postgres18: PostgresServer) -> None:
    with encoded(postgres18, "MULE_INTERNAL") as database, pytest.raises(SourceError) as told:
        PostgresAdmin(resolve({**database.properties, "topic.prefix": "t"})).overview()
    assert "MULE_INTERNAL" in str(told.value)
    assert "copy the database into one with ENCODING UTF8" in str(told.value.remedy)


def checked(database: Database) -> list[tuple[str, bool | None]]:
    """What the check finds."""
    found = PostgresAdmin(resolve({**database.properties, "topic.prefix": "t"})).checks()
    return [(finding.what, finding.ok) for finding in found]


def test_bytes_of_sql_ascii_that_are_utf8_are_read(postgres18: PostgresServer) -> None:
    with encoded(postgres18, "SQL_ASCII") as database:
        database.execute("CREATE TABLE grün (id int PRIMARY KEY, v text)", "INSERT INTO grün VALUES (1, '日本')")
        assert not [what for what, ok in checked(database) if ok is False]
        with capturing(database) as capture:
            assert afters(capture) == [{"id": 1, "v": "日本"}]
            database.execute("UPDATE grün SET v = 'é'")
            assert afters(capture) == [{"id": 1, "v": "é"}]


@pytest.mark.parametrize("most_text", [0, transfer.BINARY_BYTES])
def test_other_bytes_of_sql_ascii_end_the_run_with_the_place(
    postgres18: PostgresServer, most_text: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "BINARY_BYTES", most_text)
    with encoded(postgres18, "SQL_ASCII") as database, raw(database) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        with capturing(database) as capture:
            assert capture.step() == []
            connection.execute("INSERT INTO t VALUES (1, 'é')")
            with pytest.raises(SourceError, match=r"invalid byte sequence.*0xe9.*at LSN [0-9A-F]+/") as told:
                capture.step()
            assert "correct the rows" in str(told.value.remedy)
            assert "`tailrace drop`" in str(told.value.remedy)
        with (
            capturing(database, slot__name="another") as capture,
            pytest.raises(SourceError, match=r"public\.t: .*invalid byte sequence"),
        ):
            capture.step()


def test_names_of_sql_ascii_that_are_not_utf8_are_named(postgres18: PostgresServer) -> None:
    with encoded(postgres18, "SQL_ASCII") as database, raw(database) as connection:
        connection.execute("CREATE TABLE grün (id int PRIMARY KEY)")
        assert ("names are not valid UTF-8: public.gr\\xfcn", False) in checked(database)
        assert not [what for what, _ in checked(database) if "matches the filters" in what]
        for ask in (PostgresAdmin.overview, PostgresAdmin.state):
            admin = PostgresAdmin(resolve({**database.properties, "topic.prefix": "t"}))
            if ask is PostgresAdmin.overview:
                with pytest.raises(SourceError, match="the tables cannot be listed: invalid byte sequence") as told:
                    ask(admin)
                assert "rename" in str(told.value.remedy)
        with capturing(database) as capture, pytest.raises(SourceError, match="invalid byte sequence"):
            capture.step()
