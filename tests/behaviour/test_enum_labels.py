"""The labels in the schemas of enums are those of when a log range was planned, at every read of it."""

from __future__ import annotations

from typing import Any

from tests.behaviour.capture import Capture, capturing, rows
from tests.conftest import Database

DDL = ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TABLE t (id int PRIMARY KEY, m mood, ms mood[])")


def shown(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """A value and the labels that its schema and that of the array allow, of each row."""
    said = []
    for row in found:
        one, many = (next(c.schema for c in row["schema"].columns if c.name == name) for name in ("m", "ms"))
        assert many.items is not None
        said.append((row["after"]["m"], dict(one.parameters)["allowed"], dict(many.items.parameters)["allowed"]))
    return said


def read_again(capture: Capture, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """A range as a new process plans and reads it."""
    capture.close()
    other = Capture(capture.database, capture.config.given)
    try:
        return rows(chunk for split in other.reader.plan(start, end) for chunk in other.reader.read(split))
    finally:
        other.close()


def test_a_range_has_the_labels_of_its_planning_whenever_it_is_read(database: Database) -> None:
    database.execute(*DDL, "INSERT INTO t VALUES (1, 'ok', '{ok}')")
    with capturing(database) as capture:
        assert shown(capture.step()) == [("ok", "sad,ok", "sad,ok")]
        database.execute("INSERT INTO t VALUES (2, 'sad', '{ok}')")
        assert shown(capture.step()) == [("sad", "sad,ok", "sad,ok")]
        # The server describes no table again for a label.
        database.execute("ALTER TYPE mood ADD VALUE 'fine' BEFORE 'ok'", "INSERT INTO t VALUES (3, 'fine', '{fine}')")
        labels = "sad,fine,ok"
        start, first = capture.offset, capture.step()
        assert shown(first) == [("fine", labels, labels)]
        database.execute("ALTER TYPE mood ADD VALUE 'great'")
    assert shown(read_again(capture, start, capture.offset)) == shown(first)


def labels_of(capture: Capture) -> set[tuple[str, ...]]:
    """What the offset stores."""
    return {tuple(each) for each in capture.offset["log"]["labels"].values()}


def test_an_offset_stores_the_labels_that_its_tables_may_have(database: Database) -> None:
    database.execute(
        "CREATE TYPE plain AS ENUM ('p')",
        "CREATE TYPE listed AS ENUM ('l')",
        "CREATE TYPE deep AS ENUM ('d')",
        "CREATE TYPE other AS ENUM ('o')",
        "CREATE TYPE unused AS ENUM ('u')",
        "CREATE DOMAIN over AS deep",
        "CREATE DOMAIN far AS over[]",
        "CREATE TABLE t (id int PRIMARY KEY, a plain, b listed[], c far)",
        "CREATE TABLE elsewhere (id int PRIMARY KEY, o other, p plain)",
    )
    with capturing(database, table__include__list="public.t") as capture:
        capture.step()
        insert = "INSERT INTO t (id, a) VALUES ({}, 'p')"
        seen = []
        for key, ddl in enumerate(("SELECT 1", "SELECT 2", "ALTER TABLE t DROP COLUMN a", "SELECT 3")):
            database.execute(insert.format(key) if key < 3 else "DELETE FROM t", ddl)
            capture.step()
            seen.append(labels_of(capture))
        # What this process has planned stays; another begins with all.
        known = {("p",), ("l",), ("d",), ("u",)}
        assert seen == [known | {("o",)}, known, known, known]


def test_an_enum_that_came_and_went_is_text_whenever_it_is_read(database: Database) -> None:
    """Only a table that is not captured has it when the range is planned."""
    database.execute(*DDL, "CREATE TYPE short AS ENUM ('s')", "CREATE TABLE elsewhere (s short)")
    with capturing(database, table__include__list="public.t") as capture:
        capture.step()
        database.execute("INSERT INTO t VALUES (1, 'ok', '{ok}')")
        capture.step()
        start = capture.offset
        database.execute("ALTER TABLE t ADD s short", "INSERT INTO t VALUES (2, 'ok', '{}', 's')")
        database.execute("ALTER TABLE t DROP COLUMN s")
        first = capture.step()
        database.execute("ALTER TYPE short ADD VALUE 'later'")
    again = read_again(capture, start, capture.offset)
    for (row,) in (first, again):
        column = next(each for each in row["schema"].columns if each.name == "s")
        assert (row["after"]["s"], column.schema.name, column.schema.parameters) == ("s", None, ())
