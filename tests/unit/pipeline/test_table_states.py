"""The states of a pipeline's replica: what micro-batches report, what is asked for, and what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.errors import ConfigError
from tailrace.model.change import SnapshotRead
from tailrace.pipeline.table_states import Reaction, TableStates
from tailrace.sinks.replica.notes import of_reason
from tailrace.sinks.replica.reports import TableReport, summed
from tailrace.sinks.replica.states import ASIDE, COMPLETE, GONE, INCOMPLETE, READING, SeenVersion


class File:
    """A file in memory."""

    def __init__(self) -> None:
        self.text: str | None = None

    def read(self) -> str | None:
        return self.text

    def write(self, content: str) -> None:
        self.text = content


class Pipeline:
    """The states of a pipeline whose offsets and clock the test sets."""

    def __init__(self, mode: str = "read_again", pause: float = 60.0) -> None:
        self.file, self.now = File(), 1000.0
        self.offset: dict[str, Any] = {"snapshots": None}
        self.waiting: set[str] = set()
        self.notices: list[str] = []
        self.mode, self.pause = mode, pause
        self.asked: list[tuple[str, str]] = []
        self.states = self.started()

    def started(self) -> TableStates:
        return TableStates(
            file=self.file,
            offset=lambda _: self.offset,
            ask=self.ask,
            is_waiting=lambda request: request in self.waiting,
            reaction=Reaction(self.mode, self.pause),
            notify=lambda notice: self.notices.append(notice.type),
            clock=lambda: self.now,
        )

    def ask(self, table: str, request: str) -> None:
        self.asked.append((table, request))
        self.waiting.add(request)

    def written(self, *reports: TableReport) -> None:
        self.now += 1
        self.states.written(0, reports)

    def state(self, table: str = "public.t") -> str:
        return self.states.tables[table].state

    def queue(self, *requests: str) -> None:
        """The offset of the next batches has these requests, and nothing waits as a file."""
        self.waiting.clear()
        queue = [{"signal": request, "kind": "incremental", "table": "public.t"} for request in requests]
        keys = {"handled": [], "queue": queue, "last": None, "maximum": None, "rows": 0, "paused": False, "undo": None}
        self.offset = {"phase": "stream", "snapshots": keys}


def rows(table: str = "public.t", **more: Any) -> TableReport:
    return TableReport(table, upserted=1, version=7, table_id="a", **more)


def test_an_incomplete_table_is_asked_for_once_read_and_complete() -> None:
    pipeline = Pipeline()
    pipeline.written(rows())
    assert pipeline.state() == COMPLETE
    pipeline.written(rows(lacking="it was renamed"))
    assert (pipeline.state(), len(pipeline.asked)) == (INCOMPLETE, 1)
    request = pipeline.asked[0][1]
    pipeline.written(rows())  # the signal's file is not read yet
    pipeline.queue(request)
    pipeline.written(rows(begun=request))
    assert (pipeline.state(), len(pipeline.asked)) == (READING, 1)
    pipeline.queue()
    pipeline.written(TableReport("public.t", version=9, table_id="a", ended=request))
    assert (pipeline.state(), pipeline.notices) == (COMPLETE, ["INCOMPLETE", "COMPLETE"])
    assert pipeline.started().tables == pipeline.states.tables
    assert pipeline.states.known.seen == {"public.t": SeenVersion(9, "a")}


def test_a_reading_that_was_stopped_is_asked_for_again_after_the_pause() -> None:
    pipeline = Pipeline(pause=100)
    pipeline.written(rows(lacking="a"))
    pipeline.queue(pipeline.asked[0][1])
    pipeline.written(rows(begun=pipeline.asked[0][1]))
    pipeline.queue()
    pipeline.offset["snapshots"]["incomplete"] = [
        {"table": "public.t", "why": "no right", "since_ms": 1, "of_keys": False}
    ]
    pipeline.written()
    state = pipeline.states.tables["public.t"]
    assert (state.state, state.why, len(pipeline.asked)) == (INCOMPLETE, ("a", "no right"), 1)
    pipeline.now += 99
    pipeline.states.look()
    assert len(pipeline.asked) == 2
    pipeline.queue()
    pipeline.written()
    pipeline.now += 150  # the pauses grow
    pipeline.states.look()
    assert len(pipeline.asked) == 2
    pipeline.now += 60
    pipeline.states.look()
    assert len(pipeline.asked) == 3


def test_a_restart_knows_what_was_asked_for() -> None:
    pipeline = Pipeline()
    pipeline.written(rows(lacking="a"))
    again = pipeline.started()
    again.look()
    assert len(pipeline.asked) == 1
    assert again.tables["public.t"].request == pipeline.asked[0][1]


def test_a_reading_whose_last_batch_is_repeated_goes_on() -> None:
    pipeline = Pipeline()
    pipeline.written(rows(lacking="a"))
    request = pipeline.asked[0][1]
    pipeline.queue()
    undo = {"queue": [{"signal": request, "kind": "incremental", "table": "public.t"}], "last": None, "maximum": None}
    pipeline.offset["snapshots"]["undo"] = {**undo, "rows": 0, "key": None}
    pipeline.written(rows(begun=request))
    assert (pipeline.state(), len(pipeline.asked)) == (READING, 1)


def test_a_reading_whose_rows_are_lost_in_its_last_batch_is_asked_for_again() -> None:
    pipeline = Pipeline()
    pipeline.written(rows(lacking="a"))
    request = pipeline.asked[0][1]
    pipeline.queue(request)
    pipeline.written(rows(begun=request))
    pipeline.queue()
    undo = {"queue": [{"signal": request, "kind": "incremental", "table": "public.t"}], "last": None, "maximum": None}
    pipeline.offset["snapshots"]["undo"] = {**undo, "rows": 0, "key": None}
    pipeline.now += 1000
    pipeline.written(TableReport("public.t", lacking="its copy was removed", stopped="another"))
    assert (pipeline.state(), len(pipeline.asked)) == (READING, 1)
    pipeline.written(TableReport("public.t", lacking="its copy was removed", stopped=request))
    state = pipeline.states.tables["public.t"]
    assert (state.state, state.why, state.again) == (INCOMPLETE, ("a", "its copy was removed"), ())
    assert state.request == pipeline.asked[1][1]


@pytest.mark.parametrize(("mode", "asked"), [("tell", 0), ("set_aside", 0), ("read_again", 1)])
def test_a_table_that_is_set_aside_is_read_again_where_that_cures_it(mode: str, asked: int) -> None:
    pipeline = Pipeline(mode)
    pipeline.written(TableReport("public.t", aside="a type\n  Remedy: none", is_cured=True))
    pipeline.written(TableReport("public.u", aside="a date"))
    assert (pipeline.state(), pipeline.state("public.u"), len(pipeline.asked)) == (ASIDE, ASIDE, asked)
    assert pipeline.states.tables["public.t"].why == ("a type",)


def test_an_incomplete_table_is_put_aside_where_that_is_chosen() -> None:
    pipeline = Pipeline("set_aside")
    pipeline.written(rows(lacking="a"), rows("public.u"))
    assert pipeline.states.known.put_aside == {"public.t": "a"}
    assert Pipeline("tell").states.known.put_aside == {}


def test_renames_carry_what_a_table_lacks() -> None:
    pipeline = Pipeline("tell")
    pipeline.written(rows(lacking="a"))
    pipeline.written(TableReport("public.u", renamed_from="public.t"), TableReport("public.t", is_gone=True))
    assert (pipeline.state(), pipeline.state("public.u")) == (GONE, INCOMPLETE)
    assert pipeline.states.tables["public.u"].why == ("it was public.t, which was incomplete: a",)


def test_tables_that_are_not_captured_any_more_are_gone() -> None:
    pipeline = Pipeline()
    pipeline.written(rows(), rows("public.u"))
    pipeline.states.captured(["public.u"])
    assert (pipeline.state(), pipeline.state("public.u")) == (GONE, COMPLETE)
    assert pipeline.states.known.gone == {"public.t"}


def test_a_first_snapshot_of_several_batches_ends_when_no_row_is_left() -> None:
    pipeline = Pipeline()
    pipeline.offset = {"phase": "snapshot", "reading": {"place": {"left": ["public.t"]}}}
    pipeline.written(rows(snapshot="s"), rows("public.u", snapshot="s"))
    assert (pipeline.state(), pipeline.state("public.u")) == (READING, COMPLETE)
    assert not pipeline.states.tables["public.t"].is_lacking
    pipeline.offset = {"phase": "stream"}
    pipeline.written()
    assert pipeline.state() == COMPLETE


def test_a_first_snapshot_without_some_of_its_rows_leaves_the_table_incomplete() -> None:
    """In whichever order the reports of its parts come, and in whichever micro-batch."""
    left_out = of_reason("public.t", "row 3 was left out", SnapshotRead("1", "7"))
    for reports in ([rows(snapshot="7"), left_out], [left_out, rows(snapshot="7")]):
        together, apart = Pipeline(), Pipeline()
        together.offset = apart.offset = {"snapshots": None, "reading": {"place": {"left": ["public.t"]}}}
        together.written(*summed(reports).values())
        for report in reports:
            apart.written(report)
        for pipeline in (together, apart):
            pipeline.offset = {"snapshots": None}
            pipeline.written()
            assert pipeline.state() == INCOMPLETE
            assert pipeline.states.tables["public.t"].why == ("row 3 was left out",)


def test_a_complete_table_whose_rows_a_snapshot_replaces_is_being_read() -> None:
    pipeline = Pipeline()
    pipeline.written(rows())
    assert pipeline.state() == COMPLETE
    pipeline.offset = {"phase": "snapshot", "reading": {"place": {"left": ["public.t"]}}}
    pipeline.written(rows(snapshot="s"))
    assert (pipeline.state(), pipeline.states.tables["public.t"].is_replaced) == (READING, True)
    pipeline.offset = {"phase": "stream"}
    pipeline.written()
    assert pipeline.state() == COMPLETE


def test_a_damaged_file_is_an_error_with_its_remedy() -> None:
    pipeline = Pipeline()
    pipeline.file.text = '{"version": 1'
    with pytest.raises(ConfigError, match=r"damaged.*\n.*delete it, and run `tailrace reconcile`"):
        pipeline.started()


def test_rows_that_are_complete_under_another_name_complete_it() -> None:
    pipeline = Pipeline(mode="tell")
    pipeline.written(TableReport("public.a", 1, version=0, is_there=True))
    pipeline.written(TableReport("public.t", lacking="replaced"))
    pipeline.written(TableReport("public.t", renamed_from="public.a"), TableReport("public.a", is_gone=True))
    assert (pipeline.state(), pipeline.state("public.a")) == (COMPLETE, GONE)


def test_rows_of_a_table_that_is_gone_already_are_as_incomplete_under_another_name() -> None:
    pipeline = Pipeline(mode="tell")
    pipeline.written(TableReport("public.a", lacking="replaced"))
    pipeline.states.captured([])
    pipeline.written(TableReport("public.t", renamed_from="public.a"), TableReport("public.a", is_gone=True))
    assert pipeline.state() == INCOMPLETE
    assert "it was public.a, which was incomplete: replaced" in pipeline.states.tables["public.t"].why


def test_a_table_that_nobody_has_met_is_not_gone_and_one_that_is_back_is_there() -> None:
    pipeline = Pipeline(mode="tell")
    pipeline.written(TableReport("public.view", is_gone=True))
    assert "public.view" not in pipeline.states.tables
    pipeline.written(TableReport("public.t", 1, version=0, is_there=True))
    pipeline.written(TableReport("public.t", is_gone=True))
    pipeline.written(TableReport("public.t", is_there=True))
    assert pipeline.state() == COMPLETE


def test_tables_that_a_killed_run_has_written_may_be_gone() -> None:
    pipeline = Pipeline(mode="tell")
    pipeline.written(TableReport("public.t", 1, version=0, is_there=True))
    pipeline.states.captured(["public.t"], ["public.t", "public.left"])
    assert (pipeline.state(), pipeline.state("public.left")) == (COMPLETE, GONE)
