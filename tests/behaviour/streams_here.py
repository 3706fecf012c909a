"""Streams of the log in the test's own process, where tests reach into them; else a reader process has them."""

from __future__ import annotations

import socket
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

from tailrace.connectors import reader_client
from tailrace.connectors.reader_socket import AnswerBlock, ReaderRequest, ReaderSource

streams: dict[str, ReaderSource] = {}
_configs: dict[str, object] = {}
# A read that a test does not take to its end keeps its lock, but not from the thread that reads.
_locks: dict[str, threading.RLock] = defaultdict(threading.RLock)
_ask_process = reader_client.ask


def ask(request: ReaderRequest) -> Generator[AnswerBlock, None, None]:
    """Stands in for reader_client.ask."""
    ours, theirs = socket.socketpair()
    with _locks[request.name], ours, theirs:
        if request.name in streams and _configs[request.name] != request.config:
            streams.pop(request.name).close()
        if request.name not in streams:
            streams[request.name] = request.make(request.config, request.name)
            _configs[request.name] = request.config
        with closing(streams[request.name].read(request.wanted, ours)) as blocks:
            yield from blocks


def forget(name: str) -> bool:
    """As if the reader process had ended: the next read makes a new connection. Whether there was one."""
    with _locks[name]:
        if name not in streams:
            return False
        streams.pop(name).close()
        return True


def _tend() -> None:
    """What a reader process does while nobody reads."""
    while True:
        time.sleep(0.05)
        for name, stream in list(streams.items()):
            if _locks[name].acquire(blocking=False):
                try:
                    if name in streams:
                        stream.wait([], [], 0)
                finally:
                    _locks[name].release()


@contextmanager
def in_a_process() -> Iterator[None]:
    """Read by a reader process within this block."""
    before, reader_client.ask = reader_client.ask, _ask_process
    try:
        yield
    finally:
        reader_client.ask = before


def install() -> None:
    """Read in this process from here on."""
    if reader_client.ask is not ask:
        reader_client.ask = ask
        threading.Thread(target=_tend, name="tend streams", daemon=True).start()
