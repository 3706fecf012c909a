"""Decides which changes of a transaction count where a key is unique at the commit alone (deferrable constraints).

Until then two rows may have one key, and the order of the changes does not say which of them has it in the end: two
rows swap their keys, or a row is inserted before the one that it replaces is deleted. Old images are whole there, so
the rows of a key are a bag. Of the images that the transaction put under a key, one was put more often than it was
taken: the row at the commit. If there is none and more were taken than put, the key has no row. Else it has the row,
or none, that it had before.

That takes the whole transaction, which may be of many batches and parts: batches wait until theirs is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import COMMIT, CREATE, DELETE, READ, TRUNCATE, UPDATE, ChangeBatch
from tailrace.model.held import is_held
from tailrace.model.native import WHOLE, native_rows
from tailrace.model.table import TableSchema
from tailrace.sinks.replica.digest import Hashes, mixed, row_hashes
from tailrace.sinks.replica.fold import PUTS, TAKES, merge_key
from tailrace.sinks.replica.spool import Sized, Spool

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

# What a change does to keys: nothing that is known, takes a row, puts one, both under two keys, both under one.
_OTHER, _TAKE, _PUT, _MOVE, _STAY = range(5)
# Rows that are compared at a time, some hundred bytes each.
_AT_ONCE = 2_000_000


def settled(batches: Iterable[Sized]) -> Iterator[Sized]:
    """The batches of one table in order, with the columns TAKES and PUTS where a change does not count."""
    window = _Window()
    try:
        for sized in batches:
            if not window.takes(sized.batch):
                yield from window.emptied()
                window.close()
                window = _Window()
            if window.is_open or _is_late(sized.batch):
                window.add(sized)
            else:
                yield sized
        yield from window.emptied()
    finally:
        window.close()


def _is_late(batch: ChangeBatch) -> bool:
    """Whether the batch has changes of the log to be settled."""
    return len(batch) > 0 and batch.read is None and batch.table.unique_at_commit and bool(merge_key(batch.table))


class _Window:
    """Batches up to the end of a transaction. What comes among its changes without a row waits with them."""

    def __init__(self) -> None:
        self._spool = Spool()
        self._changes: list[_Changes] = []
        self._key: tuple[str, ...] = ()
        self._columns: dict[str, pa.DataType] = {}
        self._last: object = None
        self._number, self._is_over = 0, False

    @property
    def is_open(self) -> bool:
        """Whether it has changes."""
        return bool(self._changes)

    def takes(self, batch: ChangeBatch) -> bool:
        """Whether a batch may go on with the transaction that is open."""
        if not self.is_open or (not len(batch) and batch.read is None):
            return True
        return _is_late(batch) and merge_key(batch.table) == self._key and _commits(batch)[0].as_py() == self._last

    def add(self, sized: Sized) -> None:
        """Add a batch."""
        batch = sized.batch
        self._spool.add(sized)
        if not _is_late(batch):
            return
        if self._is_over or (self.is_open and _commits(batch)[0].as_py() != self._last):
            self._number += 1
        self._key, self._last = merge_key(batch.table), _commits(batch)[-1].as_py()
        self._is_over = batch.rows.column("op")[-1].as_py() == TRUNCATE
        changes = _Changes.of(batch, self._key, self._number)
        self._number = int(changes.transaction[-1])
        self._changes.append(changes)
        kinds = {name: batch.table.column(name).arrow for name in batch.table.identity}
        # Columns that an ALTER TABLE adds or drops within the transaction are not in all images.
        columns = self._columns if len(self._changes) > 1 else kinds
        self._columns = {name: kind for name, kind in columns.items() if kinds.get(name) == kind}

    def close(self) -> None:
        """Let the batches go."""
        self._spool.close()

    def emptied(self) -> Iterator[Sized]:
        """The batches, settled."""
        if not self._changes:
            return
        verdict = _verdict(_Changes.joined(self._changes), self._images)
        start = 0
        for sized in self._spool:
            count = len(sized.batch) if _is_late(sized.batch) else 0
            yield sized if verdict is None or not count else _marked(sized, verdict, start)
            start += count

    def _images(self, wanted: Flags) -> tuple[Hashes, Hashes]:
        """Hashes of the old and new images of some rows, in order."""
        old, new, start = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)], 0
        for sized in self._spool:
            if _is_late(sized.batch):
                chosen = wanted[start : start + len(sized.batch)]
                start += len(sized.batch)
                if chosen.any():
                    rows = sized.batch.rows.filter(pa.array(chosen))
                    old.append(_hashes(rows.column("before"), list(self._columns)))
                    new.append(_hashes(rows.column("after"), list(self._columns)))
        return np.concatenate(old), np.concatenate(new)


def _commits(batch: ChangeBatch) -> pa.Array:
    return batch.rows.column(COMMIT)


def _hashes(images: pa.StructArray, names: list[str]) -> Hashes:
    return row_hashes([pc.struct_field(images, name) for name in names], len(images))


@dataclass(frozen=True)
class _Changes:
    """Changes in order: the number of their transaction, what they do, and hashes of the keys before and after."""

    transaction: Numbers
    kind: npt.NDArray[np.int8]
    old: Hashes
    new: Hashes

    @staticmethod
    def of(batch: ChangeBatch, key: tuple[str, ...], first: int) -> _Changes:
        """The changes of a batch; the first one belongs to that transaction. A TRUNCATE is the end of one as well."""
        op, commits = batch.rows.column("op"), _commits(batch)
        is_empty, begins = np.asarray(pc.equal(op, TRUNCATE), bool), np.zeros(len(batch), bool)
        begins[1:] = np.asarray(pc.not_equal(commits[1:], commits[:-1]), bool) | is_empty[:-1]
        before, after = batch.rows.column("before"), batch.rows.column("after")
        has_old = np.asarray(before.is_valid(), bool)
        old, new = (_keys(batch.table, key, images) for images in (before, after))
        kind = np.full(len(batch), _OTHER, np.int8)
        kind[np.asarray(pc.is_in(op, pa.array([CREATE, READ])), bool)] = _PUT
        kind[np.asarray(pc.equal(op, DELETE), bool) & has_old] = _TAKE
        kind[np.asarray(pc.equal(op, UPDATE), bool) & has_old] = _MOVE
        kind[(kind == _MOVE) & (old == new)] = _STAY
        return _Changes(first + np.cumsum(begins), kind, old, new)

    @staticmethod
    def joined(some: list[_Changes]) -> _Changes:
        """Changes one after another."""
        return _Changes(
            np.concatenate([each.transaction for each in some]),
            np.concatenate([each.kind for each in some]),
            np.concatenate([each.old for each in some]),
            np.concatenate([each.new for each in some]),
        )

    def is_(self, *kinds: int) -> Flags:
        """Which ones do one of these."""
        return np.isin(self.kind, kinds)


def _keys(table: TableSchema, key: tuple[str, ...], images: pa.StructArray) -> Hashes:
    columns = (table.column(name) for name in key)
    held = (replace(each, others=WHOLE) if is_held(each.arrow) else each for each in columns)
    keys = replace(table, columns=tuple(held))
    values = pa.StructArray.from_arrays([pc.struct_field(images, name) for name in key], fields=list(keys.row_type))
    return row_hashes(native_rows(keys, values).flatten(), len(images))


@dataclass(frozen=True)
class _Verdict:
    """By change, whether it takes the old row away and whether it puts the new one."""

    takes: Flags
    puts: Flags


def _marked(sized: Sized, verdict: _Verdict, start: int) -> Sized:
    rows = sized.batch.rows
    for name, flags in ((TAKES, verdict.takes), (PUTS, verdict.puts)):
        some = flags[start : start + rows.num_rows]
        rows = rows if some.all() else rows.append_column(name, pa.array(some))
    return replace(sized, batch=sized.batch.with_rows(rows))


def _verdict(changes: _Changes, images: Callable[[Flags], tuple[Hashes, Hashes]]) -> _Verdict | None:
    """What counts of changes; None: all of them. `images` gives hashes of the old and new images of some changes."""
    places = np.flatnonzero(_is_mixed(changes))
    buckets = 1 + len(places) // _AT_ONCE
    unclear = [_unclear(changes, places, bucket, buckets) for bucket in range(buckets)] if len(places) else []
    wanted = np.zeros(len(changes.kind), np.bool_)
    for steps in unclear:
        wanted[steps.place] = True
    if not wanted.any():
        return None
    old, new = images(wanted)
    at = np.cumsum(wanted) - 1
    verdict = _Verdict(np.ones(len(wanted), np.bool_), np.ones(len(wanted), np.bool_))
    for steps in unclear:
        if len(steps.place):
            _decide(steps, np.where(steps.is_put, new[at[steps.place]], old[at[steps.place]]), verdict)
    return verdict


def _is_mixed(changes: _Changes) -> Flags:
    """The changes of transactions that both put rows under keys and take or change rows of keys."""
    begins = np.flatnonzero(np.diff(changes.transaction, prepend=-1))
    puts = np.logical_or.reduceat(changes.is_(_PUT, _MOVE), begins)
    takes = np.logical_or.reduceat(changes.is_(_TAKE, _MOVE, _STAY), begins)
    is_mixed: Flags = np.repeat(puts & takes, np.diff(begins, append=len(changes.kind)))
    return is_mixed


@dataclass(frozen=True)
class _Steps:
    """Changes as rows taken from keys and put under keys of a transaction; `key` is the number of that pair.

    `place` is the change's, `stays` whether it does both under one key. They are in the order of keys and changes.
    """

    place: Numbers
    key: Hashes
    is_put: Flags
    stays: Flags

    def where(self, chosen: Flags | Numbers) -> _Steps:
        """Some of them, by flags or places."""
        return _Steps(self.place[chosen], self.key[chosen], self.is_put[chosen], self.stays[chosen])


def _unclear(changes: _Changes, places: Numbers, bucket: int, buckets: int) -> _Steps:
    """The steps of keys under which rows were put while others may have been there; of one bucket of keys."""
    kind, salts = changes.kind[places], mixed(changes.transaction[places].astype(np.uint64))
    old, new = (mixed(keys[places] ^ salts) for keys in (changes.old, changes.new))
    taken = np.flatnonzero(np.isin(kind, (_TAKE, _MOVE, _STAY)) & (old % np.uint64(buckets) == bucket))
    put = np.flatnonzero(np.isin(kind, (_PUT, _MOVE, _STAY)) & (new % np.uint64(buckets) == bucket))
    both, is_put = np.concatenate([taken, put]), np.repeat([False, True], [len(taken), len(put)])
    steps = _Steps(places[both], np.concatenate([old[taken], new[put]]), is_put, kind[both] == _STAY)
    _, key = np.unique(steps.key, return_inverse=True)
    arrived, left = np.bincount(key, is_put & ~steps.stays), np.bincount(key, ~is_put)
    steps = steps.where(((arrived > 0) & (left > 0))[key])
    order = np.lexsort((steps.is_put, steps.place, steps.key))
    return steps.where(order)


def _decide(steps: _Steps, images: Hashes, verdict: _Verdict) -> None:
    """Let the change of each key count that says what is there at the commit; `images` are hashes, by step."""
    count, signs = len(steps.key), np.where(steps.is_put, 1, -1)
    _, first, key = np.unique(steps.key, return_index=True, return_inverse=True)
    _, row = np.unique(mixed(steps.key ^ mixed(images)), return_inverse=True)
    net, total = np.bincount(row, signs)[row], np.bincount(key, signs)
    puts = _last(key, steps.is_put & (net > 0), len(first))
    # The row that the key had before, as it was put last, if the first change took it.
    same = _last(row, steps.is_put, count)[row[first]]
    puts = np.where((puts < 0) & (total == 0) & ~steps.is_put[first], same, puts)
    moves = ~steps.stays & ~steps.is_put
    takes = np.where((puts < 0) & (total < 0), _last(key, moves, len(first)), -1)
    verdict.takes[steps.place[moves]] = False
    verdict.puts[steps.place[steps.is_put]] = False
    verdict.takes[steps.place[takes[takes >= 0]]] = True
    verdict.puts[steps.place[puts[puts >= 0]]] = True


def _last(group: Numbers, chosen: Flags, groups: int) -> Numbers:
    """The last chosen step of each group, -1 for none."""
    last = np.full(groups, -1)
    np.maximum.at(last, group[chosen], np.flatnonzero(chosen))
    return last
