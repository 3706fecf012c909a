"""The local socket between Spark's Python workers and a reader process: path, permissions, messages.

The sockets lie in a folder that only its owner may enter, which both sides check: it keeps other users from asking
for changes, and from taking a reader's place to be sent a password.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
import struct
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

from tailrace.config import Config
from tailrace.connectors.private_files import is_private_folder
from tailrace.errors import SourceError
from tailrace.version import __version__

# The address of a local socket has 104 bytes on macOS and 108 on Linux.
_LONGEST_ADDRESS = 100
_HEADER = struct.Struct("=BQQ")
# What a process says at its second socket.
BEAT = b"."


@dataclass(frozen=True)
class AnswerBlock:
    """A part of the answer: bytes, and a description of them."""

    about: Any
    data: bytes | bytearray


class ReaderSource(Protocol):
    """What a reader process keeps from one request to the next: a connection to a database, and how far it has read."""

    def read(self, wanted: Any, client: socket.socket) -> Generator[AnswerBlock, None, None]:
        """What a request asks for. Ends with ClientGone as soon as the client can be read from: it has hung up."""

    def wait(
        self, readers: list[socket.socket], writers: list[socket.socket], seconds: float
    ) -> tuple[list[socket.socket], list[socket.socket]]:
        """`select.select`, which takes care of the connection meanwhile. Raises nothing that the connection meets."""

    def is_wanted(self) -> bool:
        """Whether the pipeline still runs, as far as the database can tell."""

    def close(self) -> None:
        """End the connection."""


@dataclass(frozen=True)
class ReaderRequest:
    """What a worker requests: `wanted` is read from the source called `name`, which `make` makes of the config."""

    make: Callable[[Config, str], ReaderSource]
    config: Config
    name: str
    wanted: Any


class ReaderLost(SourceError):
    """The reader process has ended before its answer was complete. Another one can be started."""


class ClientGone(Exception):
    """The worker that asked does not take the answer any more."""


class MessageKind(IntEnum):
    """Messages: a worker sends one REQUEST and gets BLOCKs, then END or FAILED."""

    REQUEST = 1
    BLOCK = 2
    END = 3
    FAILED = 4


def address(name: str) -> Path:
    """The path of the socket of the reader process with that name. Raises SourceError for an unsafe folder."""
    digest = hashlib.sha256(f"{__version__} {name}".encode()).hexdigest()[:24]
    return folder() / f"{digest}.sock"


def pulse_of(path: Path) -> Path:
    """The path of a second socket, at which a thread of the same process says that the process runs."""
    return path.with_suffix(".pulse")


def folder() -> Path:
    """The folder of this user's sockets, made if need be. Raises SourceError when others could enter it."""
    home = Path(tempfile.gettempdir())
    if len(str(home)) > _LONGEST_ADDRESS - 50:
        home = Path("/tmp")
    place = home / f"tailrace-{os.geteuid()}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        is_private = is_private_folder(place)
    except OSError as error:
        raise SourceError(
            f"the folder for local sockets cannot be used: {error.strerror}",
            where=str(place),
            remedy="set TMPDIR to a folder that this user may write, for the driver and the executors",
        ) from error
    if not is_private:
        raise SourceError(
            "the folder for local sockets is not a folder that this user alone may enter",
            where=str(place),
            remedy=f"remove it (rm -r {place}); if it belongs to another user, set TMPDIR to another folder",
        )
    return place


def message(kind: MessageKind, about: object = None, data: bytes | bytearray = b"") -> tuple[bytes, bytes | bytearray]:
    """A message as two pieces to be sent one after the other."""
    text = pickle.dumps(about, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(kind, len(text), len(data)) + text, data


def _ended() -> None:
    raise TimeoutError("the other side says nothing")


def receive(connection: socket.socket, silent: Callable[[], None] = _ended) -> tuple[MessageKind, Any, bytearray]:
    """The next message. Raises EOFError at the connection's end, OSError.

    `silent` is called when nothing has come for as long as the connection's time limit, if it has one.
    """
    kind, text, data = _HEADER.unpack(_exactly(connection, _HEADER.size, silent))
    return MessageKind(kind), pickle.loads(_exactly(connection, text, silent)), _exactly(connection, data, silent)


def _exactly(connection: socket.socket, size: int, silent: Callable[[], None]) -> bytearray:
    data = bytearray(size)
    rest = memoryview(data)
    while len(rest):
        try:
            got = connection.recv_into(rest)
        except TimeoutError:  # once a limit
            silent()
            continue
        if not got:
            raise EOFError("the connection has ended")
        rest = rest[got:]
    return data
