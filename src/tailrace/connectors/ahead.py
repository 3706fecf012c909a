"""Prepares the next item in a thread while the caller processes the current one.

Chunks are received and decoded while earlier ones are encoded, and encoded while Spark takes what is ready. All sides
spend most of their time in Arrow, numpy and sockets, where Python lets the other threads run.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")

_PAUSE_SECONDS = 0.1  # guessed
# Some systems give a thread half a megabyte, and documents of a thousand levels take two.
_STACK_BYTES = 16 << 20


class Patience(Protocol):
    """How long to wait for somebody who may never answer."""

    def begin(self) -> None:
        """The wait begins."""

    def look(self) -> None:
        """A moment has passed. Raises what ends the wait."""


class _End:
    """What the producer says last: it is over, or failed."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def ahead(items: Iterator[T], patience: Patience | None = None) -> Iterator[T]:
    """The items in their order, produced by a thread that is at most one item ahead.

    What the producer raises is raised here. When the consumer leaves early the producer is closed, in its thread,
    before this returns: what it holds (a connection) serves the next read. With `patience`, which ends the wait for an
    item, it is left to itself instead: it may be in a driver's code that nothing can interrupt.
    """
    handed: queue.Queue[T | _End] = queue.Queue(maxsize=1)
    left = threading.Event()
    thread = threading.Thread(target=_produce, args=(items, handed, left), name="tailrace-read", daemon=True)
    _start(thread)
    try:
        while True:
            item = handed.get() if patience is None else _awaited(handed, patience)
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        left.set()
        if patience is None:
            thread.join()


def _start(thread: threading.Thread) -> None:
    before = threading.stack_size(_STACK_BYTES)
    try:
        thread.start()
    finally:
        threading.stack_size(before)


def _awaited(handed: queue.Queue[T | _End], patience: Patience) -> T | _End:
    patience.begin()
    while True:
        try:
            return handed.get(timeout=_PAUSE_SECONDS)
        except queue.Empty:  # noqa: PERF203  # once a pause
            patience.look()


def _produce(items: Iterator[T], handed: queue.Queue[T | _End], left: threading.Event) -> None:
    end = _End(None)
    try:
        for item in items:
            if not _put(handed, item, left):
                break
    except BaseException as error:  # whatever it is, the consumer raises it
        end = _End(error)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
    _put(handed, end, left)


def _put(handed: queue.Queue[T | _End], item: T | _End, left: threading.Event) -> bool:
    """Hand an item over; false once nobody takes it any more."""
    while not left.is_set():
        try:
            handed.put(item, timeout=_PAUSE_SECONDS)
        except queue.Full:
            continue
        return True
    return False
