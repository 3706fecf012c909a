"""Holds batches that wait for later ones: in memory, and in a file without a name where they are many."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

import pyarrow as pa

from tailrace.model.change import ChangeBatch, from_ipc

_IN_MEMORY = 64 << 20  # guessed


@dataclass(frozen=True)
class Sized:
    """A batch with the bytes that it takes, and why no replica can take it, if so."""

    batch: ChangeBatch
    bytes: int
    error: str | None = None


@dataclass
class Spool:
    """Batches in the order in which they were added; they can be read repeatedly. Close it."""

    _held: list[Sized] = field(default_factory=list)
    _bytes: int = 0
    _file: IO[bytes] | None = None
    _stored: list[tuple[int, int, tuple[int, str | None]]] = field(default_factory=list)

    def add(self, sized: Sized) -> None:
        """Add a batch."""
        if self._file is None and self._bytes < _IN_MEMORY:
            self._held.append(sized)
            self._bytes += sized.bytes
            return
        if self._file is None:
            self._file = _file()
        data = sized.batch.to_ipc()
        self._stored.append((self._file.seek(0, 2), len(data), (sized.bytes, sized.error)))
        self._file.write(data)

    def close(self) -> None:
        """Let the batches go."""
        if self._file is not None:
            self._file.close()

    def __iter__(self) -> Iterator[Sized]:
        yield from self._held
        for place, length, (size, error) in self._stored:
            assert self._file is not None
            self._file.seek(place)
            batch = from_ipc(pa.py_buffer(self._file.read(length)))
            assert isinstance(batch, ChangeBatch)
            yield Sized(batch, size, error)


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()
