"""Signals are noted, not raised, and the handlers of before come back."""

from __future__ import annotations

import os
import signal

import pytest

from tailrace.cli.stop import stop_on_signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_asks_and_a_second_one_is_left_to_the_system(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as asked:
        assert not asked
        os.kill(os.getpid(), number)
        assert asked
        assert asked.code == code
        assert signal.getsignal(number) is signal.SIG_DFL
    assert signal.getsignal(number) is before


def test_not_asked() -> None:
    with stop_on_signals() as asked:
        pass
    assert not asked
    assert asked.code == 0
