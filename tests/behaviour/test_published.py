"""What a publication keeps from a pipeline is an error or a warning, at the start and while it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from tailrace.connectors.postgres.admin import problems
from tailrace.connectors.postgres.server import publication_watch as watch
from tailrace.errors import SourceError
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.signalling import GIVEN, SIGNALS, drained, keyed
from tests.conftest import Database

NAMED = r"public\.a,public\.b"


@pytest.fixture(autouse=True)
def at_every_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "INTERVAL_SECONDS", 0.0)


@pytest.fixture
def tables(database: Database) -> Database:
    database.execute(
        SIGNALS,
        "CREATE TABLE a (id int PRIMARY KEY, v text, secret text)",
        "CREATE TABLE b (id int PRIMARY KEY, v text)",
        f"CREATE PUBLICATION publication_{database.name} FOR TABLE a, b, signals",
    )
    return database


def properties(include: str = NAMED, **more: str) -> dict[str, str]:
    return {**GIVEN, "publication__autocreate__mode": "disabled", "table__include__list": include, **more}


def alter(database: Database, what: str) -> None:
    database.execute(f"ALTER PUBLICATION publication_{database.name} {what}")


@pytest.fixture
def capture(tables: Database) -> Iterator[Capture]:
    """A pipeline that streams two tables, which it names."""
    with capturing(tables, **properties()) as capture:
        drained(capture)
        yield capture


def restarted(capture: Capture, **more: str) -> Capture:
    given = {name: value for name, value in capture.config.given.items() if name != "topic.prefix"}
    capture.close()
    second = Capture(capture.database, {**given, **more})
    second.offset = json.loads(json.dumps(capture.offset))
    return second


def warnings(capture: Capture) -> str:
    return "\n".join(capture.offset["snapshots"].get("warnings", []))


@pytest.mark.parametrize("include", [NAMED, "public.a,public.b", r"public\..", r"public\.[ab]"])
def test_a_first_start_without_a_table_of_the_include_list_is_refused(tables: Database, include: str) -> None:
    alter(tables, "DROP TABLE b")
    name = f"publication_{tables.name}"
    with capturing(tables, **properties(include)) as capture:
        with pytest.raises(SourceError, match=f"{name} lacks public.b") as caught:
            capture.step()
        assert f'ALTER PUBLICATION "{name}" ADD TABLE "public"."b"' in (caught.value.remedy or "")
        with tables.connect() as connection:
            assert connection.execute(
                "SELECT count(*) FROM pg_replication_slots WHERE database = %s", [tables.name]
            ).fetchone() == (0,)


def test_without_an_include_list_the_publication_may_choose(tables: Database, caplog: pytest.LogCaptureFixture) -> None:
    alter(tables, "DROP TABLE b")
    with capturing(tables, **{**properties(), "table__include__list": ""}) as capture:
        drained(capture)
        tables.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (2)")
        assert keyed(drained(capture)) == [("c", 1)]
        assert "lacks public.b" in warnings(capture)
    assert "lacks public.b" in caplog.text


@pytest.mark.parametrize("change", ["DROP TABLE b", "SET TABLE a, signals"])
def test_a_named_table_that_the_publication_loses_stops_the_pipeline(capture: Capture, change: str) -> None:
    alter(capture.database, change)
    with pytest.raises(SourceError, match=r"lacks public\.b: no changes of these come") as caught:
        capture.step()
    assert "tailrace signal FILE execute-snapshot -t public.b" in (caught.value.remedy or "")
    second = restarted(capture)
    with pytest.raises(SourceError, match=r"lacks public\.b"):
        second.step()
    alter(capture.database, "ADD TABLE b")
    capture.database.execute("INSERT INTO b VALUES (3)")
    third = restarted(second)
    assert keyed(drained(third)) == [("c", 3)]
    third.close()


@pytest.mark.parametrize("operations", ["insert", "insert, update", ""])
def test_a_publication_that_is_narrowed_stops_the_pipeline(capture: Capture, operations: str) -> None:
    alter(capture.database, f"SET (publish = '{operations}')")
    lacking = ", ".join(word for word in ("insert", "update", "delete") if word not in operations)
    with pytest.raises(SourceError, match=f"does not publish {lacking}") as caught:
        capture.step()
    assert "SET (publish = 'insert, update, delete')" in (caught.value.remedy or "")
    assert "skipped.operations" in (caught.value.remedy or "")


def test_operations_that_nobody_wants_may_be_missing(capture: Capture) -> None:
    alter(capture.database, "SET (publish = 'insert')")
    second = restarted(capture, **{"skipped.operations": "u,d,t"})
    capture.database.execute("INSERT INTO a VALUES (1)", "DELETE FROM a")
    assert keyed(drained(second)) == [("c", 1)]
    assert warnings(second) == ""
    second.close()
    third = restarted(second, **{"skipped.operations": "none"})
    capture.database.execute("INSERT INTO a VALUES (2)")
    assert keyed(drained(third)) == [("c", 2)]
    assert "does not publish update, delete, truncate" in warnings(third)
    third.close()


def test_a_new_table_that_only_a_pattern_matches_is_a_warning_until_it_is_published(
    tables: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capturing(tables, **properties(r"public\..*")) as capture:
        drained(capture)
        tables.execute("CREATE TABLE scratch (id int PRIMARY KEY)")
        tables.execute("INSERT INTO scratch VALUES (1)", "INSERT INTO a VALUES (1)")
        assert keyed(drained(capture)) == [("c", 1)]
        assert "lacks public.scratch" in warnings(capture)
        assert caplog.text.count("lacks public.scratch") == 1
        monkeypatch.setattr(watch, "REPEAT_SECONDS", 0.0)
        drained(capture)
        assert caplog.text.count("lacks public.scratch") > 1
        second = restarted(capture)
        drained(second)
        assert "lacks public.scratch" in warnings(second)
        alter(tables, "ADD TABLE scratch")
        drained(second)
        assert "warnings" not in second.offset["snapshots"]
        second.close()


def test_a_new_snapshot_of_a_pipeline_that_has_begun_demands_no_more_than_its_stream(tables: Database) -> None:
    with capturing(tables, **{**properties(r"public\..*"), "snapshot__mode": "always"}) as capture:
        drained(capture)
        tables.execute("CREATE TABLE scratch (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
        assert keyed(drained(capture)) == [("c", 1)]
        second = restarted(capture)
        assert keyed(drained(second)) == [("r", 1)]
        assert "lacks public.scratch" in warnings(second)
        second.close()


def test_rows_and_columns_that_the_publication_hides_are_warnings(
    capture: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    database = capture.database
    alter(database, "SET TABLE a (id, v), b WHERE (id < 5), signals")
    drained(capture)
    assert "sends only rows of public.b" in warnings(capture)
    assert "(id < 5)" in warnings(capture)
    assert "does not send public.a.secret" in warnings(capture)
    assert "does not send public.a.secret" in caplog.text
    selects = "snapshot.select.statement.overrides"
    meant = {"column.exclude.list": r"public\.a\.secret", selects: "public.b"}
    second = restarted(capture, **meant, **{f"{selects}.public.b": "SELECT * FROM b WHERE id < 5"})
    drained(second)
    assert warnings(second) == "", "the configuration says the same"
    second.close()


def test_a_table_that_a_filtered_publication_gets_again_is_incomplete(tables: Database) -> None:
    """What was written while the publication lacked it is lost, and its old rows are never read."""
    with capturing(tables, **{**properties(), "publication__autocreate__mode": "filtered"}) as capture:
        drained(capture)
        alter(tables, "DROP TABLE b")
        tables.execute("INSERT INTO b VALUES (1)")
        with pytest.raises(SourceError, match=r"lacks public\.b"):
            capture.step()
        second = restarted(capture)
        drained(second)
        (table,) = second.offset["snapshots"]["incomplete"]
        assert table["table"] == "public.b"
        assert "was not in the publication" in table["why"]
        tables.execute("INSERT INTO b VALUES (2)")
        assert keyed(drained(second)) == [("c", 2)]
        with tables.connect() as connection:
            data = '{"data-collections": ["public.b"]}'
            connection.execute("INSERT INTO signals VALUES ('s', 'execute-snapshot', %s)", [data])
        assert keyed(drained(second)) == [("r", 1), ("r", 2)]
        assert "incomplete" not in second.offset["snapshots"]
        second.close()


def test_a_table_becomes_unlogged(database: Database) -> None:
    database.execute(SIGNALS, "CREATE TABLE a (id int PRIMARY KEY)")
    with capturing(database, **GIVEN) as capture:
        drained(capture)
        database.execute("ALTER TABLE a SET UNLOGGED")
        drained(capture)
        assert "public.a: unlogged" in warnings(capture)


def test_a_lock_on_a_table_keeps_nobody_waiting(capture: Capture, caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL locks a published table even to name its publication."""
    database = capture.database
    with psycopg.connect(database.dsn) as locking:
        locking.execute("LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
        database.execute("INSERT INTO b VALUES (1)")
        assert keyed(drained(capture)) == [("c", 1)]
        drained(capture)
        assert warnings(capture).count("a session locks a published table") == 1
        assert caplog.text.count("a session locks a published table") == 1
        (problem,) = problems.problems(capture.config, begun=True)
        assert "pg_locks" in (problem.remedy or "")
    drained(capture)
    assert warnings(capture) == ""
    assert problems.problems(capture.config, begun=True) == []
