"""A replica keeps every version of a row, or each change, of any database; both lead to the source's rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.sinks.replica.modes import COLUMNS
from tests.conformance.lakes import TestedLake
from tests.conformance.pipelines import Line, by_key
from tests.conformance.subject import KEY, NOTE, VALUE, Change, Delete, Insert, Row, Subject, Update

pytestmark = pytest.mark.long
MOVES = "a_new_key_is_a_delete_and_a_create"


def row(key: int, value: int = 0, note: str | None = None) -> Row:
    return {KEY: key, VALUE: value, NOTE: note}


def steps(subject: Subject) -> list[list[Change]]:
    """Transactions: changes, a deletion that is made good in a later one, several changes of a row, a new key."""
    made: list[list[Change]] = [
        [Update("items", 1, {VALUE: 1, NOTE: "a"}), Delete("items", 2)],
        [Insert("items", row(2, 5)), Update("items", 3, {VALUE: 1}), Update("items", 3, {VALUE: 2})],
        [Delete("items", 3), Insert("items", row(4))],
    ]
    return made if MOVES in subject.cannot else [*made, [Update("items", 1, {KEY: 10})]]


def versions(subject: Subject) -> dict[int, list[tuple[str, Row]]]:
    """The versions of each row, in order."""
    made = {
        1: [("r", row(1)), ("u", row(1, 1, "a"))],
        2: [("r", row(2)), ("c", row(2, 5))],
        3: [("r", row(3)), ("u", row(3, 1)), ("u", row(3, 2))],
        4: [("c", row(4))],
    }
    return made if MOVES in subject.cannot else {**made, 10: [("c", row(10, 1, "a"))]}


@pytest.mark.parametrize("mode", ["history", "changes"])
def test_versions_and_changes_lead_to_the_rows_of_the_source(
    subject: Subject, folder: Path, lake: TestedLake, spark: SparkSession, mode: str
) -> None:
    place = folder / f"{mode}-{lake.name}"
    with subject.source() as source:
        source.create("items")
        source.commit(*(Insert("items", row(key)) for key in (1, 2, 3)))
        line = Line(subject, source, place, {"replica": {**lake.settings(place), "mode": mode}}, ["items"])
        line.once(spark)
        for step in steps(subject):
            source.commit(*step)
            if subject.connector == "mongodb" or step is steps(subject)[0]:
                line.once(spark)
        line.once(spark)
        line.once(spark)
        rows = by_key(source.rows("items"))
        found = line.stored("items").sort_by("_sequence").to_pylist()
        images = [(each, source.image(_of_the_source(each)) or {}) for each in found]
        if mode == "history":
            (report,) = line.json("reconcile", "--timeout", 1)["tables"]
            assert report["outcome"] in ("equal", "equal in part"), report
    if mode == "history":
        told: dict[int, list[tuple[str, Row]]] = {}
        for each, image in images:
            told.setdefault(image[KEY], []).append((each["_op"], image))
        assert told == versions(subject)
        assert by_key([image for each, image in images if each["valid_to"] is None]) == rows
        starts = [each["valid_from"] for each, _ in images]
        assert starts == sorted(starts)
    else:
        latest = {image[KEY]: image for each, image in images if each["_op"] != "d"}
        gone = {image[KEY] for each, image in images if each["_op"] == "d"}
        last = {image.get(KEY): each["_op"] for each, image in images}
        assert by_key([image for key, image in latest.items() if last[key] != "d"]) == rows
        assert {2, 3} <= gone
    assert len({each["_transaction"] for each, _ in images}) >= len(steps(subject))


def _of_the_source(found: Row) -> Row:
    """A row without the columns that a mode adds."""
    added = {name for columns in COLUMNS.values() for name in columns.values()}
    return {name: value for name, value in found.items() if name not in added}
