"""Sorted runs of the index from keys to places, in files that are mapped into memory: a lookup reads few pages of them.

An entry is two hashes of a key, 128 bits together, the number of its file and its position there; the number -1 says
that the key is gone. Of the entries of a key those of the newest run hold: several only if the table has several rows
of the key. Two of 100 million keys have the same hashes once in 10^22 tables.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tailrace.sinks.replica.digest import Hashes
from tailrace.sinks.replica.iceberg.vectors import Positions

Numbers = npt.NDArray[np.int32]

GONE = -1
# Entries that are merged at a time, 28 bytes each and as many again for their order.
_AT_A_TIME = 4_000_000


@dataclass(frozen=True)
class KeyHashes:
    """Hashes of keys."""

    hashes: Hashes
    others: Hashes

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, order: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> KeyHashes:
        """Some of them, or in another order."""
        return KeyHashes(self.hashes[order], self.others[order])


@dataclass(frozen=True)
class Entries:
    """Keys with the numbers of their files and their positions in these."""

    keys: KeyHashes
    numbers: Numbers
    positions: Positions

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, order: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Entries:
        """Some of them, or in another order."""
        keys = KeyHashes(self.keys.hashes[order], self.keys.others[order])
        return Entries(keys, self.numbers[order], self.positions[order])

    def sorted(self) -> Entries:
        """The same by their first hashes."""
        return self.take(np.argsort(self.keys.hashes, kind="stable"))

    def write(self, folder: Path) -> None:
        """Append them to the files of a run."""
        columns = (self.keys.hashes, self.keys.others, self.numbers, self.positions)
        for name, values in zip(_COLUMNS, columns, strict=True):
            with (folder / name).open("ab") as file:
                np.ascontiguousarray(values, _COLUMNS[name]).tofile(file)


_COLUMNS = {"hash": np.uint64, "other": np.uint64, "file": np.int32, "position": np.int64}


def stored(root: Path, parts: Sequence[Entries]) -> str:
    """The name of a new run of sorted parts, one behind the other."""
    name = uuid.uuid4().hex
    folder = root / name
    folder.mkdir(parents=True)
    for column in _COLUMNS:
        (folder / column).touch()
    for part in parts:
        part.write(folder)
    return name


def mapped(root: Path, name: str) -> Entries:
    """A stored run. Raises FileNotFoundError where it was removed."""
    columns = [_mapped(root / name / column, kind) for column, kind in _COLUMNS.items()]
    return Entries(KeyHashes(columns[0], columns[1]), columns[2], columns[3])


def _mapped(path: Path, kind: type) -> np.ndarray:
    if not path.stat().st_size:
        return np.empty(0, kind)
    return np.asarray(np.memmap(path, kind, "r"))


def matches(run: Entries, keys: KeyHashes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each key's entries in a run: the places of keys, and those of entries. Keys in order read fewer pages."""
    low = np.searchsorted(run.keys.hashes, keys.hashes, "left")
    counts = np.searchsorted(run.keys.hashes, keys.hashes, "right") - low
    of = np.repeat(np.arange(len(keys)), counts)
    ends = np.cumsum(counts)
    at = np.repeat(low, counts) + np.arange(len(of)) - np.repeat(ends - counts, counts)
    same = run.keys.others[at] == keys.others[of]
    return of[same], at[same]


def merged(root: Path, runs: Sequence[tuple[Entries, int]], *, is_last: bool) -> str:
    """The name of a run that holds what some do, each with its age, the newest the highest.

    Runs of one age do not replace each other's entries. `is_last`: no other run is older, so keys that are gone go.
    """
    name = stored(root, ())
    for some in _slices([run for run, _ in runs]):
        ages = np.repeat([age for _, age in runs], [len(part) for part in some])
        _newest(joined(some), ages, is_last=is_last).write(root / name)
    return name


def _slices(runs: Sequence[Entries]) -> Iterator[list[Entries]]:
    """The runs in ranges of hashes that have few entries."""
    longest = max(runs, key=len)
    steps = max(1, sum(map(len, runs)) // _AT_A_TIME)
    edges = [longest.keys.hashes[len(longest) * step // steps] for step in range(1, steps)] if len(longest) else []
    starts = [0] * len(runs)
    for edge in [*edges, None]:
        ends = [len(run) if edge is None else int(np.searchsorted(run.keys.hashes, edge)) for run in runs]
        yield [run.take(slice(start, end)) for run, start, end in zip(runs, starts, ends, strict=True)]
        starts = ends


def joined(some: Sequence[Entries]) -> Entries:
    """Entries one behind the other."""
    columns = [(each.keys.hashes, each.keys.others, each.numbers, each.positions) for each in some]
    hashes, others, numbers, positions = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Entries(KeyHashes(hashes, others), numbers, positions)


def _newest(entries: Entries, ages: npt.NDArray[np.int64], *, is_last: bool) -> Entries:
    """The entries that hold, sorted."""
    if not len(entries):
        return entries
    order = np.lexsort((entries.keys.others, entries.keys.hashes))
    entries, ages = entries.take(order), ages[order]
    hashes, others = entries.keys.hashes, entries.keys.others
    starts = np.flatnonzero(np.append(True, (hashes[1:] != hashes[:-1]) | (others[1:] != others[:-1])))
    newest = np.repeat(np.maximum.reduceat(ages, starts), np.diff(np.append(starts, len(entries))))
    holds = ages == newest
    if is_last:
        holds &= entries.numbers != GONE
    return entries.take(holds)
