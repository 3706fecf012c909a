"""The worker's side of a reader process: finds it or starts it, and requests log ranges."""

from __future__ import annotations

import fcntl
import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tailrace.connectors.reader_socket import (
    AnswerBlock,
    MessageKind,
    ReaderLost,
    ReaderRequest,
    address,
    message,
    pulse_of,
    receive,
)
from tailrace.errors import SourceError

log = logging.getLogger(__name__)

_START_SECONDS = 60  # guessed
# A reader may have nothing to say for as long as the server decodes one huge transaction, so silence alone is no sign:
# after so much of it the process is asked whether it runs. It answers by a thread of its own, at once; a machine that
# is so busy that this takes as long again would not read the log either.
SILENT_SECONDS, ANSWER_SECONDS = 60.0, 60.0
# Of the process that listens at the other end: on Linux among three numbers, on macOS by a number of getsockopt.
_CREDENTIALS, _PEER_PID = struct.Struct("3i"), (0, 2)
_MAIN = "from tailrace.connectors.reader_process import main; main()"
# Held to be collected when they have ended: else they would stay in the table of processes as long as this one lives.
_started: list[subprocess.Popen[bytes]] = []


def ask(request: ReaderRequest) -> Generator[AnswerBlock, None, None]:
    """What the reader process gives for a request; it is started first if it does not run on this machine.

    Whoever stops taking blocks gives up the request. Raises what the source raised, ReaderLost when the process ended,
    or when it hangs: it is ended then, so that the next request starts another one.
    """
    path = address(request.name)
    connection = _connected(path)
    with connection:
        try:
            head, _ = message(MessageKind.REQUEST, request)
            connection.sendall(head)
            connection.settimeout(SILENT_SECONDS)
            while True:
                kind, about, data = receive(connection, lambda: _end_if_it_hangs(path, connection))
                if kind is MessageKind.END:
                    return
                if kind is MessageKind.FAILED:
                    raise about
                yield AnswerBlock(about, data)
        except (EOFError, ConnectionError) as error:
            raise _lost() from error


def _lost() -> ReaderLost:
    return ReaderLost(
        "the process that reads the log has ended",
        remedy="the executor's stderr, or the system's log for a lack of memory, says why it ended",
    )


def _end_if_it_hangs(path: Path, connection: socket.socket) -> None:
    """After a long silence: raises ReaderLost, and ends the process at the other end, if it says nothing at all."""
    if _beats(pulse_of(path)):
        return
    pid = _pid(connection)
    what = (
        f"the process that reads the log (pid {pid}) has said nothing for {SILENT_SECONDS + ANSWER_SECONDS:.0f} s, nor "
        "whether it runs"
    )
    remedy = (
        "it is ended, and another one is started; if that happens again, see what stops it: somebody's SIGSTOP, a "
        "debugger, a disk that does not answer (`ps -o pid,stat,wchan,cmd`)"
    )
    log.error("%s; remedy: %s", what, remedy)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with _locked(path.parent):
        # One that waits for a disk ends later, and must not be asked again until then.
        second = _connect(path)
        if second is not None and _pid(second) == pid:
            path.unlink(missing_ok=True)
        if second is not None:
            second.close()
    raise ReaderLost(what, remedy=remedy)


def _beats(pulse: Path) -> bool:
    """Whether a process says that it runs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            connection.connect(str(pulse))
            return bool(connection.recv(1))
        except OSError:
            return False


def _pid(connection: socket.socket) -> int:
    """The number of the process that listens at the other end."""
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(credentials)[0])
    return connection.getsockopt(*_PEER_PID)


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
