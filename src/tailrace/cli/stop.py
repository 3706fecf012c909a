"""Being asked to stop, by Ctrl-C or SIGTERM, in a way that lets the work at hand end well."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Asked:
    """False until a signal asks to stop; `code` is the exit code then: 130 after Ctrl-C, 0 after SIGTERM."""

    code = 0

    def __init__(self) -> None:
        self._signal: int | None = None

    def __bool__(self) -> bool:
        return self._signal is not None

    def _ask(self, number: int, frame: FrameType | None) -> None:
        # Whoever asks twice does not want to wait.
        signal.signal(number, signal.SIG_DFL)
        self._signal = number
        self.code = 130 if number == signal.SIGINT else 0


@contextmanager
def asked_to_stop() -> Iterator[Asked]:
    """Notes the signals instead of raising in the midst of a call to the JVM, whose answer the next one would take.

    Enter it once the session runs: Spark sets a handler of its own when it starts.
    """
    asked = Asked()
    previous = {number: signal.signal(number, asked._ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
