"""The reader for a Spark that says neither a start nor a limit: it plans from what Spark was seen to have reached."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.types import StructType

from tailrace.capture.capture import Capture
from tailrace.config import Config
from tailrace.config.options.spark import MAX_BYTES_PER_TRIGGER
from tailrace.spark.latest_file import LatestFile
from tailrace.spark.older_reader import OlderReader, Pace
from tailrace.spark.source import LATEST_OPTION, PACE_OPTION, properties

LIMIT = 100
Offset = dict[str, Any]


class Log:
    """A capture whose log has so many bytes; it notes from where and how far it is planned."""

    def __init__(self, end: int, reading: object = None) -> None:
        self.end = end
        self.asked: list[tuple[int | None, int | None, int | None]] = []
        self.config = Config({MAX_BYTES_PER_TRIGGER.name: LIMIT})
        self.reading = reading

    def begin(self) -> Offset:
        return {"phase": "begin", "position": None, "pipeline": "new"}

    def horizon(self, start: Offset) -> int:
        return self.end

    def head(self, start: Offset, limit: int | None, until: int | None) -> Offset:
        self.asked.append((start["position"], limit, until))
        if start["phase"] == "begin":
            first = {"phase": "snapshot", "position": 0, "pipeline": start["pipeline"]}
            return first if self.reading is None else {**first, "reading": self.reading}
        end = self.end if until is None else min(self.end, until)
        position = end if limit is None else min(end, start["position"] + limit)
        return start if position == start["position"] else {**start, "phase": "stream", "position": position}

    def has_snapshot(self, offset: Offset) -> bool:
        return False

    def latest(self) -> Offset:
        return {"position": self.end, "complete_us": 5 * self.end}

    def plan(self, start: Offset, end: Offset) -> list[object]:
        return []


def at(position: int) -> Offset:
    return {"phase": "stream", "position": position, "pipeline": "known"}


def reader(log: Log, pace: Pace | None = None, pause_seconds: float = 0.0) -> OlderReader:
    return OlderReader(cast(Capture, log), StructType(), "[]", "run", pause_seconds, pace)


def batch(reader: OlderReader, start: Offset) -> Offset:
    """A micro-batch as Spark plans it, if the offset is another one than before."""
    end = reader.latestOffset()
    if end != start:
        reader.partitions(start, end)
        reader.commit(end)
    return end


def test_a_query_that_has_read_nothing_begins_with_the_snapshot() -> None:
    log = Log(500)
    planner = reader(log, "endless")
    first = planner.latestOffset()
    # Spark asks for the initial offset only now, and another one is as good: the end names the pipeline.
    planner.partitions({**log.begin(), "pipeline": "another"}, first)
    assert (first["phase"], first["pipeline"]) == ("snapshot", "new")
    assert planner.latestOffset()["position"] == LIMIT


def test_a_query_that_resumes_continues_where_spark_says() -> None:
    log = Log(1000)
    planner = reader(log, "endless")
    planner.partitions(at(700), at(700))
    assert planner.latestOffset()["position"] == 700 + LIMIT
    assert log.asked == [(700, LIMIT, None)]


def test_a_micro_batch_that_was_not_committed_comes_first() -> None:
    log = Log(1000)
    planner = reader(log, "endless")
    planner.partitions(at(700), at(700))
    planner.partitions(at(650), at(700))
    planner.commit(at(700))
    assert batch(planner, at(700))["position"] == 800
    assert batch(planner, at(800))["position"] == 900


def test_the_only_micro_batch_of_a_query_reads_the_whole_backlog() -> None:
    """Nobody says whether it is the only one; a second question is the proof that it is not."""
    log = Log(1000)
    planner = reader(log)
    planner.partitions(at(300), at(300))
    assert batch(planner, at(300))["position"] == 1000
    log.end = 5000
    assert batch(planner, at(1000))["position"] == 1000 + LIMIT


def test_a_bounded_query_ends_where_the_log_ended_at_first() -> None:
    log = Log(550)
    planner = reader(log, "bounded", pause_seconds=1000)
    planner.partitions(at(300), at(300))
    here, seen = at(300), []
    for _ in range(6):
        here = batch(planner, here)
        seen.append(here["position"])
        log.end += 1000
    assert seen == [400, 500, 550, 550, 550, 550]


def test_nothing_new_is_the_same_offset_again() -> None:
    """Spark compares the texts: another one would be an empty micro-batch, again and again."""
    planner = reader(Log(700), "endless")
    planner.partitions(at(700), at(700))
    assert [planner.latestOffset() for _ in range(3)] == [at(700)] * 3


def test_a_snapshot_of_several_micro_batches_warns_where_the_first_may_be_the_only_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        reader(Log(1, reading={}), "bounded").latestOffset()
        reader(Log(1), None).latestOffset()
        assert not caplog.records
        reader(Log(1, reading={}), None).latestOffset()
    assert "AvailableNow" in caplog.records[0].getMessage()


def test_an_end_that_was_planned_without_the_checkpoint_is_refused() -> None:
    """A setting of Spark's asks for the end of a run before it reads the checkpoint."""
    from tailrace.errors import OffsetError

    capture = object.__new__(Capture)
    blind = {**at(0), "phase": "snapshot", "pipeline": "new"}
    with pytest.raises(OffsetError, match="before it read the checkpoint") as caught:
        capture.plan(at(700), blind)
    assert "triggerAvailableNowWrapper" in str(caught.value.remedy)


def test_the_reader_travels_to_tasks_without_what_it_has_seen() -> None:
    planner = reader(Log(1000), "endless")
    planner.partitions(at(700), at(700))
    assert pickle.loads(pickle.dumps(planner)).run_id == "run"


def test_the_pace_is_no_property_of_the_connector() -> None:
    assert properties({PACE_OPTION: "bounded", "topic.prefix": "t"}) == {"topic.prefix": "t"}


def test_what_the_source_says_of_the_end_of_its_log_is_left_in_a_file(tmp_path: Path) -> None:
    """Spark does not ask for it."""
    log = Log(550)
    file = LatestFile(tmp_path / "latest.json")
    planner = OlderReader(cast(Capture, log), StructType(), "[]", "run", 0.0, "endless", str(file.path))
    planner.partitions(at(500), at(500))
    assert batch(planner, at(500)) == at(550)
    assert file.read(at(550)) == {"position": 550, "complete_us": 2750}
    assert properties({LATEST_OPTION: str(file.path), "topic.prefix": "t"}) == {"topic.prefix": "t"}
