"""ReselectColumnsPostProcessor on a real server: values that the log did not repeat, looked up in the table."""

from __future__ import annotations

import pytest

from tailrace.errors import ConfigError, SourceError
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database

WISH = {
    "post__processors": "again",
    "again__type": "io.debezium.processors.reselect.ReselectColumnsPostProcessor",
}
TABLE = "CREATE TABLE docs (id int, lang char(2), title text, body text, tags text[], PRIMARY KEY (lang, id))"
# Values that TOAST stores apart even after compression.
INSERT = (
    "INSERT INTO docs SELECT n, 'en', 't', string_agg(md5(n || ':' || k), ''), array_agg(md5(k || '-' || n)) "
    "FROM generate_series(1, 20) n, generate_series(1, 300) k GROUP BY n"
)


def drop_slot(database: Database) -> None:
    """Drop the slot once the server knows that its reader is gone."""
    slot = f"slot_{database.name}"
    database.execute(
        "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots "
        f"WHERE slot_name = '{slot}' AND active",
        f"SELECT pg_drop_replication_slot('{slot}')",
    )


def filled(database: Database) -> dict[int, str]:
    """The bodies by id."""
    with database.connect() as connection:
        return dict(connection.execute("SELECT id, body FROM docs").fetchall())


def updates(capture: Capture) -> dict[int, dict[str, object]]:
    """The new images of the next step's updates, by id, with the columns that are still unknown."""
    found = {}
    for row in capture.step():
        if row["op"] == "u":
            unknown = {name for name, flag in (row.get("unchanged") or {}).items() if flag}
            found[row["after"]["id"]] = {**row["after"], "unknown": unknown}
    return found


def test_unchanged_large_values_are_looked_up(database: Database) -> None:
    database.execute(TABLE, INSERT)
    with capturing(database, snapshot__mode="no_data", **WISH) as capture:
        capture.step()
        database.execute("UPDATE docs SET title = 'new' WHERE id % 2 = 0")
        bodies = filled(database)
        found = updates(capture)
    assert {id_: row["body"] for id_, row in found.items()} == {n: bodies[n] for n in range(2, 21, 2)}
    assert all(len(row["tags"]) == 300 and not row["unknown"] for row in found.values())  # type: ignore[arg-type]


def test_only_the_columns_named_and_only_rows_that_are_there(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute(TABLE, INSERT)
    wish = {**WISH, "again__reselect__columns__include__list": r"public\.docs:body"}
    with capturing(database, snapshot__mode="no_data", **wish) as capture:
        capture.step()
        database.execute("UPDATE docs SET title = 'new' WHERE id < 3", "DELETE FROM docs WHERE id = 1")
        bodies = filled(database)
        found = updates(capture)
    assert found[2]["body"] == bodies[2]
    assert found[2]["unknown"] == {"tags"}
    assert found[1]["body"] is None
    assert found[1]["unknown"] == {"body", "tags"}
    assert "1 rows are gone by now" in caplog.text


def test_nulls_are_looked_up_unless_configured_otherwise(database: Database) -> None:
    database.execute("CREATE TABLE docs (id int PRIMARY KEY, note text)", "INSERT INTO docs VALUES (1, 'x')")
    for given, expected in (("true", "later"), ("false", None)):
        wish = {**WISH, "again__reselect__null__values": given}
        with capturing(database, snapshot__mode="no_data", **wish) as capture:
            capture.step()
            database.execute("UPDATE docs SET note = NULL", "UPDATE docs SET note = 'later'")
            notes = [row["after"]["note"] for row in capture.step()]
        assert notes == [expected, "later"]
        drop_slot(database)


def test_mode_fail_stops_for_a_row_that_was_deleted(database: Database) -> None:
    database.execute(TABLE, INSERT)
    with capturing(
        database, snapshot__mode="no_data", again__reselect__error__handling__mode="fail", **WISH
    ) as capture:
        capture.step()
        database.execute("UPDATE docs SET title = 'new' WHERE id = 1", "DELETE FROM docs WHERE id = 1")
        with pytest.raises(SourceError, match="gone by now"):
            capture.step()


def test_another_processor_is_refused(database: Database) -> None:
    with (
        pytest.raises(ConfigError, match=r"again\.type"),
        capturing(database, post__processors="again", again__type="com.example.Mine"),
    ):
        pass


def test_columns_may_be_left_out_and_what_is_unknown_left_so(database: Database) -> None:
    database.execute(TABLE, INSERT)
    for given, unknown in (
        ({"again__reselect__columns__exclude__list": r"public\.docs:body"}, {"body"}),
        ({"again__reselect__unavailable__values": "false"}, {"body", "tags"}),
    ):
        with capturing(database, snapshot__mode="no_data", **WISH, **given) as capture:
            capture.step()
            database.execute("UPDATE docs SET title = title || '!' WHERE id = 1")
            assert updates(capture)[1]["unknown"] == unknown
        drop_slot(database)


def test_rows_are_found_by_the_events_key_if_configured(database: Database) -> None:
    """The row that is looked up is the one the key names: by another key than the primary one, another row."""
    database.execute(
        "CREATE TABLE docs (id int PRIMARY KEY, code int NOT NULL, note text, body text)",
        "INSERT INTO docs SELECT 1, 7, 'a', string_agg(md5(k::text), '') FROM generate_series(1, 300) k",
    )
    key = {"message__key__columns": "public.docs:code", "again__reselect__null__values": "false"}
    for given, expected in (("true", "moved"), ("false", "stayed")):
        own = {**WISH, **key, "again__reselect__use__event__key": given}
        with capturing(database, snapshot__mode="no_data", **own) as capture:
            capture.step()
            database.execute(
                "UPDATE docs SET note = note || '!' WHERE id = 1",
                "UPDATE docs SET code = 8, body = 'stayed' WHERE id = 1",
                "INSERT INTO docs VALUES (2, 7, 'b', 'moved')",
            )
            assert next(row["after"]["body"] for row in capture.step()) == expected
        database.execute(
            f"SELECT pg_drop_replication_slot('slot_{database.name}')",
            "DELETE FROM docs WHERE id = 2",
            "UPDATE docs SET code = 7, body = (SELECT string_agg(md5(k::text), '') FROM generate_series(1, 300) k)",
        )
