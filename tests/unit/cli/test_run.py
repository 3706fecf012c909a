"""What `run` prints and when: a JSON line for each batch, and few lines for people."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.cli import run
from tailrace.cli.run import ProgressPrinter, checkpoint_position, line, waiting
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Progress
from tailrace.snapshot.progress import Progress as Snapshots
from tailrace.snapshot.report import Report

FIRST = Report("initial", "2 tables", 500, 1000, 1, 2, 3.0, (), False)
NOTHING = Progress(None, 0, 0.0, {})
BATCH = Progress(0, 10, 2.0, {"lsn": "0/1"}, position="0/1")


def test_lines_for_people() -> None:
    assert line(replace(NOTHING, snapshot=FIRST), 0.0) == (
        "initial snapshot of 2 tables, 500 of about 1,000 rows, chunk 1 of about 2, about 3 s left"
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
    monkeypatch.setattr(run.time, "monotonic", lambda: clock[0])
    printer = ProgressPrinter(as_json=False, position=lambda: "the checkpoint is at micro-batch 13, 0/9")

    def shown(progress: Progress, seconds: float) -> str:
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
    busy = replace(later, waits=False)
    assert shown(busy, 1) == "micro-batch 8 is read and written; 10,010 events before it, at 0/1"


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
    for folder, line_ in (("offsets", '{"phase": "stream", "lsn": "0/9"}'), ("commits", "")):
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
    monkeypatch.setattr(run.time, "monotonic", lambda: clock[0])
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
    monkeypatch.setattr(run.time, "monotonic", lambda: clock[0])
    state = Snapshots().lacking("public.[t]", "permission denied (signal s1)")
    wrong = replace(BATCH, offset={"snapshots": replace(state, warnings=("p lacks public.u",)).to_json()})
    printer = ProgressPrinter(as_json=True)

    def shown(progress: Progress, seconds: float = 0) -> str:
        clock[0] += seconds
        printer.show(progress)
        return " ".join(capsys.readouterr().err.split())

    assert shown(BATCH) == ""
    said = shown(wrong)
    assert "Warning public.[t]: rows were not read: permission denied (signal s1); read them again by" in said
    assert "Warning p lacks public.u" in said
    assert shown(wrong, 60) == ""
    assert shown(wrong, 600) == said
    assert shown(BATCH) == "What was warned of is over"
    assert shown(BATCH, 6000) == ""
