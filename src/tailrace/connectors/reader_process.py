"""The reader process: keeps one pipeline's connection to the database's log, and serves an executor's Python workers.

Spark gives successive micro-batches to different workers, so a connection kept in a worker would be opened again for
most of them. There is one reader process for each pipeline and host. It does one thing at a time: it answers one
worker's request, or keeps the connection alive while there is no request. It ends with the executor that started it,
and when the pipeline no longer runs.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from tailrace.connectors.reader_socket import (
    BEAT,
    ClientGone,
    MessageKind,
    ReaderRequest,
    ReaderSource,
    message,
    pulse_of,
    receive,
)

log = logging.getLogger(__name__)

# After how long without a request the source is queried whether the pipeline still runs.
IDLE_SECONDS = 10.0
# How long a worker may take nothing while another one waits: a task that Spark has given up may hang for ever.
_STALLED_SECONDS = 10.0
_REQUEST_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_COLLECT_AFTER = 500_000


def main() -> None:
    """Listen at the first argument's path until the process of the second argument's number ends."""
    path, owner = Path(sys.argv[1]), int(sys.argv[2])
    _log_to_stderr()
    # The collector looks at every message of a block, again and again, for half of the time that receiving takes. There
    # is nothing to be found: what makes cycles here is rare.
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    os.umask(0o077)
    with _listening(path) as listener:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: _leave(path))
        threading.Thread(target=_leave_with, args=(owner, path), daemon=True).start()
        threading.Thread(target=_beat, args=(_listening(pulse_of(path)),), daemon=True).start()
        print("ready", flush=True)
        sys.stdout.close()
        sys.stdout = sys.stderr
        try:
            Server(listener).serve()
        finally:
            _remove(path)


def _listening(path: Path) -> socket.socket:
    """A socket that others can connect to at a path."""
    path.unlink(missing_ok=True)  # of a process that was killed
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    return listener


def _beat(listener: socket.socket) -> None:
    """Answer everybody at once, whatever the process does meanwhile: it runs."""
    while True:
        client, _ = listener.accept()
        with client, contextlib.suppress(OSError):
            client.sendall(BEAT)


class Server:
    """Answers one request after another from a source that it keeps."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.source: ReaderSource | None = None
        self.request: ReaderRequest | None = None
        self.queue: list[socket.socket] = []

    def serve(self) -> None:
        """Serve until the pipeline does not run any more."""
        while (client := self._next()) is not None:
            with client, contextlib.suppress(ClientGone):
                self._answer(client)
        if self.source is not None:
            self.source.close()

    def _next(self) -> socket.socket | None:
        """The next worker's connection; None when none comes and none is expected."""
        while not self.queue:
            ready, _ = self._wait([self.listener], [], IDLE_SECONDS)
            if ready:
                self._accept()
            elif self.source is None or not self.source.is_wanted():
                log.info("the reader process ends, as its pipeline does not run any more")
                return None
        return self.queue.pop(0)

    def _accept(self) -> None:
        client, _ = self.listener.accept()
        self.queue.append(client)

    def _wait(
        self, readers: list[socket.socket], writers: list[socket.socket], seconds: float
    ) -> tuple[list[socket.socket], list[socket.socket]]:
        if self.source is not None:
            return self.source.wait(readers, writers, seconds)
        return select.select(readers, writers, [], seconds)[:2]

    def _answer(self, client: socket.socket) -> None:
        client.settimeout(_REQUEST_SECONDS)
        try:
            _, request, _ = receive(client)
        except (EOFError, OSError) as error:
            raise ClientGone from error
        client.setblocking(False)
        try:
            with closing(self._source(request).read(request.wanted, client)) as blocks:
                for block in blocks:
                    self._send(client, MessageKind.BLOCK, block.about, block.data)
        except ClientGone:
            raise
        except Exception as error:  # whatever it is, the worker raises it
            self._send(client, MessageKind.FAILED, _portable(error))
        else:
            self._send(client, MessageKind.END)

    def _source(self, request: ReaderRequest) -> ReaderSource:
        """The source that is kept, or a new one when the pipeline was started again with another configuration."""
        if self.source is None or self.request is None or self.request.config != request.config:
            if self.source is not None:
                self.source.close()
            self.source = request.make(request.config, request.name)
        self.request = request
        return self.source

    def _send(
        self, client: socket.socket, kind: MessageKind, about: object = None, data: bytes | bytearray = b""
    ) -> None:
        for piece in message(kind, about, data):
            rest = memoryview(piece)
            while len(rest):
                try:
                    rest = rest[client.send(rest) :]
                except BlockingIOError:  # noqa: PERF203  # once a full buffer
                    self._until_writable(client)
                except OSError as error:
                    raise ClientGone from error

    def _until_writable(self, client: socket.socket) -> None:
        """Wait for a worker to take what it was sent. Raises ClientGone when it has hung up or holds up another one."""
        since = time.monotonic()
        while True:
            readable, writable = self._wait([self.listener, client], [client], _LOOK_SECONDS)
            if client in readable:
                raise ClientGone
            if writable:
                return
            if self.listener in readable:
                self._accept()
            if self.queue and time.monotonic() - since > _STALLED_SECONDS:
                log.warning("a worker takes nothing while another one waits; its request is given up")
                raise ClientGone


def _portable(error: Exception) -> Exception:
    """The error itself, or its text where it cannot cross to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # what an error does when it is pickled is its own affair
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def _leave_with(owner: int, path: Path) -> None:
    """Leave when the process of that number ends, whatever this process is doing."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(owner)], [], [])
    else:
        with contextlib.suppress(ProcessLookupError):
            while True:
                os.kill(owner, 0)
                time.sleep(_LOOK_SECONDS)
    _leave(path)


def _leave(path: Path) -> NoReturn:
    """End at once. The operating system closes the connections, and with that the database frees the slot."""
    _remove(path)
    os._exit(0)


def _remove(path: Path) -> None:
    for each in (path, pulse_of(path)):
        each.unlink(missing_ok=True)


def _log_to_stderr() -> None:
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("tailrace").setLevel(logging.INFO)
