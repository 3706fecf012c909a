"""What `run` prints and when: a JSON line for each batch, and few lines for people."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tailrace.cli import terminal
from tailrace.cli.run_output import ProgressPrinter, WarningPrinter, checkpoint_position, line, waiting
from tailrace.errors import ConfigError
from tailrace.pipeline.activity import ASKS, RESTARTS, WRITES, Activity, ActivityWatch
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.log import LogFile
from tailrace.pipeline.progress import RunProgress
from tailrace.snapshot.progress import Progress as Snapshots
from tailrace.snapshot.report import Report

FIRST = Report("initial", "2 tables", 500, 1000, chunk=1, chunks=2, seconds_left=3.0, waiting=(), paused=False)
NOTHING = RunProgress(None, 0, 0.0, {})
BATCH = RunProgress(0, 10, 2.0, {"position": "0/1"}, position="0/1")


def test_lines_for_people() -> None:
    assert line(replace(NOTHING, snapshot=FIRST), 0.0) == (
        "initial snapshot of 2 tables, 500 of about 1,000 rows, chunk 1 of about 2, 167 rows a second, about 3 s left"
    )
    assert line(BATCH, 5.0) == "10 events, 5.0/s, at 0/1"
    assert line(replace(BATCH, latest={"lag_bytes": 3 << 20}), 5.0) == "10 events, 5.0/s, at 0/1, 3.1 MB of log behind"
    assert line(replace(BATCH, snapshot=FIRST), 5.0).startswith(
        "10 events, 5.0/s, at 0/1; initial snapshot of 2 tables"
    )


def test_people_get_the_rate_since_the_last_line_and_a_line_while_it_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr("tailrace.cli.run_output.time", SimpleNamespace(monotonic=lambda: clock[0]))
    printer = ProgressPrinter(as_json=False, position=lambda: "the checkpoint is at micro-batch 13, 0/9")

    def shown(progress: RunProgress, seconds: float) -> str:
        clock[0] += seconds
        printer.show(progress)
        return capsys.readouterr().err.strip()

    assert shown(NOTHING, 5) == ""
    assert shown(NOTHING, 5) == ("no micro-batch of this run is finished yet; the checkpoint is at micro-batch 13, 0/9")
    assert shown(BATCH, 10) == "10 events, 0.5/s, at 0/1"
    later = replace(BATCH, batch=7, events=10_010)
    assert shown(replace(BATCH, batch=3, events=5_010), 5) == "", "the last line is five seconds old"
    assert shown(later, 5) == "10,010 events, 1,000/s, at 0/1"
    assert shown(later, 10) == "waiting for changes; 10,010 events so far, at 0/1"
    assert shown(later, 59) == ""
    busy = replace(later, activity=WRITES, activity_seconds=61.2)
    assert shown(busy, 1) == "micro-batch 8 is being read and written, for 61 s; 10,010 events before it, at 0/1"


def test_what_a_run_does_while_it_reports_nothing_new() -> None:
    def said(progress: RunProgress, activity: Activity, seconds: float) -> str:
        return waiting(replace(progress, activity=activity, activity_seconds=seconds), lambda: "the place")

    assert said(BATCH, ASKS, 5) == "waiting for changes; 10 events so far, at 0/1", "a question of each trigger"
    assert said(BATCH, ASKS, 95) == "waiting for the source's answer, for 95 s; 10 events so far, at 0/1"
    assert said(BATCH, RESTARTS, 4) == "the query is started again in 4 s; 10 events so far"
    failed = replace(BATCH, error="no registry at h:1")
    again = "the query is started again in 4 s, as it failed: no registry at h:1; 10 events so far"
    assert said(failed, RESTARTS, 4) == again
    assert said(NOTHING, WRITES, 30) == (
        "no micro-batch of this run is finished yet; one is being read and written, for 30 s; the place"
    )


def test_activity_is_what_spark_says_and_lasts_as_long_as_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tailrace.pipeline.activity.time", SimpleNamespace(monotonic=lambda: now[0]))
    watch = ActivityWatch()

    def look(seconds: float, message: str, last: str = "t1", *, is_active: bool = True) -> tuple[str, float]:
        now[0] += seconds
        return watch.look({"message": message, "isTriggerActive": is_active}, {"timestamp": last})

    assert look(0, "Waiting for next trigger", is_active=False) == ("waits", 0)
    assert look(1, "Getting offsets from t") == ("asks", 0)
    assert look(9, "Getting offsets from t") == ("asks", 9)
    assert look(1, "Getting offsets from t", "t2") == ("asks", 0), "another trigger"
    assert look(1, "Processing new data", "t2") == ("writes", 0)
    assert look(60, "Processing new data", "t2") == ("writes", 60)
    assert look(1, "Processing new data", "t3") == ("writes", 0), "another micro-batch"


def test_a_run_prints_the_position_of_its_checkpoint(tmp_path: Path) -> None:
    content = {
        "source": {
            "config": {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
        },
        "sink": "console",
        "checkpoint": "c",
    }
    definition = from_content(content, base=tmp_path, where="test")
    assert checkpoint_position(definition) == "the checkpoint has none yet"
    for folder, line_ in (("offsets", '{"phase": "stream", "position": "0/9"}'), ("commits", "")):
        (tmp_path / "c" / folder).mkdir(parents=True)
        for batch in ("12", "13"):
            (tmp_path / "c" / folder / batch).write_text(f"v1\n{{}}\n{line_}")
    (tmp_path / "c" / "metadata").write_text('{"id": "1"}')
    assert checkpoint_position(definition) == "the checkpoint is at micro-batch 13, 0/9"
    (tmp_path / "c" / "offsets" / "13").write_text("")
    assert checkpoint_position(definition) == "", "the run itself tells what is damaged"
    assert waiting(NOTHING, lambda: checkpoint_position(definition)) == "no micro-batch of this run is finished yet"


def test_a_machine_gets_a_line_a_batch_and_some_of_a_first_snapshot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr("tailrace.cli.run_output.time", SimpleNamespace(monotonic=lambda: clock[0]))
    printer = ProgressPrinter(as_json=True)
    printer.show(replace(NOTHING, snapshot=FIRST))
    assert not capsys.readouterr().out, "it may be over soon"
    clock[0] += 10
    for progress in (NOTHING, replace(NOTHING, snapshot=FIRST), replace(NOTHING, snapshot=FIRST), BATCH, BATCH):
        printer.show(progress)
    clock[0] += 60
    printer.show(BATCH, last=True)
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [(found["batch"], found["snapshot"] and found["snapshot"]["chunk"]) for found in lines] == [
        (None, 1),
        (0, None),
    ]


def test_incomplete_tables_and_warnings_are_shown_when_they_change_and_again_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr("tailrace.cli.run_output.time", SimpleNamespace(monotonic=lambda: clock[0]))
    state = Snapshots().lacking("public.[t]", "permission denied (signal s1)")
    wrong = replace(BATCH, offset={"snapshots": replace(state, warnings=("p lacks public.u",)).to_json()})
    printer = ProgressPrinter(as_json=True)

    def shown(progress: RunProgress, seconds: float = 0) -> str:
        clock[0] += seconds
        printer.show(progress)
        return " ".join(capsys.readouterr().err.split())

    assert shown(BATCH) == ""
    said = shown(wrong)
    assert "Warning public.[t]: rows were not read: permission denied (signal s1); read them again by" in said
    assert "Warning p lacks public.u" in said
    assert shown(wrong, 60) == ""
    assert shown(wrong, 600) == said
    assert shown(BATCH) == " ".join(f"Over {text}" for text in said.removeprefix("Warning ").split(" Warning "))
    assert shown(BATCH, 6000) == ""


def test_one_warning_that_comes_and_goes_beside_another(capsys: pytest.CaptureFixture[str]) -> None:
    printer = ProgressPrinter(as_json=False)
    aside = replace(BATCH, set_aside=("public.t: why",))

    def shown(progress: RunProgress) -> list[str]:
        printer.show(progress)
        return [text for text in capsys.readouterr().err.splitlines() if text.startswith(("Warning", "Over"))]

    assert shown(aside) == ["Warning public.t: why"]
    assert shown(replace(aside, sink_problem="Kafka is away")) == ["Warning Kafka is away"]
    assert shown(aside) == ["Over Kafka is away"]
    assert shown(BATCH) == ["Over public.t: why"]


def test_a_warning_is_printed_again_after_ten_minutes_whatever_its_numbers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr("tailrace.cli.run_output.time", SimpleNamespace(monotonic=lambda: clock[0]))
    log = tmp_path / "log"
    log.touch()
    printer = WarningPrinter(LogFile(log), ("x: has no effect",))

    def shown(*texts: str, seconds: float = 1.0) -> list[str]:
        clock[0] += seconds
        with log.open("a", encoding="utf-8") as file:
            file.writelines(f"2026-11-27 07:34:18,001 WARNING tailrace.x: {text}\n" for text in texts)
        printer.show()
        return capsys.readouterr().err.splitlines()

    first = "public.t.c: 17 of 2,000 values; trying again in 0.5 s (try 1)"
    assert shown(first, "x: has no effect") == [f"Warning {first}"]
    again = "public.t.c: 3 of 10 values; trying again in 10.0 s (try 34)"
    assert shown(*[again] * 34, seconds=500) == []
    assert shown(again, seconds=100) == [f"Warning {again} (and 34 more like it since it was printed last)"]
    other = ["public.t_1.c: 17 of 2,000 values", "public.t_2.c: 17 of 2,000 values", "at 0/16B3748", "at 0/16B3749"]
    assert shown(*other) == [f"Warning {text}" for text in other], "digits of names and positions are no numbers"


def test_each_line_has_its_time_with_the_zone_once_a_run_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(terminal.notes, "is_stamped", False)
    root = logging.getLogger()
    handler = logging.StreamHandler()
    monkeypatch.setattr(root, "handlers", [handler])
    terminal.notes.print("before")
    terminal.stamp_lines()
    printer = ProgressPrinter(as_json=True)
    printer.show(replace(BATCH, set_aside=("public.t: first line\n  second line",)))
    logging.getLogger("tailrace.pipeline.run").warning("what\n  more")
    terminal.print_error(ConfigError("is wrong", remedy="set it"))
    shown = capsys.readouterr()
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"
    assert re.fullmatch(stamp, json.loads(shown.out)["time"])
    before, *lines = shown.err.splitlines()
    assert before == "before"
    assert [re.sub(f"^{stamp} ", "", line) for line in lines] == [
        *("Warning public.t: first line", "  second line", "WARNING: what", "  more"),
        *("Error is wrong", "  Remedy set it"),
    ]
    assert all(re.match(stamp, line) for line in lines)
