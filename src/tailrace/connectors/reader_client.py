"""The worker's side of a reader process: finds it or starts it, and requests log ranges."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.connectors.reader_socket import Block, Kind, ReaderLost, Request, address, message, receive
from tailrace.errors import SourceError

_START_SECONDS = 60
_MAIN = "from tailrace.connectors.reader_process import main; main()"
# Held to be collected when they have ended: else they would stay in the table of processes as long as this one lives.
_started: list[subprocess.Popen[bytes]] = []


def ask(request: Request) -> Generator[Block, None, None]:
    """What the reader process gives for a request; it is started first if it does not run on this machine.

    Whoever stops taking blocks gives up the request. Raises what the source raised, ReaderLost when the process ended.
    """
    connection = _connected(address(request.name))
    with connection:
        try:
            head, _ = message(Kind.REQUEST, request)
            connection.sendall(head)
            while True:
                kind, about, data = receive(connection)
                if kind is Kind.END:
                    return
                if kind is Kind.FAILED:
                    raise about
                yield Block(about, data)
        except (EOFError, ConnectionError) as error:
            raise _lost() from error


def _lost() -> ReaderLost:
    return ReaderLost(
        "the process that reads the log has ended",
        remedy="the executor's stderr, or the system's log for a lack of memory, says why it ended",
    )


def _connected(path: Path) -> socket.socket:
    _started[:] = [process for process in _started if process.poll() is None]
    connection = _connect(path)
    if connection is not None:
        return connection
    with _locked(path.parent):
        connection = _connect(path)  # another worker may have been faster
        if connection is None:
            _start(path)
            connection = _connect(path)
    if connection is None:
        raise _lost()
    return connection


def _connect(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionError):
        connection.close()
        return None
    return connection


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one worker of this user at a time."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _start(path: Path) -> None:
    """Start a reader process that listens at `path` and ends with this process's parent, the executor's.

    Its command line and environment hold no property of the pipeline: those come with each request.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, str(path), str(os.getppid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # Spark may have sent packages to this worker that a new process would not find.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    _started.append(process)
    assert process.stdout is not None
    with process.stdout as said:
        ready, _, _ = select.select([said], [], [], _START_SECONDS)
        if not ready or not said.readline():
            if ready and process.wait() < 0:
                raise _lost()  # by a signal, such as one for a lack of memory
            process.kill()
            raise SourceError(
                "the reader process did not start",
                where=str(path),
                remedy="see the executor's stderr for its error; `python -c 'import tailrace'` must work on every host",
            )
