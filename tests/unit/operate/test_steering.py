"""What is asked of a pipeline: pause, stop, resume, restart, and the end of its run."""

from __future__ import annotations

import threading

import pytest

from tailrace.operate.steering import Steering, Wanted


def test_a_pipeline_runs_until_something_else_is_wanted() -> None:
    steering = Steering()
    assert steering.waits()
    assert not steering.ends_run
    steering.want("paused")
    assert (steering.ends_run, steering.waits(0)) == (True, False)
    steering.want("running")
    assert (steering.waits(), steering.ends_run) == (True, False)


@pytest.mark.parametrize("wanted", ["paused", "stopped"])
def test_a_restart_leaves_alone_what_is_paused_or_stopped(wanted: Wanted) -> None:
    """As Kafka Connect, which starts a connector in the state that is wanted of it."""
    steering = Steering()
    steering.restart()
    assert (steering.ends_run, steering.waits(), steering.ends_run) == (True, True, False)
    steering.want(wanted)
    steering.restart()
    assert not steering.waits(0)
    steering.want("running")
    assert (steering.waits(), steering.ends_run) == (True, False)


def test_a_run_that_has_ended_by_itself_begins_again_when_somebody_asks() -> None:
    steering = Steering()
    for ask in (steering.restart, lambda: steering.want("running")):
        assert steering.waits()
        steering.ended()
        assert not steering.waits(0)
        ask()
    assert steering.waits()
    steering.want("paused")
    steering.ended()
    steering.want("running")
    assert steering.waits(), "a run that was ended has not ended by itself"


def test_nothing_follows_the_end() -> None:
    steering = Steering()
    steering.want("closed")
    steering.want("running")
    steering.restart()
    assert (steering.wanted, steering.waits(), steering.ends_run) == ("closed", False, True)


@pytest.mark.parametrize("ask", ["want", "restart"])
def test_a_pause_after_a_failure_ends_early_when_somebody_asks(ask: str) -> None:
    steering = Steering()
    act = steering.restart if ask == "restart" else lambda: steering.want("running")
    threading.Timer(0.1, act).start()
    steering.rest(1000)  # longer than a test may take
    assert steering.waits()
