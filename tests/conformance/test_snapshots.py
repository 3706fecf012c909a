"""When the tables are read, and what is read after it: the snapshot modes, restarts, the position that is lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.connectors.offset import SNAPSHOT
from tailrace.errors import OffsetError
from tests.conformance.pipelines import Line, by_key
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Row, Source, Subject, Update

BASED = {
    "snapshot.mode": "configuration_based",
    "snapshot.mode.configuration.based.snapshot.data": "true",
    "snapshot.mode.configuration.based.start.stream": "true",
}
# Operation and key of each event of a first run, and of a second one after an insert of row 3.
READ, CREATED = [("r", 1), ("r", 2)], [("c", 3)]
READ_AGAIN = [*READ, ("r", 3)]
MODES: dict[str, tuple[dict[str, str], list[tuple[str, int]], list[tuple[str, int]]]] = {
    "initial": ({"snapshot.mode": "initial"}, READ, CREATED),
    "when_needed": ({"snapshot.mode": "when_needed"}, READ, CREATED),
    "no_data": ({"snapshot.mode": "no_data"}, [], CREATED),
    "initial_only": ({"snapshot.mode": "initial_only"}, READ, []),
    "always": ({"snapshot.mode": "always"}, READ, READ_AGAIN),
    "configuration_based": (BASED, READ, READ_AGAIN),
    "custom": ({"snapshot.mode": "custom", "snapshot.mode.custom.name": "every_start"}, READ, READ_AGAIN),
}
# The modes whose position is lost in the end.
LOST = ("initial", "when_needed")


@dataclass(frozen=True)
class Runs:
    """What each mode gave: after the first run, after the second, and what the second added."""

    first: dict[str, list[tuple[str, int]]]
    second: dict[str, list[tuple[str, int]]]
    lines: dict[str, Line]


def row(key: int) -> Row:
    return {KEY: key, VALUE: 0, NOTE: None}


@pytest.fixture(scope="module")
def runs(subject: Subject, source: Source, folder: Path, spark: SparkSession, request: pytest.FixtureRequest) -> Runs:
    """Two runs of a pipeline of each mode that a selected test needs, two modes at a time."""
    selected = [call.params for item in request.session.items if (call := getattr(item, "callspec", None)) is not None]
    wanted = {given["mode"] for given in selected if "mode" in given and given.get("subject") is subject}
    source.create("items")
    source.commit(Insert("items", row(1)), Insert("items", row(2)))
    lines = {
        mode: Line(subject, source, folder / mode, tables=["items"], properties=properties)
        for mode, (properties, _, _) in MODES.items()
        if mode in {*wanted, *LOST}
    }
    first = _run(lines, spark)
    source.commit(Insert("items", row(3)))
    both = _run(lines, spark)
    return Runs(first, {mode: both[mode][len(first[mode]) :] for mode in lines}, lines)


def _run(lines: dict[str, Line], spark: SparkSession) -> dict[str, list[tuple[str, int]]]:
    waiting = [*lines.values()]
    # Two at a time: each starts Python processes, and Spark waits 10 seconds for one.
    while waiting:
        for started in [line.starts(spark) for line in waiting[:2]]:
            started.to_end()
        waiting = waiting[2:]
    return {mode: line.keys("items") for mode, line in lines.items()}


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_reads_the_tables_at_its_first_start(runs: Runs, mode: str) -> None:
    assert sorted(runs.first[mode]) == MODES[mode][1]


@pytest.mark.parametrize("mode", MODES)
def test_a_restart_resumes_as_its_mode_says(runs: Runs, mode: str) -> None:
    assert sorted(runs.second[mode]) == MODES[mode][2]


def test_a_snapshot_of_several_batches_resumes_where_it_was(
    subject: Subject, source: Source, folder: Path, spark: SparkSession
) -> None:
    tables = ["one", "two", "three", "four"]
    source.create(*tables)
    source.commit(*(Insert(table, row(key)) for table in tables for key in (1, 2)))
    # The tables are watched, as for a replica.
    limit = {"snapshot.max.threads": "1", "table.watch.interval.ms": "1000"}
    # Batches far apart: the pipeline is stopped between two of them.
    line = Line(subject, source, folder / "batches", tables=tables, properties=limit, trigger="5s")
    with line.running(spark, SNAPSHOT) as run:
        line.until(lambda: sum(1 for table in tables if line.keys(table)) > 1, run)
    before = [len(line.keys(table)) for table in tables]
    assert not all(before), "stopped before the last table"
    source.commit(*(Update(table, 1, {VALUE: 7}) for table in tables), *(Insert(table, row(3)) for table in tables))
    line.once(spark)
    for table in tables:
        events = line.changes(table)
        found = {(after or {})[KEY]: after for _, _, after in events}
        assert by_key([each for each in found.values() if each]) == by_key(source.rows(table))
    # The batch that was written last may be read again, those before it are not.
    again = [len([op for op, _ in line.keys(table) if op == "r"]) for table in tables]
    assert min(again[place] for place, read in enumerate(before) if read) <= 3


def test_a_run_without_changes_has_no_events(runs: Runs, spark: SparkSession) -> None:
    line = runs.lines["initial"]
    before = line.records()
    line.once(spark)
    assert line.records() == before


@pytest.fixture(scope="module")
def lost(runs: Runs, source: Source) -> Runs:
    """The same, and what they need to resume is gone."""
    for mode in LOST:
        source.lose_position(runs.lines[mode].name)
    source.commit(Update("items", 1, {NOTE: "in the gap"}))
    return runs


def test_check_names_a_lost_position(lost: Runs) -> None:
    said = lost.lines["initial"].command("check", code=1)
    assert "problem" in said
    assert "Remedy" in said


def test_a_lost_position_is_an_error_with_its_remedy(lost: Runs, spark: SparkSession) -> None:
    error = lost.lines["initial"].fails(spark)
    assert isinstance(error, OffsetError)
    assert ": " in error.what, "what came through Spark has the place before the message"
    assert error.remedy


def test_when_needed_reads_the_tables_again_if_the_position_is_lost(lost: Runs, spark: SparkSession) -> None:
    line = lost.lines["when_needed"]
    before = len(line.keys("items"))
    line.once(spark)
    added = line.changes("items")[before:]
    assert sorted((op, (after or {})[KEY], (after or {})[NOTE]) for op, _, after in added) == [
        ("r", 1, "in the gap"),
        ("r", 2, None),
        ("r", 3, None),
    ]
