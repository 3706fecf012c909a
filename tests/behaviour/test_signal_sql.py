"""SQL in a signal runs as one read-only query, and a signal takes limited room in an offset."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.connectors.signal_source import MOST_ROWS
from tailrace.errors import SourceError
from tailrace.snapshot import matching
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.signalling import GIVEN, ROWS, SIGNALS, drained, execute, keyed, send
from tests.conftest import Database

ALL = [("r", n) for n in range(1, 11)]
OFFSET_BYTES = 1 << 20


@pytest.fixture
def victim(database: Database) -> Database:
    """Tables to read, and one that nobody may touch."""
    database.execute(
        SIGNALS,
        *ROWS,
        "CREATE TABLE victim (id int PRIMARY KEY)",
        "INSERT INTO victim VALUES (77)",
        "CREATE FUNCTION clear_victim() RETURNS bool LANGUAGE sql AS 'DELETE FROM victim; SELECT true'",
    )
    return database


@pytest.fixture
def capture(victim: Database) -> Iterator[Capture]:
    with capturing(victim, **GIVEN, table__include__list="public.t,public.victim") as capture:
        capture.step()
        yield capture


def is_whole(database: Database) -> bool:
    with database.connect() as connection:
        return connection.execute("SELECT count(*) FROM victim").fetchone() == (1,)


def incomplete(capture: Capture) -> dict[str, str]:
    return {table["table"]: table["why"] for table in capture.offset["snapshots"].get("incomplete", [])}


def ask(capture: Capture, kind: str, condition: str, id_: str = "s1") -> None:
    data = {"data-collections": ["public.t"], "type": kind}
    conditions = [{"data-collection": "public.t", "filter": condition}]
    send(capture.database, id_, "execute-snapshot", json.dumps({**data, "additional-conditions": conditions}))


@pytest.mark.parametrize(
    "condition",
    [
        "true) LIMIT 0; DELETE FROM victim; SELECT (1",
        "true) LIMIT 0; COMMIT; DELETE FROM victim; SELECT * FROM t WHERE (true",
        "true); DELETE FROM victim; --",
        "clear_victim()",
        "set_config('transaction_read_only', 'off', true) = 'off' AND clear_victim()",
        "true) UNION ALL SELECT id, 0, 'stolen', id::text FROM victim WHERE (true",
        "true) OR (true",
        "true THEN 1 END FROM t WHERE (SELECT CASE WHEN true",
        "nextval('numbers') > 0",
    ],
)
def test_a_condition_is_one_expression_that_reads(victim: Database, capture: Capture, condition: str) -> None:
    victim.execute("CREATE SEQUENCE numbers")
    ask(capture, "incremental", condition)
    assert drained(capture) == []
    assert is_whole(victim)
    assert "public.t" in incomplete(capture)


@pytest.mark.parametrize(
    "select",
    [
        "SELECT * FROM t; DELETE FROM victim",
        "SELECT * FROM t) AS x; DELETE FROM victim; SELECT * FROM (SELECT * FROM t",
        "SELECT * FROM t; COMMIT; DELETE FROM victim; --",
        "SELECT * FROM t WHERE clear_victim()",
        "WITH gone AS (DELETE FROM victim RETURNING id) SELECT t.* FROM t, gone",
        "SELECT * FROM t) AS x) TO PROGRAM 'touch {}' --",
        "SELECT * FROM t) AS x) TO PROGRAM 'touch {}' WITH (FORMAT csv) --",
    ],
)
def test_a_select_is_one_query_that_reads(victim: Database, capture: Capture, select: str, tmp_path: Path) -> None:
    ask(capture, "blocking", select.format(tmp_path / "made"))
    assert drained(capture) == []
    assert is_whole(victim)
    assert "public.t" in incomplete(capture)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("select", ["SELECT * FRM t", "SELECT *, id / (id - id) FROM t WHERE nowhere = 1"])
def test_a_select_with_an_error_says_what_to_correct(capture: Capture, select: str) -> None:
    ask(capture, "blocking", select)
    assert drained(capture) == []
    assert "remedy: fix the conditions of the signal (additional-conditions)" in incomplete(capture)["public.t"]


def test_a_select_may_leave_out_columns_before_its_last(capture: Capture) -> None:
    ask(capture, "blocking", "SELECT note, id FROM t WHERE id = 1")
    (row,) = drained(capture)
    assert (row["op"], row["after"]) == ("r", {"id": 1, "version": None, "note": "note 1"})


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("SELECT id FROM t", "leaves out the table's last columns: version, note"),
        ("SELECT id FROM t", "add NULL AS note to the conditions of the signal (additional-conditions)"),
        ("SELECT *, 1 AS more FROM t", "has a column that the table does not have: more"),
    ],
)
def test_a_select_with_other_columns_is_given_up(capture: Capture, select: str, said: str) -> None:
    ask(capture, "blocking", select)
    assert drained(capture) == []
    assert said in incomplete(capture)["public.t"]


def test_a_select_of_the_configuration_is_one_query_as_well(victim: Database) -> None:
    name = "snapshot.select.statement.overrides"
    given = {name: "public.t", f"{name}.public.t": "SELECT * FROM t; DELETE FROM victim", "snapshot.mode": "initial"}
    with capturing(victim, **given) as capture, pytest.raises(SourceError, match="syntax error"):
        capture.step()
    assert is_whole(victim)


def test_settings_that_a_condition_changes_end_with_its_chunk(victim: Database) -> None:
    """Here: where operators are looked for, of which the next statement, one that may write, would use one."""
    victim.execute(
        "CREATE SCHEMA evil",
        "CREATE FUNCTION evil.same(varchar, varchar) RETURNS bool LANGUAGE sql "
        "AS 'DELETE FROM public.victim; SELECT true'",
        "CREATE OPERATOR evil.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = evil.same)",
    )
    with capturing(victim, **GIVEN, incremental__snapshot__watermarking__strategy="insert_delete") as capture:
        capture.step()
        ask(capture, "incremental", "set_config('search_path', 'evil, public', false) IS NOT NULL")
        assert [row for row in keyed(drained(capture)) if row != ("d", 77)] == ALL
    assert is_whole(victim)


@pytest.mark.parametrize(
    "condition", ["id < 3 -- comment", "id IN (SELECT id - 75 FROM victim) OR note = ')' AND false OR id = 1"]
)
def test_a_condition_may_end_in_a_comment_and_read_other_tables(capture: Capture, condition: str) -> None:
    ask(capture, "incremental", condition)
    assert keyed(drained(capture)) == [("r", 1), ("r", 2)]


@pytest.mark.parametrize("select", ["SELECT * FROM t WHERE id < 3 ; \n", "SELECT * FROM t WHERE id < 3 -- comment"])
def test_a_select_may_end_in_a_semicolon_or_a_comment(capture: Capture, select: str) -> None:
    ask(capture, "blocking", select)
    assert keyed(drained(capture)) == [("r", 1), ("r", 2)]


def test_an_expression_without_end_is_refused_once(
    victim: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "MATCHING_SECONDS", 1.0)
    victim.execute("CREATE TABLE a_table_with_a_rather_long_name (id int PRIMARY KEY)")
    endless = "(([a-z_.]+)+)+!"
    with capturing(victim, **GIVEN) as capture:
        capture.step()
        began = time.monotonic()
        execute(victim, "slow", table=endless)
        conditions = f', "additional-conditions": [{{"data-collection": "{endless}", "filter": "true"}}]'
        execute(victim, "slow too", conditions, table="public.a_table_with_a_rather_long_name")
        execute(victim, "good")
        assert keyed(drained(capture)) == ALL
        assert time.monotonic() - began < 20
        offset, properties = capture.offset, dict(capture.config.given)
    assert caplog.text.count("cannot be matched") == 2
    second = Capture(victim, properties)
    second.offset = offset
    drained(second)
    second.close()
    assert caplog.text.count("cannot be matched") == 2, "it is not tried again after a restart"


def test_the_keys_of_a_signal_are_limited(capture: Capture, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def send_keys(count: int) -> None:
        data = {"data-collections": ["public.t"], "keys": [[str(n)] for n in range(1, count + 1)]}
        send(capture.database, f"k{count}", "execute-snapshot", json.dumps(data))

    capture.database.execute("ALTER TABLE signals ALTER data TYPE text")
    send_keys(10_000)
    found = keyed(drained(capture))
    assert found[:10] == ALL
    assert len(found) == 10_000
    send_keys(20_001)
    assert drained(capture) == []
    assert "names 20,001 keys, and a signal may name 10,000" in caplog.text
    assert "send 3 signals" in caplog.text


def test_an_offset_has_a_limit_whatever_signals_say(capture: Capture, caplog: pytest.LogCaptureFixture) -> None:
    database = capture.database
    database.execute("ALTER TABLE signals ALTER data TYPE text, ALTER id TYPE text, ALTER type TYPE text")
    send(database, "p", "pause-snapshot", None)
    ask(capture, "incremental", "true OR '" + "x" * 2_000_000 + "' = ''", "long")
    for number in range(30):
        ask(capture, "incremental", "true OR '" + "x" * 100_000 + "' = ''", f"{number}" + "i" * 10_000)
    database.execute(
        "INSERT INTO signals SELECT n || repeat('i', 500), 'pause-snapshot' FROM generate_series(1, 900) n",
    )
    data = json.dumps({"data-collections": [f"public.n{n}_{'n' * 50}" for n in range(3000)]})
    send(database, "names", "execute-snapshot", data)
    drained(capture)
    assert len(json.dumps(capture.offset)) < OFFSET_BYTES
    assert "its data is longer than 1,048,576 characters" in caplog.text
    assert "524,288 are in use" in caplog.text
    send(database, "x", "stop-snapshot", "{}")
    drained(capture)
    assert len(json.dumps(capture.offset)) < OFFSET_BYTES // 4


def test_a_table_of_too_many_signals_is_read_once_rows_are_deleted(
    capture: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    database = capture.database
    database.execute(
        "INSERT INTO signals SELECT 'i' || n, 'log', '{\"message\": \"m\"}' FROM generate_series(1, 999) n"
    )
    drained(capture)
    execute(database, "last")
    assert keyed(drained(capture)) == ALL
    execute(database, "one too many")
    assert drained(capture) == []
    assert caplog.text.count("holds more than 1,000 signals") == 1
    assert "remedy: DELETE the rows" in caplog.text
    database.execute("DELETE FROM signals WHERE id LIKE 'i%'")
    assert keyed(drained(capture)) == ALL
    assert len(capture.offset["snapshots"]["handled"]) == 2


def test_a_pipeline_that_begins_ignores_a_table_of_too_many_signals(
    victim: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """What is there when it is first read counts as carried out, and what comes then is new."""
    data = '{"data-collections": ["public.t"]}'
    insert = f"INSERT INTO signals SELECT 'i' || n, 'execute-snapshot', '{data}' FROM generate_series(1, %s) n"
    victim.execute(insert.replace("%s", str(MOST_ROWS + 1)))
    with capturing(victim, **GIVEN) as capture:
        capture.step()
        victim.execute("DELETE FROM t WHERE id = 3")
        assert keyed(drained(capture)) == [("d", 3)]
        assert caplog.text.count("holds more than 1,000 signals") == 1
        victim.execute("DELETE FROM signals WHERE id > 'i3'")
        assert drained(capture) == []
        ask(capture, "incremental", "id = 5")
        assert keyed(drained(capture)) == [("r", 5)]
