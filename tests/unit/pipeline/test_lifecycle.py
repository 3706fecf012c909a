"""Tests the states of a run: what may follow each, and when a restart is due and is logged."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tailrace.errors import ConfigError, TailraceError
from tailrace.pipeline import lifecycle
from tailrace.pipeline.lease import Lease
from tailrace.pipeline.lifecycle import FOLLOWING, Lifecycle, LifecycleState

AWAY = TailraceError("no registry")


class Held(Lease):
    """A lease without a file."""

    def __init__(self) -> None:
        self.lost: TailraceError | None = None


def reach(life: Lifecycle, lease: Held, state: LifecycleState) -> None:
    if state is LifecycleState.RUNS:
        life.runs()
    elif state is LifecycleState.WAITS:
        life.waits(30, "again", AWAY)
    elif state is LifecycleState.LOST:
        lease.lost = ConfigError("the checkpoint is in use by another run")
    else:
        life.ends()


@pytest.mark.parametrize("before", LifecycleState)
@pytest.mark.parametrize("after", LifecycleState)
def test_only_the_states_of_the_table_follow_a_state(before: LifecycleState, after: LifecycleState) -> None:
    lease = Held()
    life = Lifecycle(lease)
    reach(life, lease, before)
    assert life.state is before
    if before is LifecycleState.ENDED and after not in (LifecycleState.LOST, LifecycleState.ENDED):
        with pytest.raises(RuntimeError, match=f"in the state ended cannot get to {after.value}"):
            reach(life, lease, after)
    else:
        reach(life, lease, after)
    assert life.state is (after if after in FOLLOWING[before] else before)


def test_a_restart_is_due_after_its_pause_and_is_logged_once_but_not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(lifecycle, "time", SimpleNamespace(monotonic=lambda: now[0]))
    life = Lifecycle(Held())
    life.waits(2, "the query is started again in 2 s", AWAY)
    assert life.error is AWAY
    assert (life.due_seconds, life.notice()) == (2, None), "a signal that ends the workers may end this process, too"
    now[0] = 101.0
    assert (life.notice(), life.notice()) == ("the query is started again in 2 s", None)
    now[0] = 103.0
    assert life.due_seconds == 0
    life.runs()
    assert life.state is LifecycleState.RUNS
    assert [life.error] == [None]
