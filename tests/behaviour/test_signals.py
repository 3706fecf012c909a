"""Snapshots that signals request, on a real server: what is read, under concurrent changes and after a restart."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.position import parse_lsn
from tailrace.connectors.postgres.snapshot.chunks import flushed
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.signalling import GIVEN, ROWS, SIGNALS, Row, drained, execute, keyed, send, write
from tests.conftest import Database


@pytest.fixture
def table(database: Database) -> Database:
    """A table of ten rows and one for signals."""
    database.execute(SIGNALS, *ROWS)
    return database


@pytest.fixture
def capture(table: Database) -> Iterator[Capture]:
    """A pipeline that streams."""
    with capturing(table, **GIVEN) as capture:
        capture.step()
        yield capture


def test_an_incremental_snapshot_reads_every_row_once(table: Database, capture: Capture) -> None:
    execute(table, "s1")
    rows = drained(capture)
    assert keyed(rows) == [("r", n) for n in range(1, 11)]
    assert {row["snapshot"] for row in rows} == {"incremental"}
    assert {(row["source"]["txId"], row["source"]["lsn"]) for row in rows} == {(None, None)}
    table.execute("UPDATE t SET version = 1 WHERE id = 1")
    assert keyed(drained(capture)) == [("u", 1)]


def test_conditions_surrogate_keys_and_patterns(table: Database, capture: Capture) -> None:
    condition = ', "additional-conditions": [{"data-collection": "public.t", "filter": "id > 8 OR id = 2"}]'
    execute(table, "s1", condition, table=r"public\\..*")
    assert keyed(drained(capture)) == [("r", 2), ("r", 9), ("r", 10)]
    execute(table, "s2", ', "additional-condition": "id < 3"')
    assert keyed(drained(capture)) == [("r", 1), ("r", 2)]
    execute(table, "s3", ', "surrogate-key": "note"')
    assert [id_ for _, id_ in keyed(drained(capture))] == [1, 10, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_window_in_which_a_table_cannot_be_read_is_closed(table: Database) -> None:
    with capturing(table, **GIVEN) as capture:
        capture.step()
        execute(table, "s1", ', "additional-conditions": [{"data-collection": "public.t", "filter": "nothing = 1"}]')
        assert keyed(drained(capture)) == []
    with table.connect() as connection:
        rows = connection.execute("SELECT type FROM signals WHERE type LIKE 'snapshot-window%'").fetchall()
    assert [kind for (kind,) in rows] == ["snapshot-window-open", "snapshot-window-close"]


def test_keys_of_several_columns_in_their_own_order(database: Database) -> None:
    database.execute(
        SIGNALS,
        "CREATE TABLE t (a text, id int, PRIMARY KEY (a, id))",
        "INSERT INTO t SELECT chr(97 + n % 3), n FROM generate_series(1, 11) n",
    )
    with capturing(database, **GIVEN) as capture:
        capture.step()
        execute(database, "s1")
        found = [(row["after"]["a"], row["after"]["id"]) for row in drained(capture)]
    assert found == sorted((chr(97 + n % 3), n) for n in range(1, 12))


@pytest.mark.parametrize(
    "data",
    [
        "{",
        '["public.t"]',
        '{"data-collections": "public.t"}',
        '{"data-collections": [1, "nowhere", "("]}',
        '{"data-collections": ["public.t"], "surrogate-key": 1}',
        '{"data-collections": ["public.t"], "type": "wrong", "additional-conditions": ["x"]}',
        "[" * 2000,
        '{"data-collections": ["public.t"], "additional-condition": "note = \'\\ud800\'"}',
        '{"data-collections": ["public.t"], "surrogate-key": "\\ud800"}',
        '{"data-collections": ["public.t"], "keys": [["\\ud800"]]}',
        '{"data-collections": ["public.t"], "type": "blocking", "additional-condition": "SELECT \'\\ud800\'"}',
        None,
    ],
)
def test_a_malformed_signal_is_logged_and_nothing_stops(
    table: Database, capture: Capture, caplog: pytest.LogCaptureFixture, data: str | None
) -> None:
    send(table, "bad", "execute-snapshot", data)
    send(table, "odd", "dance", "{}")
    table.execute("DELETE FROM t WHERE id = 3")
    assert keyed(drained(capture)) == [("d", 3)]
    assert "signal bad" in caplog.text
    assert "'dance' is unknown" in caplog.text


@pytest.mark.parametrize("name", ["public.\\ud800", "public.\\u0000"])
def test_a_table_that_cannot_be_named_is_logged_and_nothing_stops(
    table: Database, capture: Capture, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    send(table, "bad", "add-tables", f'{{"data-collections": ["{name}"]}}')
    table.execute("DELETE FROM t WHERE id = 3")
    assert keyed(drained(capture)) == [("d", 3)]
    assert "signal bad (add-tables) is ignored" in caplog.text
    assert name in caplog.text


@pytest.mark.parametrize("ddl", ["", "CREATE TABLE signals (id text, type text)"], ids=["missing", "narrow"])
def test_a_signal_table_that_cannot_be_read_is_logged_once(
    database: Database, caplog: pytest.LogCaptureFixture, ddl: str
) -> None:
    database.execute(*ROWS, *([ddl] if ddl else []))
    with capturing(database, **GIVEN) as capture:
        capture.step()
        database.execute("DELETE FROM t WHERE id = 3")
        assert keyed(drained(capture)) == [("d", 3)]
        assert caplog.text.count('"public"."signals" needs columns id, type, data') == 1
        database.execute("DROP TABLE IF EXISTS signals", SIGNALS)
        execute(database, "s1", ', "additional-condition": "id = 5"')
        assert keyed(drained(capture)) == [("r", 5)]


def test_a_condition_that_fails_gives_up_that_table_alone(
    table: Database, capture: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    execute(table, "bad", ', "additional-condition": "no_such_column > 1"')
    execute(table, "good", ', "additional-condition": "id = 5"')
    assert keyed(drained(capture)) == [("r", 5)]
    assert "no_such_column" in caplog.text


def test_pause_resume_and_stop(table: Database, capture: Capture) -> None:
    execute(table, "s1")
    first = keyed(capture.step()[1:])
    send(table, "p", "pause-snapshot", None)
    paused = keyed(drained(capture))
    send(table, "r", "resume-snapshot", None)
    rest = keyed([row for row in capture.step() if row["table"] == "public.t"])
    send(table, "x", "stop-snapshot", '{"data-collections": ["public.t"], "type": "incremental"}')
    assert keyed(drained(capture)) == []
    seen = [id_ for op, id_ in (*first, *paused, *rest) if op == "r"]
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) < 10


def test_an_id_used_again_is_another_signal(database: Database) -> None:
    """In place of the first one, or beside it in a table without a key."""
    database.execute(*ROWS, SIGNALS.replace(" PRIMARY KEY", ""), "ALTER TABLE signals REPLICA IDENTITY FULL")
    with capturing(database, **GIVEN) as capture:
        capture.step()
        for number in (1, 2):
            execute(database, "x", f', "additional-condition": "id = {number}"')
            assert keyed(drained(capture)) == [("r", number)]
        database.execute("DELETE FROM signals WHERE id = 'x'")
        execute(database, "x", ', "additional-condition": "id = 3"')
        assert keyed(drained(capture)) == [("r", 3)]
        database.execute("DELETE FROM signals WHERE id = 'x'", "VACUUM FULL signals")
        assert drained(capture) == []


def test_a_blocking_snapshot_runs_while_an_incremental_one_is_paused(table: Database, capture: Capture) -> None:
    table.execute("CREATE TABLE u (id int PRIMARY KEY)", "INSERT INTO u VALUES (11), (12)")
    execute(table, "nightly")
    first = keyed([row for row in capture.step() if row["op"] == "r"])
    send(table, "p", "pause-snapshot", None)
    drained(capture)
    # Of the same id: signals are told apart by what they ask for.
    table.execute("DELETE FROM signals WHERE id = 'nightly'")
    execute(table, "nightly", ', "type": "blocking"', table="public.u")
    assert keyed(drained(capture)) == [("r", 11), ("r", 12)]
    send(table, "r", "resume-snapshot", None)
    assert first + keyed(drained(capture)) == [("r", n) for n in range(1, 11)]


@pytest.mark.parametrize("restarts", [1, 4, *(pytest.param(count, marks=pytest.mark.long) for count in (2, 3))])
def test_a_restart_resumes_and_reads_at_most_one_chunk_again(table: Database, restarts: int) -> None:
    with capturing(table, **GIVEN) as capture:
        capture.step()
        execute(table, "s1")
        rows: list[Row] = []
        for _ in range(restarts):
            rows += [row for row in capture.step() if row["table"] == "public.t"]
        # Planned and written down, but never read: as if the driver was killed before the batch was done.
        capture.plan()
        offset = capture.offset
        properties = {name: value for name, value in capture.config.given.items() if name != "topic.prefix"}
        capture.close()
        second = Capture(table, properties)
        second.offset = offset
        rows += drained(second)
        second.close()
    seen = [id_ for op, id_ in keyed(rows) if op == "r"]
    assert set(seen) == set(range(1, 11))
    assert len(seen) <= 13
    assert seen == sorted(seen)


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_dots_in_names_of_schemas_and_tables(database: Database, kind: str) -> None:
    database.execute(
        SIGNALS.replace("signals", '"my.signals"'),
        'CREATE SCHEMA "my.s"',
        'CREATE TABLE "my.s"."d.t" (id int PRIMARY KEY)',
        'INSERT INTO "my.s"."d.t" VALUES (1), (2)',
    )
    given = {**GIVEN, "signal__data__collection": 'public."my.signals"'}
    data = f'{{"data-collections": ["\\"my.s\\".\\"d.t\\""], "type": "{kind}"}}'
    with capturing(database, **given) as capture, database.connect() as connection:
        capture.step()
        connection.execute("INSERT INTO \"my.signals\" VALUES ('s', 'execute-snapshot', %s)", [data])
        connection.commit()
        rows = [row for row in drained(capture) if row["table"] != "public.my.signals"]
    assert keyed(rows) == [("r", 1), ("r", 2)]


@pytest.mark.parametrize("mode", ["all_tables", "filtered"])
def test_the_signal_table_is_captured_whatever_the_filters(table: Database, mode: str) -> None:
    given = {"table__include__list": "public.t", "publication__autocreate__mode": mode, **GIVEN}
    with capturing(table, **{**given, "snapshot__mode": "initial"}) as capture:
        assert {row["table"] for row in capture.step()} == {"public.t"}
        send(table, "a", "log", '{"message": "hello"}')
        found = [(row["op"], row["table"]) for row in (*capture.step(), *capture.step())]
    assert found == [("c", "public.signals")]


def test_read_only_writes_nothing(table: Database) -> None:
    with capturing(table, read__only="true", **GIVEN) as capture:
        capture.step()
        execute(table, "s1")
        assert keyed(drained(capture)) == [("r", n) for n in range(1, 11)]
    with table.connect() as connection:
        assert connection.execute("SELECT count(*) FROM signals").fetchone() == (1,)


def test_insert_delete_leaves_no_windows(table: Database) -> None:
    with capturing(table, incremental__snapshot__watermarking__strategy="insert_delete", **GIVEN) as capture:
        capture.step()
        execute(table, "s1")
        assert len(drained(capture)) == 10
    with table.connect() as connection:
        assert connection.execute("SELECT count(*) FROM signals").fetchone() == (1,)


@pytest.mark.parametrize(("retries", "rows"), [("1", 0), ("2", 10)])
def test_a_window_that_cannot_be_written_is_tried_again(table: Database, retries: str, rows: int) -> None:
    table.execute(
        "CREATE SEQUENCE tries",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF nextval('tries') < 3 THEN RAISE 'not now'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON signals FOR EACH ROW WHEN (NEW.type LIKE '%-open') "
        "EXECUTE FUNCTION refuse()",
    )
    given = {"signal__emit__failure__max__retries": retries, "signal__emit__failure__backoff__ms": "1"}
    with capturing(table, **given, **GIVEN) as capture:
        capture.step()
        execute(table, "s1")
        assert len(drained(capture)) == rows


def test_a_blocking_snapshot_is_exact(table: Database, capture: Capture) -> None:
    execute(table, "s1", ', "type": "blocking"')
    table.execute("UPDATE t SET version = 1 WHERE id = 4")
    rows = drained(capture)
    reads = [row for row in rows if row["op"] == "r"]
    assert [row["after"]["id"] for row in reads] == sorted(range(1, 11), key=lambda n: (n == 4, n))
    assert [reads[0]["snapshot"], reads[-1]["snapshot"]] == ["first", "last"]
    versions = [row["after"]["version"] for row in rows if (row["after"] or {}).get("id") == 4]
    assert versions == sorted(versions)
    table.execute("DELETE FROM t WHERE id = 1")
    assert keyed(drained(capture)) == [("d", 1)]


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
def test_under_traffic_no_key_ever_steps_back(table: Database, seed: int, kind: str) -> None:
    with capturing(table, **GIVEN) as capture:
        capture.step()
        over = threading.Event()
        writers = [threading.Thread(target=write, args=(table, number, over)) for number in range(3)]
        for writer in writers:
            writer.start()
        rows: list[Row] = []
        try:
            for number in range(3):
                execute(table, f"s{seed}-{number}", f', "type": "{kind}"')
                for _ in range(15):
                    rows += [row for row in capture.step() if row["table"] == "public.t"]
        finally:
            over.set()
            for writer in writers:
                writer.join()
        table.execute("SELECT pg_current_xact_id()", "CREATE TABLE flushed ()")
        rows += drained(capture)
        with table.connect() as connection:
            expected = dict(connection.execute("SELECT id, version FROM t").fetchall())
    state: dict[int, int] = {}
    for row in rows:
        image = row["after"] or row["before"]
        if row["op"] == "d":
            state.pop(image["id"], None)
        else:
            assert image["version"] >= state.get(image["id"], -1), (row["op"], image)
            state[image["id"]] = image["version"]
    assert state == expected
    assert sum(row["op"] == "r" for row in rows) > 10


def test_log_that_is_not_flushed(database: Database) -> None:
    """A transaction that goes on keeps its own records, which the WAL writer leaves until their page is full."""
    with psycopg.connect(database.dsn) as busy, database.connect() as connection:
        busy.execute("SELECT pg_logical_emit_message(false, 'tailrace', 'not flushed')")
        config = resolve({**database.properties, "topic.prefix": "t"})
        row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        assert row is not None
        assert flushed(connection, config) >= parse_lsn(row[0])
