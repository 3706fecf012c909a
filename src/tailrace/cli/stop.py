"""Stops in order on Ctrl-C and SIGTERM: notes the signal, and finishes the current work before the process ends."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SOON_SECONDS, _LOOK_SECONDS = 1.0, 0.02  # guessed


class StopRequest:
    """False until a signal requests a stop; then `code` is the exit code: 130 after Ctrl-C, 0 after SIGTERM."""

    code = 0

    def __init__(self) -> None:
        self._signal: int | None = None

    def __bool__(self) -> bool:
        return self._signal is not None

    def listen(self) -> None:
        """Note the signals from here on. Spark replaces the handler of Ctrl-C when it starts: call it again then."""
        for number in _SIGNALS if not self else ():
            signal.signal(number, self._ask)

    def soon(self) -> bool:
        """Whether a signal asks to stop within a second: one for several processes reaches some a little earlier."""
        deadline = time.monotonic() + _SOON_SECONDS
        while not self and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        return bool(self)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        # A second signal means that the user does not want to wait.
        signal.signal(number, signal.SIG_DFL)
        self._signal = number
        self.code = 130 if number == signal.SIGINT else 0


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Records stop signals instead of raising.

    An exception during a call to the JVM would leave its answer to the next call.
    """
    asked = StopRequest()
    previous = {number: signal.getsignal(number) for number in _SIGNALS}
    asked.listen()
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
