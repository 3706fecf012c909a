"""A source without a database for the tests of the reader process: it counts."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Generator
from dataclasses import dataclass

from tailrace.config import Config
from tailrace.connectors.reader_socket import AnswerBlock
from tailrace.errors import OffsetError


@dataclass(frozen=True)
class Count:
    """So many blocks of so many bytes; `fails` names what is raised after them, `seconds` pass before the first one."""

    blocks: int
    size: int = 10
    fails: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Seen:
    """Which process, which of its sources, which of that one's reads, which block."""

    process: int
    source: int
    read: int
    block: int


class Odd(Exception):
    """An error that cannot cross to another process."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one + other)


class Counting:
    """Implements Source."""

    made = 0
    wanted = False

    def __init__(self, config: Config, name: str) -> None:
        Counting.made += 1
        self.number, self.reads = Counting.made, 0

    def read(self, wanted: Count, client: socket.socket) -> Generator[AnswerBlock, None, None]:
        self.reads += 1
        time.sleep(wanted.seconds)
        for block in range(wanted.blocks):
            yield AnswerBlock(Seen(os.getpid(), self.number, self.reads, block), bytes([block % 256]) * wanted.size)
        if wanted.fails == "odd":
            raise Odd("one", "other")
        if wanted.fails:
            raise OffsetError(wanted.fails, where="here", remedy="do this")

    def wait(
        self, readers: list[socket.socket], writers: list[socket.socket], seconds: float
    ) -> tuple[list[socket.socket], list[socket.socket]]:
        return select.select(readers, writers, [], seconds)[:2]

    def is_wanted(self) -> bool:
        return Counting.wanted

    def close(self) -> None:
        self.number = 0
