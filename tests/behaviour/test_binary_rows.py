"""Large tables are read in binary form: the same rows and the same errors as by text COPY."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pyarrow.compute as pc
import pytest
from psycopg import sql

from tailrace.connectors import retry
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.snapshot import rows, transfer
from tailrace.errors import SourceError
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database


@pytest.fixture
def binary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of any size go by the road of large ones."""
    monkeypatch.setattr(transfer, "BINARY_BYTES", 1)


def test_large_table_in_several_blocks(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, text text, day date)",
        "INSERT INTO t SELECT n, CASE WHEN n % 3 > 0 THEN repeat(n::text, 20) END, date '2000-01-01' + n "
        "FROM generate_series(1, 150000) n",
    )
    with capturing(database) as capture:
        (split,) = capture.plan()
        assert split.bytes > transfer.BINARY_BYTES
        batches = [batch.rows for chunk in capture.reader.read(split) for batch in chunk.batches]
        assert len(batches) > 2
        after = [batch.column("after") for batch in batches]
        ids = [number for rows in after for number in pc.struct_field(rows, "id").to_pylist()]
        texts = [text for rows in after for text in pc.struct_field(rows, "text").to_pylist()]
        days = [day for rows in after for day in pc.struct_field(rows, "day").to_pylist()]
        markers = [marker for batch in batches for marker in batch.column("snapshot").to_pylist()]
    assert sorted(ids) == list(range(1, 150_001))
    assert all(text == (str(n) * 20 if n % 3 else None) for n, text in zip(ids, texts, strict=True))
    assert all(day == 10_957 + n for n, day in zip(ids, days, strict=True))
    assert (markers[0], markers[-1], set(markers[1:-1])) == ("first", "last", {"true"})


# 50 MB: what a socket's buffers hold must not be all that was left to send when its reader is ended.
LARGE = (
    "CREATE TABLE t (id int PRIMARY KEY, text text)",
    "INSERT INTO t SELECT n, repeat(n::text, 60) FROM generate_series(1, 150000) n",
)
END_READERS = (
    "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
    "WHERE application_name LIKE 'tailrace snapshot reader%' AND datname = current_database()"
)


@pytest.mark.parametrize("binary_bytes", [1, 1 << 40])
def test_a_reader_that_is_ended_begins_again_where_it_was(
    database: Database, binary_bytes: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transfer, "BINARY_BYTES", binary_bytes)
    monkeypatch.setattr(retry, "_FIRST_SECONDS", 0.02)
    database.execute(*LARGE)
    with capturing(database) as capture:
        (split,) = capture.plan()
        ids: list[int] = []
        for chunk in capture.reader.read(split):
            for batch in chunk.batches:
                if len(ids) < 100_000:
                    database.execute(END_READERS)
                ids += pc.struct_field(batch.rows.column("after"), "id").to_pylist()
    assert re.search(r"public\.t: the snapshot cannot read the table: .*; trying again", caplog.text)
    assert sorted(ids) == list(range(1, 150_001))


@pytest.mark.usefixtures("binary")
def test_rows_in_another_order_are_not_mistaken_for_those_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "_FIRST_SECONDS", 0.02)
    database.execute(*LARGE)
    with capturing(database) as capture:
        (split,) = capture.plan()
        blocks = transfer.blocks(
            capture.config, split.moment.name, split.captured, sql.SQL(" FROM t ORDER BY random()"), split.bytes
        )
        next(blocks)
        database.execute(END_READERS)
        with pytest.raises(SourceError, match=r"public.t: the connection was lost, and the rows .* in another order"):
            list(blocks)


def test_tries_to_reach_the_server_again_are_counted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_SECONDS", 0.02)
    database.execute(*LARGE)
    with capturing(database, errors__max__retries="0") as capture:
        (split,) = capture.plan()
        chunks = capture.reader.read(split)
        next(chunks)
        database.execute(END_READERS)
        with pytest.raises(SourceError, match=r"public\.t: the snapshot cannot read the table"):
            list(chunks)


@pytest.mark.usefixtures("binary")
def test_select_of_the_users_goes_by_text(database: Database) -> None:
    """Its columns may have other types than the table's."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 5), (2, NULL)")
    overrides = {
        "snapshot__select__statement__overrides": "public.t",
        "snapshot__select__statement__overrides__public__t": "SELECT id::text AS id, v::numeric FROM t",
    }
    with capturing(database, **overrides) as capture:
        assert [row["after"] for row in capture.step()] == [{"id": 1, "v": 5}, {"id": 2, "v": None}]


@pytest.fixture
def reader(database: Database) -> Iterator[Capture]:
    """A pipeline under a role of its own that may read tables it owns or is granted."""
    database.execute(f"CREATE ROLE {database.name}_r LOGIN REPLICATION PASSWORD 'r'")
    with database.connect() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("CREATE PUBLICATION readers FOR TABLE t")
    properties = {
        "database__user": f"{database.name}_r",
        "database__password": "r",
        "publication__name": "readers",
        "publication__autocreate__mode": "disabled",
    }
    with capturing(database, **properties) as capture:
        yield capture
    with database.connect() as connection:
        connection.execute(f"DROP OWNED BY {database.name}_r; DROP ROLE {database.name}_r".encode())


@pytest.mark.usefixtures("binary")
def test_right_taken_away_while_planned(database: Database, reader: Capture) -> None:
    database.execute(f"GRANT SELECT ON t TO {database.name}_r")
    (split,) = reader.plan()
    database.execute(f"REVOKE SELECT ON t FROM {database.name}_r")
    with pytest.raises(SourceError, match=r"permission denied for table t") as raised:
        list(reader.reader.read(split))
    assert "public.t" in str(raised.value.where)
    assert "GRANT SELECT" in str(raised.value.remedy)


def test_right_that_was_never_given(database: Database, reader: Capture) -> None:
    with pytest.raises(
        SourceError, match=r"public\.t: the snapshot cannot read the table: permission denied"
    ) as raised:
        reader.plan()
    role = f'"{database.name}_r"'
    assert raised.value.remedy == (f'GRANT USAGE ON SCHEMA "public" TO {role}; GRANT SELECT ON "public"."t" TO {role}')


@pytest.mark.parametrize(
    ("select", "said", "remedy"),
    [
        ("SELEC * FRM t", "syntax error", "fix snapshot.select.statement.overrides.public.t"),
        ("SELECT nothing FROM t", "does not exist", "fix snapshot.select.statement.overrides.public.t"),
        ("SELECT 1 AS id FROM pg_sleep(9)", "statement timeout", "raise database.query.timeout.ms"),
    ],
)
def test_select_of_the_users_that_is_wrong(database: Database, select: str, said: str, remedy: str) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    overrides = {
        "snapshot__select__statement__overrides": "public.t",
        "snapshot__select__statement__overrides__public__t": select,
    }
    with capturing(database, database__query__timeout__ms="500", **overrides) as capture:
        with pytest.raises(SourceError, match=rf"public\.t: the snapshot cannot read the table: .*{said}") as raised:
            capture.plan()
        assert raised.value.remedy == remedy


@pytest.mark.usefixtures("binary")
def test_an_exported_snapshot_that_has_ended(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capturing(database) as capture:
        (split,) = capture.plan()
        capture.reader.close()
        with pytest.raises(SourceError, match=r"the exported snapshot .* is gone"):
            list(capture.reader.read(split))


@pytest.mark.usefixtures("binary")
def test_server_that_refuses_the_login(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capturing(database) as capture:
        (split,) = capture.plan()
        wrong = resolve({**database.properties, "topic.prefix": "t", "database.password": "not this one"})
        with pytest.raises(SourceError, match="cannot connect") as raised:
            list(rows.read(wrong, split))
        assert "database.password" in str(raised.value.remedy)
        assert "not this one" not in str(raised.value)


@pytest.mark.usefixtures("binary")
def test_text_that_is_none(database: Database) -> None:
    """A database that checks no encoding may hold bytes that are no UTF-8."""
    name = f"{database.name}_ascii"
    with database.connect() as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0".encode())
    try:
        with psycopg.connect(re.sub(rf"\b{database.name}\b", name, database.dsn), autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
            connection.execute(rb"INSERT INTO t VALUES (1, 'fine'), (2, E'\xff\xfe')")
        with (
            capturing(database, database__dbname=name) as capture,
            pytest.raises(SourceError, match="invalid byte sequence") as raised,
        ):
            capture.step()
        assert "not valid UTF-8" in str(raised.value.remedy)
        capture.close()
        with psycopg.connect(re.sub(rf"\b{database.name}\b", name, database.dsn), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                "WHERE database = current_database()"
            )
    finally:
        with database.connect() as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
