"""Plans batches over the smallest connector, a folder of change files: no server, no Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tailrace.capture.capture import Capture
from tailrace.connectors.offset import BEGIN, FOLLOWING, SNAPSHOT, STREAM
from tailrace.errors import OffsetError
from tests.conformance.folder import TOY, FolderSource
from tests.conformance.subject import KEY, NOTE, VALUE, Delete, Insert, Row, Update

Seen = list[tuple[str, int]]


def row(key: int, value: int = 0) -> Row:
    return {KEY: key, VALUE: value, NOTE: None}


@dataclass
class Pipeline:
    """A pipeline; `phases` are those of its offsets so far."""

    source: FolderSource
    properties: dict[str, str]
    phases: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()
        self.offset: dict[str, Any] = self.capture.begin()
        self.phases.append(self.offset["phase"])

    def restart(self) -> None:
        """Plan in another process from here on."""
        from tailrace_folder.package import FolderPackage

        given = {**self.source.properties("p"), "topic.prefix": "t", **self.properties}
        package = FolderPackage()
        self.capture = Capture(package.connector(package.resolve(given)))

    def step(self, limit: int | None = None, until: Any = None) -> Seen:
        """Operations and keys of the next batch, in order."""
        start, self.offset = self.offset, json.loads(json.dumps(self.capture.head(self.offset, limit, until)))
        if self.offset == start:
            return []
        assert self.offset["phase"] in FOLLOWING[start["phase"]], (start, self.offset)
        self.phases.append(self.offset["phase"])
        return self.read(start, self.offset)

    def read(self, start: dict[str, Any], end: dict[str, Any]) -> Seen:
        seen: Seen = []
        for split in self.capture.plan(start, end):
            for chunk in self.capture.read(split):
                for batch in chunk.batches:
                    if batch.table.id.table == "t":
                        seen += [
                            (each["op"], (each["after"] or each["before"] or {KEY: -1})[KEY])
                            for each in batch.rows.to_pylist()
                        ]
        return seen

    def ask(self, kind: str, type_: str = "execute-snapshot") -> None:
        data = {"data-collections": ["box.main.t"], "type": kind}
        self.source.signal(f"{type_}-{kind}-{len(self.phases)}", type_, json.dumps(data))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderSource:
    """A folder with the table `t` of two rows."""
    monkeypatch.syspath_prepend(str(TOY))
    made = FolderSource(tmp_path / "folder")
    made.create("t")
    made.commit(Insert("t", row(1)), Insert("t", row(2)))
    return made


def pipeline(source: FolderSource, **properties: str) -> Pipeline:
    """A name of a property has two underscores for a dot."""
    return Pipeline(source, {name.replace("__", "."): value for name, value in properties.items()})


def signalled(source: FolderSource, **properties: str) -> Pipeline:
    """A pipeline with a signal table whose log is read from here on."""
    made = pipeline(source, snapshot__mode="no_data", signal__data__collection="box.main.signals", **properties)
    made.step()
    made.step()
    return made


def test_a_pipeline_reads_the_tables_and_then_the_log(source: FolderSource) -> None:
    made = pipeline(source)
    assert made.step() == [("r", 1), ("r", 2)]
    source.commit(Insert("t", row(3)))
    source.commit(Update("t", 1, {VALUE: 5}), Delete("t", 2))
    assert made.step() == [("c", 3), ("u", 1), ("d", 2)]
    assert made.phases == [BEGIN, SNAPSHOT, STREAM]


def test_the_log_follows_a_snapshot_of_several_batches_beside_which_the_tables_are_watched(
    source: FolderSource,
) -> None:
    source.create("u")
    made = pipeline(source, snapshot__max__threads="1", table__watch__interval__ms="5000")
    for _ in range(6):
        made.step()
    source.commit(Insert("t", row(3)))
    assert made.step() == [("c", 3)]
    assert made.phases[-1] == STREAM


def test_nothing_is_planned_where_nothing_is_new(source: FolderSource) -> None:
    made = pipeline(source)
    made.step()
    made.step()
    before = made.offset
    assert made.capture.head(before, None) is before
    assert made.capture.plan(before, before) == []


def test_a_batch_is_the_same_when_another_process_plans_it_again(source: FolderSource) -> None:
    made = pipeline(source)
    made.step()
    source.commit(Insert("t", row(3)), Insert("t", row(4)))
    start = made.offset
    seen = made.step()
    source.commit(Insert("t", row(5)))
    made.restart()
    assert made.read(start, made.offset) == seen == [("c", 3), ("c", 4)]
    assert made.step() == [("c", 5)]


def test_a_batch_has_a_transaction_at_least_and_no_more_than_its_limit(source: FolderSource) -> None:
    made = pipeline(source, snapshot__mode="no_data")
    made.step()
    made.step()
    for key in range(10, 14):
        source.commit(Insert("t", row(key)))
    assert [made.step(limit=1) for _ in range(4)] == [[("c", key)] for key in range(10, 14)]


def test_a_batch_ends_at_the_position_that_a_bounded_run_has_set(source: FolderSource) -> None:
    made = pipeline(source, snapshot__mode="no_data")
    made.step()
    source.commit(Insert("t", row(3)))
    until = made.capture.horizon(made.offset)
    source.commit(Insert("t", row(4)))
    assert (made.step(until=until), made.step(until=until), made.step()) == ([("c", 3)], [], [("c", 4)])


@pytest.mark.parametrize(
    ("mode", "first", "phases"),
    [
        ("initial", [("r", 1), ("r", 2)], [BEGIN, SNAPSHOT, STREAM]),
        ("no_data", [], [BEGIN, SNAPSHOT, STREAM]),
        ("initial_only", [("r", 1), ("r", 2)], [BEGIN, SNAPSHOT]),
    ],
)
def test_a_mode_decides_what_is_read_first_and_whether_the_log_follows(
    source: FolderSource, mode: str, first: Seen, phases: list[str]
) -> None:
    made = pipeline(source, snapshot__mode=mode)
    assert made.step() == first
    source.commit(Insert("t", row(3)))
    assert made.step() == ([("c", 3)] if STREAM in phases else [])
    assert made.phases == phases


def test_a_pipeline_reads_the_tables_at_each_start_where_its_mode_says_so(source: FolderSource) -> None:
    made = pipeline(source, snapshot__mode="always")
    assert [made.step(), made.step()] == [[("r", 1), ("r", 2)], []]
    made.restart()
    assert made.step() == [("r", 1), ("r", 2)]
    source.commit(Insert("t", row(3)))
    assert made.step() == [("c", 3)]
    assert made.phases == [BEGIN, SNAPSHOT, STREAM, SNAPSHOT, STREAM]


def test_a_lost_position_is_an_error_or_a_new_snapshot_as_the_mode_says(source: FolderSource) -> None:
    stops, reads = pipeline(source), pipeline(source, snapshot__mode="when_needed")
    for each in (stops, reads):
        each.step()
        each.step()
    source.lose_position("p")
    with pytest.raises(OffsetError, match="was removed"):
        stops.step()
    assert reads.step() == [("r", 1), ("r", 2)]
    source.commit(Insert("t", row(3)))
    assert reads.step() == [("c", 3)]
    assert reads.phases == [BEGIN, SNAPSHOT, STREAM, SNAPSHOT, STREAM]


def test_the_checkpoint_of_another_source_is_refused(source: FolderSource, tmp_path: Path) -> None:
    other = pipeline(FolderSource(tmp_path / "other"))
    with pytest.raises(OffsetError, match="belongs to folder"):
        pipeline(source).capture.head(other.offset, None)


def test_a_chunk_is_read_again_after_a_restart_and_not_otherwise(source: FolderSource) -> None:
    made = signalled(source, incremental__snapshot__chunk__size="1")
    made.ask("incremental")
    while not (seen := made.step()):
        assert made.offset["snapshots"]["queue"], "the chunk must still come"
    assert seen == [("r", 1)]
    made.restart()
    assert made.step() == [("r", 1)], "the rows of the last batch may be lost"
    assert made.step() == [("r", 2)]
    assert [made.step(), made.step()] == [[], []]
    assert made.offset["snapshots"]["queue"] == []


def test_a_change_while_a_chunk_is_read_comes_once_and_as_it_became(source: FolderSource) -> None:
    made = signalled(source)
    made.ask("incremental")
    made.step()
    source.commit(Update("t", 1, {VALUE: 7}), Insert("t", row(3)))
    seen = [event for _ in range(4) for event in made.step()]
    assert {key for op, key in seen if op == "r"} <= {1, 2, 3}
    assert {("u", 1), ("c", 3)} <= set(seen)


def test_a_blocking_snapshot_takes_a_batch_of_its_own(source: FolderSource) -> None:
    made = signalled(source)
    made.ask("blocking")
    seen = [made.step() for _ in range(4)]
    assert [("r", 1), ("r", 2)] in seen
    source.commit(Insert("t", row(3)))
    assert made.step() == [("c", 3)]


def test_a_paused_snapshot_waits_while_the_log_is_read(source: FolderSource) -> None:
    made = signalled(source, incremental__snapshot__chunk__size="1")
    made.ask("incremental")
    made.ask("incremental", "pause-snapshot")
    source.commit(Insert("t", row(3)))
    seen = [event for _ in range(4) for event in made.step()]
    assert ("c", 3) in seen
    assert "r" not in {op for op, _ in seen}
    made.ask("incremental", "resume-snapshot")
    rest = [event for _ in range(6) for event in made.step()]
    assert [key for op, key in rest if op == "r"] == [1, 2, 3]
