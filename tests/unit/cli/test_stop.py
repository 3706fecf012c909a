"""Stop signals are recorded, not raised, and the previous handlers are restored."""

from __future__ import annotations

import os
import signal

import pytest

from tailrace.cli.stop import stop_on_signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_requests_a_stop_and_a_second_one_ends_the_process(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as asked:
        assert not asked
        os.kill(os.getpid(), number)
        assert asked
        assert asked.code == code
        assert signal.getsignal(number) is signal.SIG_DFL
    assert signal.getsignal(number) is before


def test_no_signal_means_no_stop_request() -> None:
    with stop_on_signals() as asked:
        pass
    assert not asked
    assert asked.code == 0
