"""Drops what the command has made, also after Ctrl-C, and reports what it could not drop."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tailrace.connectors.probe import Bench, ProbeObject

log = logging.getLogger(__name__)
_TRIES, _PAUSE_S = 3, 2.0  # guessed


def clean_up(bench: Bench) -> list[str]:
    """Drop all that the bench may have made; the commands for what is left. Signals wait until it is done.

    A session that was cut may hold locks for a moment, so what cannot be dropped is tried again.
    """
    with _undisturbed():
        # Its sessions may hold locks, too.
        bench.close()
        left = list(bench.undo())
        for number in range(_TRIES):
            time.sleep(_PAUSE_S if number and left else 0)
            left = [undo for undo in left if not _is_dropped(undo)]
        bench.close()
    return [undo.command for undo in left]


def _is_dropped(undo: ProbeObject) -> bool:
    try:
        undo.drop()
    except Exception:  # whatever one object says, the others are dropped
        log.info("an object of the command's own cannot be dropped", exc_info=True)
        return False
    return True


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block SIGTERM is KeyboardInterrupt, as Ctrl-C is: what was made is dropped after both."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt, signal.SIGTERM):
        yield


@contextmanager
def _undisturbed() -> Iterator[None]:
    def wait(number: int, frame: FrameType | None) -> None:
        log.warning("what was made on the server is being dropped; this ends by itself")

    with _handled(wait, signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> Iterator[None]:
    """Within the block a handler has these signals, where the caller may set one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
