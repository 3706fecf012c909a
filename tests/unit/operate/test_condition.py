"""The condition of a pipeline: each state has one, and each condition has one answer everywhere."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.connectors.finding import SINK, Finding
from tailrace.operate import condition as module
from tailrace.operate.condition import Condition, ConditionFacts, condition
from tailrace.operate.health import health
from tailrace.operate.status import Live, ReplicaTable, Status
from tailrace.pipeline.lease import Owner
from tailrace.pipeline.progress import RunProgress
from tailrace.pipeline.run_state import Ended, RunState

RUNS = ConditionFacts("running", "stream")
STATUS = Status(
    "p", "stream", 1, "0/1", current="0/2", lag_bytes=1, lag_seconds=1.0, tables={}, run=RunState("running")
)
SERVER = Finding("slot", False, "the slot is gone", "drop the checkpoint")
AWAY = Finding("connection", False, "cannot connect: refused", "start the server")
FAILED = "the query failed by an error that may pass: no registry at h:1"
SINK_AWAY = Finding(SINK, False, "Kafka does not answer", "check bootstrap.servers")


def rows(text: str) -> dict[str, list[str]]:
    """The cells of a table of conditions, by the condition."""
    found = re.findall(r"^\| `([a-z ]+)` \| (.+) \|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (RUNS, Condition.STREAMING),
        (replace(RUNS, has_begun=True), Condition.STREAMING),
        (replace(RUNS, has_begun=False), Condition.STARTING),
        (replace(RUNS, phase="not started"), Condition.STARTING),
        (replace(RUNS, phase="first batch"), Condition.SNAPSHOT),
        (replace(RUNS, phase="snapshot"), Condition.SNAPSHOT),
        (replace(RUNS, is_lacking=True), Condition.INCOMPLETE),
        (replace(RUNS, is_source_away=True, has_errors=True), Condition.SOURCE_AWAY),
        (replace(RUNS, is_source_away=True, has_errors=True, has_begun=False), Condition.SOURCE_AWAY),
        (replace(RUNS, is_source_away=True, has_errors=True, restarts=True), Condition.SOURCE_AWAY),
        (replace(RUNS, is_sink_away=True), Condition.SINK_AWAY),
        (replace(RUNS, is_sink_away=True, is_lacking=True), Condition.SINK_AWAY),
        (replace(RUNS, restarts=True), Condition.RESTARTING),
        (replace(RUNS, has_errors=True), Condition.STUCK),
        (replace(RUNS, is_silent=True, is_source_away=True), Condition.SILENT),
        (ConditionFacts("stopped", "stream", is_paused=True), Condition.PAUSED),
        (ConditionFacts("stopped", "stream"), Condition.STOPPED),
        (ConditionFacts("stopped", "stream", is_lacking=True), Condition.INCOMPLETE),
        (ConditionFacts("stopped", "stream", is_sink_away=True), Condition.STUCK),
        (ConditionFacts("stopped", "stream", is_source_away=True, has_errors=True), Condition.STUCK),
        (ConditionFacts("never started", "not started"), Condition.NEVER_STARTED),
        (ConditionFacts("failed", "stream", is_lacking=True), Condition.FAILED),
        (ConditionFacts("killed", "stream", is_source_away=True), Condition.KILLED),
    ],
)
def test_each_state_has_one_condition(facts: ConditionFacts, expected: Condition) -> None:
    assert condition(facts) is expected


def test_the_table_of_the_module_and_of_the_docs_is_what_is_answered() -> None:
    documented = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
    for text in (module.__doc__ or "", documented):
        table = rows(text)
        assert set(table) == {each.value for each in Condition}
        for each in Condition:
            _, alive, ready, code, connect = table[each.value]
            said = (each.is_alive, each.is_ready, each.is_lost, each.connect_state)
            assert said == (alive == "yes", ready == "yes", code == "1", connect), each


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (STATUS, "streaming"),
        (
            replace(STATUS, current=None, problems=(AWAY,)),
            "source away; cannot connect: refused; nothing: the pipeline waits for it, and goes on by itself. "
            "If it stays: start the server",
        ),
        (
            replace(STATUS, problems=(SINK_AWAY,)),
            "sink away; Kafka does not answer; nothing: the pipeline waits for it, and goes on by itself. "
            "If it stays: check bootstrap.servers",
        ),
        (
            replace(STATUS, current=None, problems=(replace(AWAY, name="access", what="wrong password"),)),
            "stuck; wrong password; start the server",
        ),
        (replace(STATUS, problems=(SERVER,)), "stuck; the slot is gone; drop the checkpoint"),
        (
            replace(STATUS, run=RunState("failed", None, Ended("2026-11-27T10:00:00+00:00", "no space", "free some"))),
            "failed; no space (at 2026-11-27T10:00:00+00:00); free some",
        ),
        (
            replace(STATUS, run=RunState("killed", replace(Owner.me(), pid=7, host="here", since="noon"))),
            "killed; killed, or its machine is out of reach: process 7 on here, since noon; start it again: "
            "`tailrace run`; it resumes from its checkpoint",
        ),
        (
            replace(
                STATUS,
                replica=(
                    ReplicaTable("public.t", "incomplete", "noon", "rows differ", takes="read it", is_lacking=True),
                ),
            ),
            "incomplete; public.t is incomplete: rows differ; read it",
        ),
        (
            replace(STATUS, live=Live(RunProgress(1, 0, 0.0, {}), silent_seconds=61)),
            "silent; the process has not said for a minute how far its run is; restart the process; it resumes from "
            "its checkpoint",
        ),
        (
            replace(STATUS, live=Live(RunProgress(1, 0, 0.0, {}, error="no registry at h:1", remedy="start it"))),
            f"restarting; {FAILED}; nothing: the query is started again by itself. If it stays: start it",
        ),
        (
            replace(STATUS, run=RunState("running", replace(Owner.me(), error="no registry at h:1"))),
            f"restarting; {FAILED}; nothing: the query is started again by itself",
        ),
        (replace(STATUS, live=Live(None)), "starting; no micro-batch of this run is finished yet"),
    ],
)
def test_what_is_the_matter_and_what_to_do_are_said_in_words(status: Status, words: str) -> None:
    assert str(health(status)) == words


def test_a_warning_is_no_error() -> None:
    assert replace(STATUS, problems=(replace(SERVER, ok=None),)).condition is Condition.STREAMING
