"""Properties that need a server to show what they do."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import psycopg
import pytest

from tailrace.connectors.postgres.admin import resumable
from tailrace.connectors.postgres.admin.checks import check
from tailrace.connectors.postgres.options import LSN_FLUSH_MODE, SLOT_NAME
from tailrace.connectors.postgres.server import control, slot
from tailrace.errors import ConfigError, DecodeError, OffsetError, SourceError
from tests.behaviour import streams_here
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.entries import confirmed
from tests.behaviour.streams import eventually
from tests.conftest import Database

TABLE = ("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")


def ids(capture: Capture) -> list[int]:
    """Ids of the next step's rows."""
    return [row["after"]["id"] for row in capture.step()]


def test_manual_flushing_confirms_nothing(database: Database) -> None:
    database.execute(*TABLE)
    with capturing(database, lsn__flush__mode="manual") as capture:
        capture.step()
        before = confirmed(database)
        for number in range(2, 5):
            database.execute(f"INSERT INTO t VALUES ({number})")
            assert ids(capture) == [number]
        assert confirmed(database) == before
    with capturing(database, flush__lsn__source="false") as capture:
        assert capture.config[LSN_FLUSH_MODE] == "manual"


@pytest.mark.parametrize("strategy", ["no_validation", "trust_offset", "trust_slot", "trust_greater_lsn"])
def test_a_slot_that_moved_on(database: Database, strategy: str, caplog: pytest.LogCaptureFixture) -> None:
    database.execute(*TABLE)
    with capturing(database, offset__mismatch__strategy=strategy) as capture:
        capture.step()
        database.execute("INSERT INTO t VALUES (2)")
        assert ids(capture) == [2]
        capture.forget_streams()
        database.execute("INSERT INTO t VALUES (3)")
        database.execute(f"SELECT pg_replication_slot_advance('slot_{database.name}', pg_current_wal_lsn())")
        database.execute("INSERT INTO t VALUES (4)")
        if strategy in ("trust_slot", "trust_greater_lsn"):
            assert ids(capture) == [4]
            assert "are lost to this pipeline" in caplog.text
        else:
            with pytest.raises(OffsetError, match="was moved"):
                ids(capture)


@pytest.mark.parametrize(("interval", "filled"), [("0", False), ("1000", True)])
def test_xmin_of_the_slot(database: Database, interval: str, filled: bool) -> None:
    database.execute(*TABLE)
    with capturing(database, xmin__fetch__interval__ms=interval) as capture:
        capture.step()
        database.execute("INSERT INTO t VALUES (2)")
        (row,) = capture.step()
    assert (row["source"]["xmin"] is not None) is filled


def test_the_guardrail(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute(*TABLE, "CREATE TABLE u (id int PRIMARY KEY)")
    with capturing(database, guardrail__collections__max="1") as capture:
        capture.step()
        assert "2 tables are captured" in caplog.text
    failing = {"guardrail__collections__max": "1", "guardrail__collections__limit__action": "fail"}
    with capturing(database, **failing) as capture, pytest.raises(ConfigError, match="2 tables are captured"):
        capture.step()
    with capturing(database, **failing, table__include__list=r"public\.t", slot__name="fits") as capture:
        assert ids(capture) == [1]
    database.execute("SELECT pg_drop_replication_slot('fits')")


def test_delays(database: Database) -> None:
    database.execute(*TABLE)
    with capturing(database, snapshot__delay__ms="300", streaming__delay__ms="400") as capture:
        begin = time.monotonic()
        capture.step()
        assert time.monotonic() - begin >= 0.3
        database.execute("INSERT INTO t VALUES (2)")
        begin = time.monotonic()
        assert ids(capture) == [2]
        assert time.monotonic() - begin >= 0.4


def cancels_once_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Have the end of the limit wait until it is told what the slot waits for, as often as there were limits."""
    cancel, limits = slot._cancel, count(1)

    def cancelled(connection: psycopg.Connection[Any]) -> None:
        number = next(limits)
        eventually(lambda: caplog.text.count("making the slot waits for") >= number)
        cancel(connection)

    monkeypatch.setattr(slot, "_cancel", cancelled)


def test_slot_creation_has_a_limit(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot, "WAIT_SECONDS", 0.3)
    cancels_once_told(monkeypatch, caplog)
    database.execute(*TABLE)
    given = {
        "internal__create__slot__command__timeout": "1",
        "slot__retry__delay__ms": "100",
        "slot__max__retries": "1",
    }
    with database.connect() as other, other.transaction():
        other.execute("SELECT pg_current_xact_id()")
        holder = other.info.backend_pid
        with capturing(database, **given) as capture, pytest.raises(SourceError, match="waited for") as told:
            capture.plan()
    assert f"SELECT pg_terminate_backend({holder})" in str(told.value.remedy)
    assert caplog.text.count("could not be created in time") == 1
    assert f"making the slot waits for the open transaction of server process {holder}," in caplog.text
    with capturing(database, **{**given, "internal__create__slot__command__timeout": "-1"}) as capture:
        assert ids(capture) == [1]


@pytest.mark.parametrize("is_prepared", [False, True], ids=["open", "prepared"])
def test_who_has_locked_a_table_that_is_described_is_named(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, is_prepared: bool
) -> None:
    monkeypatch.setattr(control, "WAIT_SECONDS", 0.3)
    database.execute(*TABLE)
    with capturing(database) as capture, database.connect() as other:
        asked, process = control.Control(capture.config), other.info.backend_pid
        other.execute("BEGIN; ALTER TABLE t ADD note text" + ("; PREPARE TRANSACTION 'left'" if is_prepared else ""))
        named = "prepared transaction 'left'" if is_prepared else f"open transaction of server process {process},"
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(asked.ask, lambda connection: connection.execute("TABLE t").fetchall())
            try:
                eventually(lambda: f"reading the server's catalog waits for the {named}" in caplog.text)
            finally:
                other.execute("ROLLBACK PREPARED 'left'" if is_prepared else "ROLLBACK")
            assert len(waiting.result()) == 1
        asked.close()


def test_a_forgotten_prepared_transaction_is_named_by_check_and_run(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server process holds its locks, and one of another database keeps the slot from being made as well."""
    monkeypatch.setattr(slot, "WAIT_SECONDS", 0.3)
    monkeypatch.setattr(resumable, "_FORGOTTEN_SECONDS", 0.0)
    cancels_once_told(monkeypatch, caplog)
    database.execute(*TABLE)
    given = {"internal__create__slot__command__timeout": "1", "slot__max__retries": "0"}
    with database.server.connect() as elsewhere:
        elsewhere.execute("BEGIN; CREATE TABLE left_over (id int); PREPARE TRANSACTION 'it''s left'")
        owner = database.server.user
        named = f"the prepared transaction 'it''s left' of {owner} in the database postgres, for 0:0"
        mends = f"in the database postgres, as {owner} or a superuser: ROLLBACK PREPARED 'it''s left', or COMMIT"
        try:
            with capturing(database, **given) as capture:
                (found,) = [each for each in check(capture.config) if "prepared" in each.what]
                assert (found.name, found.ok) == ("slot", None)
                assert found.what.startswith(named)
                assert found.what.endswith("keeps the slot from being made")
                assert (found.remedy or "").startswith(mends)
                with pytest.raises(SourceError) as told:
                    capture.plan()
            assert named in str(told.value)
            assert mends in str(told.value.remedy)
            assert f"making the slot waits for {named}" in caplog.text
        finally:
            elsewhere.execute("ROLLBACK PREPARED 'it''s left'")
    with capturing(database) as capture:
        assert ids(capture) == [1]


def test_creation_of_the_publication_has_that_limit_too(database: Database) -> None:
    database.execute(*TABLE)
    given = {"internal__create__slot__command__timeout": "1", "publication__autocreate__mode": "filtered"}
    with database.connect() as other, other.transaction():
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        begin = time.monotonic()
        with capturing(database, **given) as capture, pytest.raises(SourceError, match="statement timeout"):
            capture.plan()
    assert time.monotonic() - begin < 80, "as long as the default"
    with capturing(database, publication__autocreate__mode="filtered") as capture:
        assert ids(capture) == [1]


def reply_time(database: Database) -> str:
    with database.connect() as connection:
        row = connection.execute(
            "SELECT max(reply_time)::text FROM pg_stat_replication WHERE application_name LIKE 'tailrace %%'"
            " AND pid = (SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s)",
            [f"slot_{database.name}"],
        ).fetchone()
    assert row is not None
    return str(row[0])


def moves_on(database: Database) -> None:
    """Wait for the next status update."""
    before = reply_time(database)
    eventually(lambda: reply_time(database) != before)


def rests(database: Database) -> bool:
    """Whether no status update comes for a while."""
    before = reply_time(database)
    time.sleep(2)
    return reply_time(database) == before


@pytest.mark.parametrize(("interval", "moves"), [("100", True), ("600000", False)])
def test_status_updates_are_sent_while_the_reader_is_busy_elsewhere(
    database: Database, interval: str, moves: bool
) -> None:
    database.execute(*TABLE)
    with capturing(database, status__update__interval__ms=interval) as capture, streams_here.in_a_process():
        capture.step()
        # More than what fits between the reader process and its client.
        database.execute("INSERT INTO t SELECT generate_series(2, 200000)")
        (split,) = capture.plan()
        chunks = capture.reader.read(split)
        next(chunks)
        if moves:
            for _ in range(10):
                moves_on(database)
        else:
            eventually(lambda: rests(database))
        assert list(chunks)
        database.execute("INSERT INTO t VALUES (0)")
        assert ids(capture) == [0]


@pytest.mark.parametrize("pattern", [None, "(?s).*publication.*"])
def test_errors_that_are_to_be_tried_again(
    database: Database, pattern: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A publication that is dropped is an error at once, unless the configuration lists it as a passing one."""
    database.execute(*TABLE)
    given = {"errors__max__retries": "2", "retriable__restart__connector__wait__ms": "50"}
    listed = {} if pattern is None else {"internal__custom__retriable__exception": pattern}
    with capturing(database, **given, **listed) as capture:
        capture.step()
        database.execute(f"DROP PUBLICATION publication_{database.name}", "INSERT INTO t VALUES (2)")
        with pytest.raises(SourceError, match=r'publication "publication_.*" does not exist'):
            capture.step()
    assert "start again" not in caplog.text, "what is tried again by itself needs no start"
    assert caplog.text.count("trying again") == (0 if pattern is None else 2)


def test_comments_of_columns_are_in_schemas(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v point, w text)",
        "COMMENT ON COLUMN t.id IS 'who'",
        "COMMENT ON COLUMN t.v IS 'where'",
        "INSERT INTO t VALUES (1)",
    )

    def docs(**properties: str) -> list[list[str | None]]:
        name = f"slot_{len(properties)}_{database.name}"
        with capturing(database, slot__name=name, **properties) as capture:
            rows = capture.step()
            database.execute("UPDATE t SET w = 'x'")
            rows += capture.step()
        return [[column.schema.doc for column in row["schema"].columns] for row in rows]

    assert docs(include__schema__comments="true") == [["who", "where", None]] * 2
    assert docs() == [[None, "Geometry (POINT)", None]] * 2
    with capturing(
        database, slot__name="params", include__schema__comments="true", column__propagate__source__type=r".*\.id"
    ) as capture:
        (row,) = capture.step()
    assert ("__debezium.source.column.comment", "who") in row["schema"].column("id").schema.parameters


# A nested array is an error of conversion if that is wanted; so is any other value that cannot be read.
NESTED = {"event__converting__failure__handling__mode": "fail"}


@pytest.mark.parametrize(("mode", "level"), [("warn", "WARNING"), ("skip", "INFO"), ("ignore", "INFO")])
def test_changes_that_cannot_be_read_are_left_out_and_logged(
    database: Database, mode: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, a int[])", "ALTER TABLE t REPLICA IDENTITY FULL")
    database.execute(
        "INSERT INTO t SELECT n, CASE WHEN n % 7 = 3 THEN '{{1}}'::int[] END FROM generate_series(1, 30) n"
    )
    sound = [number for number in range(1, 31) if number % 7 != 3]
    caplog.set_level("INFO")
    with capturing(database, event__processing__failure__handling__mode=mode, **NESTED) as capture:
        first = capture.step()
        assert [row["after"]["id"] for row in first] == sound
        assert [row["snapshot"] for row in first] == ["first", *["true"] * (len(sound) - 2), "last"]
        told = [record for record in caplog.records if "is left out" in record.getMessage()]
        assert [record.levelname for record in told] == [level] * 4
        assert told[0].getMessage().startswith("a change of public.t, snapshot row 2 is left out: public.t.a, snapshot")
        caplog.clear()
        database.execute(
            "INSERT INTO t VALUES (100, '{1}'), (101, '{{2}}'), (102, NULL)",
            "UPDATE t SET a = '{{3}}' WHERE id = 100",
            "INSERT INTO t VALUES (103, '{{4}}')",
            "DELETE FROM t WHERE id = 102",
        )
        found = [(row["op"], (row["after"] or row["before"])["id"]) for row in capture.step()]
        assert found == [("c", 100), ("c", 102), ("d", 102)]
        told = [record for record in caplog.records if "is left out" in record.getMessage()]
        assert len(told) == 3
        assert re.match(r"a change of public\.t at [0-9A-F]+/[0-9A-F]+ is left out: ", told[0].getMessage())


def test_a_change_that_cannot_be_read_is_an_error_by_default(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, a int[])", "INSERT INTO t VALUES (1, '{{1}}')")
    with capturing(database, **NESTED) as capture, pytest.raises(DecodeError, match=r"public\.t\.a"):
        capture.step()


def test_a_table_of_faulty_rows_alone_gives_nothing(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, a int[])", "INSERT INTO t VALUES (1, '{{1}}')")
    with capturing(database, event__processing__failure__handling__mode="skip", **NESTED) as capture:
        assert capture.step() == []
        database.execute("INSERT INTO t VALUES (2, '{{1}}')")
        assert capture.step() == []
        database.execute("INSERT INTO t VALUES (3, '{1}')")
        assert ids(capture) == [3]


@pytest.mark.parametrize("wanted", ["true", "false"])
def test_a_slot_for_failover(database: Database, wanted: str) -> None:
    database.execute(*TABLE)
    with capturing(database, slot__failover=wanted) as capture, database.connect() as connection:
        capture.plan()
        row = connection.execute(
            "SELECT failover FROM pg_replication_slots WHERE slot_name = %s", [capture.config[SLOT_NAME]]
        ).fetchone()
    assert row == (wanted == "true",)


@pytest.mark.parametrize(("parameters", "expected"), [("origin=none", [3]), ("origin=any", [2, 3]), (None, [2, 3])])
def test_parameters_of_the_stream(database: Database, parameters: str | None, expected: list[int]) -> None:
    database.execute(*TABLE, f"SELECT pg_replication_origin_create('{database.name}')")
    given = {} if parameters is None else {"slot__stream__params": parameters}
    with capturing(database, **given) as capture:
        capture.step()
        # The session of a connection: that of the next one has no origin.
        database.execute(f"SELECT pg_replication_origin_session_setup('{database.name}')", "INSERT INTO t VALUES (2)")
        database.execute("INSERT INTO t VALUES (3)")
        assert ids(capture) == expected
    database.execute(f"SELECT pg_replication_origin_drop('{database.name}')")


@pytest.mark.parametrize(("mode", "digits", "expected"), [("precise", "3", "1.500"), ("precise", "0", "2")])
def test_digits_of_money(database: Database, mode: str, digits: str, expected: str) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, m money)", "INSERT INTO t VALUES (1, 1.50)")
    if digits == "0":
        database.execute("UPDATE t SET m = 2")
    with capturing(database, decimal__handling__mode=mode, money__fraction__digits=digits) as capture:
        (row,) = capture.step()
    assert str(row["after"]["m"]) == expected


def test_types_are_propagated_by_their_names(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(9))", "INSERT INTO t VALUES (1)")
    with capturing(database, datatype__propagate__source__type=r"public\.t\.varchar") as capture:
        (row,) = capture.step()
    schemas = {column.name: dict(column.schema.parameters) for column in row["schema"].columns}
    assert schemas["id"] == {}
    assert schemas["v"]["__debezium.source.column.type"] == "VARCHAR"
    assert schemas["v"]["__debezium.source.column.length"] == "9"


def test_masks_keep_keys_apart(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute("CREATE TABLE t (id int, mail text, PRIMARY KEY (mail, id))", "INSERT INTO t VALUES (1, 'a@b')")
    with (
        capturing(database, column__mask__with__3__chars=r".*\.(mail|id)") as capture,
        pytest.raises(ConfigError, match=r"public\.t\.mail: asterisks would make all keys of the table the same"),
    ):
        capture.step()
    with capturing(database, column__truncate__to__2__chars=r".*\.mail", slot__name="cut") as capture:
        assert [row["after"]["mail"] for row in capture.step()] == ["a@"]
        assert "keys that have the same first 2 characters are one" in caplog.text
    hashed = {"column.mask.hash.v2.MD5.with.salt.s": r".*\.mail", "slot.name": "hashed"}
    with capturing(database, **hashed) as capture:
        assert [len(row["after"]["mail"]) for row in capture.step()] == [32]
    with capturing(database, column__mask__with__3__chars=r".*\.id", slot__name="numbers") as capture:
        assert ids(capture) == [1]
