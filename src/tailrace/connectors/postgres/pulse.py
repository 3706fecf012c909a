"""Status updates on a replication connection while whoever reads it is busy elsewhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

log = logging.getLogger(__name__)


class Pulse:
    """Calls `report` every so many seconds, but only within `away`: a connection serves one thread at a time."""

    def __init__(self, seconds: float, report: Callable[[], None]) -> None:
        self._seconds, self._report = seconds, report
        self._free = threading.Lock()
        self._free.acquire()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tailrace-status", daemon=True)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @contextmanager
    def away(self) -> Iterator[None]:
        """The reader does not touch its connection within this block."""
        self._free.release()
        try:
            yield
        finally:
            self._free.acquire()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            if self._free.acquire(blocking=False):
                try:
                    self._report()
                except psycopg.OperationalError as error:
                    # The reader finds out for itself, and makes the connection anew.
                    log.info("the status update was not sent: %s", error)
                finally:
                    self._free.release()
