"""A replica equals its source, whatever is asked of the running pipeline meanwhile. All tests share the pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.pipeline import continuous
from tailrace.pipeline.continuous import Continuous
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Run
from tailrace.pipeline.targets import Reconcile
from tailrace.pipeline.verified import Verified
from tests.conformance.lakes import TestedLake
from tests.conformance.pipelines import Line, by_key
from tests.conformance.subject import KEY, NOTE, VALUE, Delete, Insert, Row, Subject, Update
from tests.conformance.traffic import traffic

TIMEOUT_S = 200


def row(key: int) -> Row:
    return {KEY: key, VALUE: 0, NOTE: None}


class Kept:
    """A pipeline that keeps a replica."""

    def __init__(self, line: Line, run: Run, lake: TestedLake) -> None:
        self.line, self.run, self.source, self.lake = line, run, line.source, lake

    def until_equal(self, *tables: str) -> None:
        """Wait until the replica of the tables has the rows of the source."""
        try:
            self.line.until(lambda: self.line.equals(*tables), self.run)
        except AssertionError as error:
            error.add_note(f"replica and source differ by {self.line.differences(*tables)}")
            error.add_note(f"the last offset: {self.run.progress().offset}")
            raise

    def until_over(self) -> None:
        """Wait until no snapshot is being read or waits for its turn."""
        state: dict[str, Any] = {}

        def over() -> bool:
            state.update(self.line.json("status"))
            return state["snapshot"] is None

        self.line.until(over, self.run)
        assert state["incomplete"] == []

    def reconciled(self, *arguments: object, code: int = 0) -> dict[str, dict[str, Any]]:
        """The reports of the tables that `reconcile` compares."""
        found = self.line.json("reconcile", "--timeout", TIMEOUT_S, *arguments, code=code)
        return {report["table"]: report for report in found["tables"]}


@pytest.fixture(scope="module")
def kept(subject: Subject, folder: Path, lake: TestedLake, spark: SparkSession) -> Iterator[Kept]:
    """A pipeline that keeps some tables; two more are there."""
    place = folder / f"kept-{lake.name}"
    with subject.source() as source:
        source.create("items", "compared", "added", "read_whole", "removed", "keyed")
        source.create("bag", has_key=False)
        for table in ("items", "compared", "added", "read_whole", "removed", "bag"):
            source.commit(*(Insert(table, row(key)) for key in range(1, 31)))
        source.commit(*(Insert("keyed", row(key) | {VALUE: key}) for key in range(1, 6)))
        properties = {"incremental.snapshot.chunk.size": "4", "signal.data.collection": str(source.id(source.signals))}
        line = Line(
            subject,
            source,
            place,
            {"replica": {**lake.settings(place), "read_again": {"at_most_every": "0s"}}},
            tables=["items", "compared", "bag", "removed", "keyed", source.signals],
            properties=properties,
        )
        with line.running(spark) as run:
            yield Kept(line, run, lake)


def test_a_replica_has_the_rows_of_its_source(kept: Kept) -> None:
    kept.until_equal("items", "compared", "bag")
    source = kept.source
    source.commit(Insert("items", row(40)), Update("items", 1, {NOTE: "new"}), Delete("items", 2))
    source.commit(Update("items", 3, {KEY: 300}), Insert("bag", row(50)), Insert("bag", row(50)))
    source.commit(Delete("bag", 1), Update("bag", 50, {VALUE: 5}), Delete("items", 40), Insert("items", row(40)))
    kept.until_equal("items", "bag")
    assert {KEY: 300, VALUE: 0, NOTE: None} in kept.line.replica("items")


@pytest.mark.long
def test_a_table_is_added_under_load(kept: Kept) -> None:
    name = str(kept.source.id("added"))
    with traffic(kept.source, "added", "items"):
        change = kept.line.json("add", name)
        assert change["tables"] == [name]
        kept.line.until(lambda: len(kept.line.replica("added")) > 30, kept.run)
    kept.until_equal("added", "items")
    kept.until_over()


def test_a_table_is_added_by_a_blocking_snapshot(kept: Kept) -> None:
    with traffic(kept.source, "read_whole"):
        kept.line.command("add", str(kept.source.id("read_whole")), "--snapshot", "blocking")
        kept.line.until(lambda: len(kept.line.replica("read_whole")) > 30, kept.run)
    kept.until_equal("read_whole")


def test_a_table_is_removed_under_load(kept: Kept) -> None:
    kept.until_equal("removed")
    with traffic(kept.source, "items"):
        edit = kept.line.json("remove", str(kept.source.id("removed")))["edit"]
        assert edit["written"]
        kept.line.until(lambda: _is_captured(kept, "removed") is False, kept.run)
        kept.source.commit(Delete("removed", 1))
    kept.until_equal("items")
    assert len(kept.line.replica("removed")) == 30, "the target keeps what it has"


def _is_captured(kept: Kept, table: str) -> bool | None:
    """Whether the running pipeline captures a table that a signal has changed, None if it has taken no signal yet."""
    tables = (kept.run.progress().offset.get("snapshots") or {}).get("tables") or {}
    written = kept.source.id(table).written
    named = {str(kept.source.id(table)), written} & set(tables)
    return bool(tables[named.pop()]) if named else None


def test_a_snapshot_under_load_leaves_a_replica_equal(kept: Kept) -> None:
    name = str(kept.source.id("items"))
    for kind in ("incremental", "blocking"):
        with traffic(kept.source, "items"):
            kept.line.command("signal", "execute-snapshot", "-t", name, "--type", kind)
            kept.until_over()
        kept.until_equal("items")


def test_reconcile_finds_and_repairs_wrong_rows(kept: Kept) -> None:
    name = str(kept.source.id("compared"))
    assert kept.reconciled("-t", name)[name]["outcome"] == "equal"
    kept.lake.delete(kept.line.folder, kept.source.id("compared").unique, (7, 8))
    with traffic(kept.source, "items"):
        report = kept.reconciled("-t", name, code=1)[name]
    assert (report["outcome"], report["missing"]) == ("different", 2)
    mended = kept.reconciled("-t", name, "--repair")[name]
    assert (mended["outcome"], mended["repaired"]) == ("equal", 2)
    kept.until_equal("compared")
    assert kept.line.replica("compared") == by_key([row(key) for key in range(1, 31)])
    bag = str(kept.source.id("bag"))
    kept.until_equal("bag")
    assert kept.reconciled("-t", bag)[bag]["outcome"] == "equal", "a table without a key is compared as well"


def test_a_key_is_made_over_another_column(kept: Kept) -> None:
    for note in "one", "two", "three":
        kept.source.commit(Update("keyed", 2, {NOTE: note}))
        kept.until_equal("keyed")
    kept.source.move_key("keyed")
    kept.source.commit(Insert("keyed", {KEY: 1, VALUE: 100, NOTE: "another row of this id"}))
    kept.source.commit(Insert("keyed", {KEY: 3, VALUE: 200, NOTE: None}), Update("keyed", 4, {VALUE: 300}))
    kept.until_equal("keyed")


def test_a_truncate_empties_a_replica(kept: Kept) -> None:
    kept.source.truncate("bag")
    kept.source.commit(Insert("bag", row(1)))
    kept.until_equal("bag")


@pytest.mark.parametrize("table", ["items", "bag"])
def test_a_replica_that_was_deleted_is_read_again(kept: Kept, table: str) -> None:
    kept.until_equal(table)
    kept.lake.drop(kept.line.folder, kept.source.id(table).unique)
    # The next change shows it; rows that do not change later come by the reading alone.
    kept.source.commit(Insert(table, row(70)))
    kept.until_equal(table)
    states: list[tuple[str, str | None]] = []

    def is_complete() -> bool:
        listed = kept.line.json("status")["replica"]
        states[:] = [(each["state"], each["why"]) for each in listed if each["table"] == str(kept.source.id(table))]
        return states == [("complete", None)]

    kept.line.until(is_complete, kept.run)


class File:
    """A file in memory."""

    def __init__(self) -> None:
        self.text: str | None = None

    def read(self) -> str | None:
        return self.text

    def write(self, content: str) -> None:
        self.text = content


@pytest.mark.long
@pytest.mark.timeout(900)
def test_continuous_reconciliation_compares_and_repairs_tables_in_parts(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuous, "PART_ROWS", 7)
    monkeypatch.setattr(continuous, "_PASS_SECONDS", 0.0)
    file, name = File(), kept.source.id("compared").unique
    kept.until_over()

    def watching(*, repair: bool) -> Continuous:
        settings = Reconcile(continuous=True, repair=repair)
        return Continuous(load(kept.line.file).model_copy(update={"reconcile": settings}), file)

    def until(watch: Continuous, is_so: Callable[[Verified], object], *names: str) -> None:
        begun, steps = time.monotonic(), list[float]()
        while not all(is_so(watch.tables.get(name, Verified())) for name in names):
            assert time.monotonic() < begun + 2 * TIMEOUT_S, (steps, watch.tables)
            watch.step()
            steps.append(round(time.monotonic() - begun, 1))

    watch = watching(repair=False)
    with traffic(kept.source, "items"):
        until(
            watch,
            lambda each: each.up_to is not None,
            *(kept.source.id(each).unique for each in ("items", "bag")),
            name,
        )
    kept.lake.delete(kept.line.folder, name, (9, 10))
    until(watch, lambda each: "missing" in each.differs, name)
    # It goes on from what the other has stored.
    until(watching(repair=True), lambda each: each.up_to is not None and not each.differs, name)
    kept.until_equal("compared", "items")
