"""Which errors start the query again, after which pauses, and when a clock that was set back is noticed."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from tailrace.errors import (
    ConfigError,
    DecodeError,
    FencedError,
    OffsetError,
    SinkAwayError,
    SinkError,
    SourceAwayError,
    SourceError,
    TailraceError,
)
from tailrace.pipeline.failure import sentence
from tailrace.pipeline.lease import Owner
from tailrace.pipeline.restarts import ClockWatch, Restarted, Restarts, clock_set_back, is_passing, restart_warnings
from tailrace.pipeline.run_state import RunState

FOREVER = [ConfigError, DecodeError, FencedError, OffsetError, SinkError, SourceError, TailraceError]


@pytest.mark.parametrize("kind", FOREVER)
def test_errors_that_a_restart_would_repeat_end_the_pipeline(kind: type[TailraceError]) -> None:
    assert not is_passing(kind("no such privilege"))
    assert not is_passing(kind("Python worker exited unexpectedly")) or kind is TailraceError


def test_errors_that_pass_survive_the_text_of_spark() -> None:
    for kind in (SourceAwayError, SinkAwayError):
        text = f"Traceback\ntailrace.errors.{kind.__name__}: h:1/d: cannot connect\n  Remedy: wait\n\tat java"
        found = sentence(RuntimeError(text), "checkpoint")
        assert type(found) is kind
        assert is_passing(found)
        assert found.remedy == "wait"


@pytest.mark.parametrize(
    "said", ["Python worker failed to connect back", "Python worker exited unexpectedly (crashed)"]
)
def test_a_failed_process_of_spark_passes(said: str) -> None:
    cause = RuntimeError(f"[STREAM_FAILED] terminated: Job aborted\norg.apache.spark.SparkException: {said}\n\tat java")
    error = sentence(cause, "checkpoint")
    error.__cause__ = cause
    assert is_passing(error)
    assert not is_passing(sentence(RuntimeError("java.io.IOException: No space left on device"), "checkpoint"))


class SparkError(Exception):
    """As PySpark's: Java's stack is kept beside the message."""

    def __init__(self, said: str, cause: str, frame: str) -> None:
        super().__init__(f"[STREAM_FAILED] Query [id = 5] terminated with exception: {said} SQLSTATE: XXKST\nPlan")
        self._stackTrace = (
            f"org.apache.spark.sql.streaming.StreamingQueryException: {said}\nPlan\n\tat org.apache.A.b(A.scala:1)\n"
            f"Caused by: {cause}\n\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:381)\n"
            f"\tat org.apache.spark.sql.execution.python.streaming.{frame}.latestOffset(X.scala:2)\n\t... 1 more"
        )


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("", "java.io.EOFException"),
        ("Broken pipe", "java.io.IOException: Broken pipe"),
        ("Connection reset", "java.net.SocketException: Connection reset"),
    ],
)
def test_a_planner_that_was_killed_passes_whatever_java_finds_of_it(said: str, cause: str) -> None:
    killed = SparkError(said, cause, "PythonStreamingSourceRunner")
    error = sentence(killed, "checkpoint")
    error.__cause__ = killed
    assert is_passing(error)
    assert "a Python process of Spark ended during its work" in error.what
    assert cause in error.what


@pytest.mark.parametrize(
    ("cause", "frame"),
    [("java.io.EOFException", "AnotherReader"), ("java.io.IOException: odd", "PythonStreamingSourceRunner")],
)
def test_other_failures_of_java_end_the_pipeline(cause: str, frame: str) -> None:
    other = SparkError("", cause, frame)
    error = sentence(other, "checkpoint")
    error.__cause__ = other
    assert not is_passing(error)


def test_pauses_grow_up_to_a_limit_and_a_committed_batch_begins_again() -> None:
    restarts = Restarts(most=8)
    assert [restarts.pause(5, 4) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, None]
    assert restarts.pause(5, 5) == 1
    assert restarts.pause(6, 5) == 2


def test_before_the_first_batch_is_planned_an_error_is_final() -> None:
    assert Restarts().pause(-1, -1) is None
    assert Restarts(most=0).pause(3, 3) is None
    assert Restarts().pause(0, -1) == 1


def test_a_clock_that_was_set_back() -> None:
    wall, steady = [1000.0], [10.0]
    watch = ClockWatch(lambda: wall[0], lambda: steady[0])

    def after(seconds: float, jump: float = 0.0) -> float:
        wall[0] += seconds + jump
        steady[0] += seconds
        return watch.back_seconds()

    assert after(0.5) == 0
    assert after(600, jump=-1) == 0, "slewed"
    assert after(0.5, jump=-3600) == 3600
    assert after(0.5) == 0, "told once"
    assert after(0.5, jump=3600) == 0, "forward nothing waits"


def test_a_restart_is_a_warning_for_ten_minutes() -> None:
    """Also as another process reads it from the lease."""
    assert restart_warnings(None, 0) == ()
    once = Restarted(1, 1000.0, "a worker was killed")
    (warning,) = restart_warnings(once, 1599.0)
    assert (warning.name, warning.ok) == ("restart", None)
    assert warning.what == (
        "the query was started again once in this run, last at 00:16:40 UTC, after: a worker was killed"
    )
    assert warning.remedy == "none if it does not come again; else see the log"
    assert restart_warnings(once, 1601.0) == ()
    back = clock_set_back(3600)
    often = Restarted(3, 1000.0, back.what, back.remedy)
    (warning,) = restart_warnings(often, 1001.0)
    assert "3 times in this run" in warning.what
    assert "was set back by 3,600 s" in warning.what
    assert "slewed, not stepped" in (warning.remedy or "")
    owner = Owner.read(replace(Owner.me(), restarted=asdict(often)).content)
    assert RunState("running", owner).restarted == often
    assert RunState("killed", owner).restarted is None
