"""Tables added to a running pipeline and removed from it: under traffic nothing of them is lost, nothing steps back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import tailrace
from tailrace.config.options.snapshot import SIGNAL_FOLDER
from tailrace.connectors.postgres.options import PUBLICATION_AUTOCREATE_MODE
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.signalling import ROWS, Row, drained, keyed, write
from tests.conftest import Database

MODES = ["all_tables", "filtered", "disabled"]


@pytest.fixture(params=MODES)
def capture(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> Iterator[Capture]:
    """A pipeline that streams `other`, beside a table `t` that it does not capture."""
    database.execute(*ROWS, "CREATE TABLE other (id int PRIMARY KEY)")
    if request.param == "disabled":
        database.execute(f"CREATE PUBLICATION publication_{database.name} FOR TABLE other")
    given = {
        "publication__autocreate__mode": request.param,
        "table__include__list": r"public\.other",
        "signal__folder": str(tmp_path),
        "signal__poll__interval__ms": "1",
        "incremental__snapshot__chunk__size": "3",
    }
    with capturing(database, **given) as capture:
        drained(capture)
        yield capture


def signal(capture: Capture, kind: str, *names: str, **data: str) -> None:
    tailrace.signal(capture.config.need(SIGNAL_FOLDER), kind, {"data-collections": list(names), **data})


def restarted(capture: Capture, **properties: str) -> Capture:
    """The same pipeline, by a new driver, with other properties."""
    given = {name: value for name, value in capture.config.given.items() if name != "topic.prefix"}
    capture.forget_streams()
    capture.reader.close()
    second = Capture(capture.database, {**given, **properties})
    second.offset = capture.offset
    return second


def published(database: Database) -> set[str]:
    with database.connect() as connection:
        return {row[0] for row in connection.execute("SELECT tablename::text FROM pg_publication_tables")}


def test_an_added_table_is_read_and_followed_and_a_removed_one_is_not(capture: Capture) -> None:
    database = capture.database
    signal(capture, "add-tables", "public.t")
    assert keyed(drained(capture)) == [("r", n) for n in range(1, 11)]
    assert {"t", "other"} <= published(database)
    database.execute(
        "INSERT INTO other VALUES (7)", "UPDATE t SET version = 2 WHERE id = 1", "DELETE FROM t WHERE id = 2"
    )
    assert sorted(keyed(drained(capture))) == [("c", 7), ("d", 2), ("u", 1)]
    signal(capture, "remove-tables", "public.t")
    assert drained(capture) == []
    is_filtered = capture.config[PUBLICATION_AUTOCREATE_MODE] == "filtered"
    assert ("t" in published(database)) != is_filtered
    database.execute("INSERT INTO other VALUES (8)", "DELETE FROM t WHERE id = 3")
    assert keyed(drained(capture)) == [("c", 8)]


def test_a_table_with_dots_in_its_name(capture: Capture) -> None:
    database = capture.database
    database.execute('CREATE SCHEMA "my.s"', 'CREATE TABLE "my.s"."d.t" (id int PRIMARY KEY)')
    database.execute('INSERT INTO "my.s"."d.t" VALUES (1)')
    assert drained(capture) == []
    signal(capture, "add-tables", '"my.s"."d.t"')
    assert keyed(drained(capture)) == [("r", 1)]
    second = restarted(capture)
    database.execute('INSERT INTO "my.s"."d.t" VALUES (2)')
    assert keyed(drained(second)) == [("c", 2)]
    signal(second, "remove-tables", '"my.s"."d.t"')
    drained(second)
    database.execute('INSERT INTO "my.s"."d.t" VALUES (3)')
    assert drained(second) == []
    second.close()


def test_a_restart_keeps_what_was_added_until_the_configuration_has_it(capture: Capture) -> None:
    database = capture.database
    signal(capture, "add-tables", "public.t", type="none")
    assert drained(capture) == []
    second = restarted(capture)
    database.execute("DELETE FROM t WHERE id = 2")
    assert keyed(drained(second)) == [("d", 2)]
    assert second.offset["snapshots"]["tables"] == {"public.t": True}
    third = restarted(second, **{"table.include.list": r"public\.other,public\.t"})
    database.execute("DELETE FROM t WHERE id = 3")
    assert keyed(drained(third)) == [("d", 3)]
    assert third.offset["snapshots"]["tables"] == {}
    fourth = restarted(third, **{"table.include.list": r"public\.other"})
    database.execute("DELETE FROM t WHERE id = 4", "INSERT INTO other VALUES (1)")
    assert keyed(drained(fourth)) == [("c", 1)]
    fourth.close()


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_rows_of_a_transaction_that_was_open_when_the_table_was_added(capture: Capture, kind: str) -> None:
    """What it changed before is not in the log of a publication that lists tables, so it must be in the rows read."""
    with psycopg.connect(capture.database.dsn) as connection:
        connection.execute("INSERT INTO t VALUES (11, 0, 'open')")
        signal(capture, "add-tables", "public.t", type=kind)
        assert drained(capture) == [], "it waits"
    found = [row["after"]["id"] for row in drained(capture) if row["op"] in "rc"]
    assert set(found) == set(range(1, 12))


def test_a_table_that_cannot_be_added_is_logged_and_nothing_stops(
    capture: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    signal(capture, "add-tables", "public.nowhere")
    signal(capture, "remove-tables", "public.t")
    tailrace.signal(capture.config.need(SIGNAL_FOLDER), "add-tables", {"data-collections": "public.t"})
    assert drained(capture) == []
    assert "there is no table public.nowhere" in caplog.text
    assert "there is no table public.t" in caplog.text
    assert json.dumps("public.t") in caplog.text


@pytest.mark.parametrize("kind", ["incremental", pytest.param("blocking", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "capture",
    ["filtered", *(pytest.param(mode, marks=pytest.mark.long) for mode in MODES if mode != "filtered")],
    indirect=True,
)
def test_under_traffic_a_table_is_added_exactly(capture: Capture, kind: str) -> None:
    over = threading.Event()
    database = capture.database
    writers = [threading.Thread(target=write, args=(database, number, over)) for number in range(3)]
    for writer in writers:
        writer.start()
    rows: list[Row] = []
    try:
        for _ in range(5):
            rows += capture.step()
        signal(capture, "add-tables", "public.t", type=kind)
        for number in range(40):
            if number == 8:
                capture = restarted(capture)
            rows += capture.step()
    finally:
        over.set()
        for writer in writers:
            writer.join()
    database.execute("SELECT pg_current_xact_id()", "CREATE TABLE flushed ()")
    rows += drained(capture)
    with database.connect() as connection:
        expected = dict(connection.execute("SELECT id, version FROM t").fetchall())
    capture.close()
    state: dict[int, int] = {}
    for row in rows:
        image = row["after"] or row["before"]
        if row["op"] == "d":
            state.pop(image["id"], None)
        else:
            assert image["version"] >= state.get(image["id"], -1), (row["op"], image)
            state[image["id"]] = image["version"]
    assert state == expected
    assert any(row["op"] == "r" for row in rows)
