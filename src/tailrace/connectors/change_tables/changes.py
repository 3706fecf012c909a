"""Orders rows of change tables as the log does: pairs update rows, numbers changes, marks transaction boundaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from heapq import heappop, heapreplace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DecodeError
from tailrace.model.change import CREATE, DELETE, UPDATE
from tailrace.model.marks import BEGIN, END, MARKS

Ints = npt.NDArray[np.int64]
# What a row of a change table is.
DELETED, INSERTED, BEFORE, AFTER, AFTER_ALONE = 1, 2, 3, 4, 5
_KINDS = (DELETED, INSERTED, BEFORE, AFTER, AFTER_ALONE)
# The places around a change, each of one thing: BEGIN, a new structure, the change itself, the second event of a
# changed key (events/keychange.py), END. The next change is a step behind this one.
BEGIN_PLACE, STRUCTURE_PLACE, END_PLACE = -2, -1, 2
ORDER_STEP = 5
_ENOUGH = 20_000


@dataclass(frozen=True)
class ChangeRows:
    """Rows of one change table, by commit, command, change and kind.

    `commit` and `change` are LSNs as texts, `kind` is one of the five above, `ts_us` the
    transaction's time, `images` the captured columns, `mask` which columns an update touched, as the database says it.
    """

    commit: pa.Array
    change: pa.Array
    kind: Ints
    ts_us: pa.Array
    images: pa.StructArray
    mask: pa.Array

    def __len__(self) -> int:
        return len(self.kind)

    def slice(self, start: int, stop: int) -> ChangeRows:
        """Some of the rows."""
        size = stop - start
        arrays = {
            name: getattr(self, name).slice(start, size) for name in ("commit", "change", "ts_us", "images", "mask")
        }
        return ChangeRows(kind=self.kind[start:stop], **arrays)

    @staticmethod
    def joined(parts: Sequence[ChangeRows]) -> ChangeRows:
        """Rows one after another."""
        if len(parts) == 1:
            return parts[0]
        names = ("commit", "change", "ts_us", "images", "mask")
        arrays = {name: pa.concat_arrays([getattr(part, name) for part in parts]) for name in names}
        return ChangeRows(kind=np.concatenate([part.kind for part in parts]), **arrays)


@dataclass(frozen=True)
class ChangeTableRows:
    """Changes of one change table: an update is one of them. `order` and `serial` are theirs among all tables.

    `rows` counts the rows of the change table that each is made of.
    """

    op: pa.Array
    commit: pa.Array
    change: pa.Array
    ts_us: pa.Array
    _: KW_ONLY
    before: pa.StructArray
    after: pa.StructArray
    mask: pa.Array
    rows: Ints
    order: Ints
    serial: Ints

    def __len__(self) -> int:
        return len(self.op)


def paired(rows: ChangeRows, where: str) -> ChangeTableRows:
    """The changes of rows that hold whole pairs. Raises DecodeError for half a pair, and for another kind of row."""
    kind = rows.kind
    first = np.flatnonzero(kind == BEFORE)
    second = np.flatnonzero(kind == AFTER)
    if len(first) != len(second) or (first + 1 != second).any() or not np.isin(kind, _KINDS).all():
        raise _broken(rows, first, second, where)
    if (
        len(first)
        and not pc.all(pc.equal(rows.change.take(pa.array(first)), rows.change.take(pa.array(second)))).as_py()
    ):
        raise _broken(rows, first, second, where)
    at = np.flatnonzero(kind != BEFORE)
    last = pa.array(at)
    op = kind[at]
    has_before, has_after = ~np.isin(op, (INSERTED, AFTER_ALONE)), op != DELETED
    old = pa.array(np.where(op == AFTER, at - 1, at), mask=~has_before)
    new = pa.array(at, mask=~has_after)
    nothing = np.zeros(len(at), np.int64)
    return ChangeTableRows(
        op=pa.array([DELETE, CREATE, UPDATE], pa.string()).take(pa.array(np.minimum(op, 3) - 1)),
        commit=rows.commit.take(last),
        change=rows.change.take(last),
        ts_us=rows.ts_us.take(last),
        before=rows.images.take(old),
        after=rows.images.take(new),
        mask=rows.mask.take(last),
        rows=np.where(op == AFTER, 2, 1).astype(np.int64),
        order=nothing,
        serial=nothing,
    )


def _broken(rows: ChangeRows, first: Ints, second: Ints, where: str) -> DecodeError:
    alone = [row for row in first.tolist() if row + 1 not in second.tolist()]
    alone += [row for row in second.tolist() if row - 1 not in first.tolist()]
    alone += np.flatnonzero(~np.isin(rows.kind, _KINDS)).tolist()
    row = alone[0] if alone else 0
    return DecodeError(
        f"a row of kind {int(rows.kind[row])} has no partner: an update is a row of kind 3 and then one of kind 4",
        where=f"{where}, commit {rows.commit[row].as_py()}, change {rows.change[row].as_py()}",
        remedy="look at the change table there; to continue, take a new snapshot of the table by a signal",
    )


def in_log_order(tables: Sequence[ChangeTableRows], begin: int) -> list[ChangeTableRows]:
    """The changes of several tables with their order from `begin` on, and with serial numbers.

    By commit, then change; those of one table keep their order. A serial number counts the rows of one change: 2 for
    an update, 1 and 2 for the two events of a new key (as Debezium's `event_serial_no`).
    """
    sizes = [len(each) for each in tables]
    if not sum(sizes):
        return list(tables)
    commit = pa.concat_arrays([each.commit for each in tables]).dictionary_encode()
    change = pa.concat_arrays([each.change for each in tables]).dictionary_encode()
    commits, changes = _ranks(commit), _ranks(change)
    # A table's rows are sorted by command before the change: its changes must not overtake one another.
    table = np.repeat(np.arange(len(tables)), sizes)
    by = np.lexsort((np.arange(len(table)), _never_back(changes, commits, table), commits))
    place = np.empty(len(by), np.int64)
    place[by] = np.arange(len(by))
    rows = np.concatenate([each.rows for each in tables])[by]
    new = np.ones(len(by), np.bool_)
    new[1:] = (commits[by][1:] != commits[by][:-1]) | (changes[by][1:] != changes[by][:-1])
    total = np.cumsum(rows)
    before = np.maximum.accumulate(np.where(new, total - rows, 0))
    serial = np.empty(len(by), np.int64)
    serial[by] = total - before
    order = begin + ORDER_STEP * place
    bounds = np.cumsum([0, *sizes])
    return [
        replace(each, order=order[first:last], serial=serial[first:last])
        for each, first, last in zip(tables, bounds[:-1], bounds[1:], strict=True)
    ]


def _never_back(changes: Ints, commits: Ints, table: Ints) -> Ints:
    """Within a transaction and a table the highest change so far: a change that goes back waits for its turn."""
    group = np.flatnonzero(np.concatenate([[True], (commits[1:] != commits[:-1]) | (table[1:] != table[:-1])]))
    lifted = changes + np.repeat(np.arange(len(group)), np.diff(group, append=len(changes))) * (changes.max() + 1)
    return np.asarray(np.maximum.accumulate(lifted) % (changes.max() + 1), np.int64)


def _ranks(values: pa.DictionaryArray) -> Ints:
    """Numbers in the order of the texts."""
    order = pc.array_sort_indices(values.dictionary).to_numpy(zero_copy_only=False)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    by_row: Ints = ranks[values.indices.to_numpy(zero_copy_only=False)]
    return by_row


def marks(tables: Sequence[ChangeTableRows]) -> pa.RecordBatch:
    """BEGIN and END of each transaction, in log order (schema MARKS)."""
    transaction_marks = [
        {"order": place, "status": status, "id": commit, "ts_us": ts_us}
        for commit, first, last, ts_us in _transactions(tables)
        for place, status in ((first + BEGIN_PLACE, BEGIN), (last + END_PLACE, END))
    ]
    return pa.RecordBatch.from_pylist(transaction_marks, schema=MARKS)


def _transactions(tables: Sequence[ChangeTableRows]) -> list[tuple[str, int, int, int]]:
    """Each transaction: its commit, and order of its first change, of its last one, and its time."""
    by_commit: dict[str, tuple[int, int, int]] = {}
    for each in tables:
        if not len(each):
            continue
        # A table's rows are in the order of commits, so that a transaction is a run of them.
        runs = pc.run_end_encode(each.commit)
        ends = runs.run_ends.to_numpy()
        starts = np.concatenate([[0], ends[:-1]])
        times = np.minimum.reduceat(each.ts_us.to_numpy(zero_copy_only=False), starts).tolist()
        for commit, low, high, ts_us in zip(
            runs.values.to_pylist(), each.order[starts].tolist(), each.order[ends - 1].tolist(), times, strict=True
        ):
            other = by_commit.get(commit, (low, high, ts_us))
            by_commit[commit] = min(low, other[0]), max(high, other[1]), min(ts_us, other[2])
    return [(commit, *by_commit[commit]) for commit in sorted(by_commit)]


def whole_transactions(
    cursors: Sequence[Iterator[ChangeRows]], enough: int = _ENOUGH
) -> Iterator[list[ChangeRows | None]]:
    """Rows of whole transactions from several cursors, one item for each cursor, None where it has none of these.

    Up to a commit that every cursor has passed: the one that is furthest back is read next. Rows are taken when
    there are `enough` or no more, so that many tables with few rows are not gone through for every one of them.
    """
    held: list[list[ChangeRows]] = [[] for _ in cursors]
    # Each cursor with the commit up to which it was read, whose transaction may continue.
    heap = [("", cursor) for cursor in range(len(cursors))]
    rows = 0
    passed: str | None = ""
    while heap:
        _, behind = heap[0]
        block = next(cursors[behind], None)
        if block is None:
            heappop(heap)
        elif len(block):
            held[behind].append(block)
            rows += len(block)
            heapreplace(heap, (str(block.commit[-1].as_py()), behind))
        limit = heap[0][0] if heap else None
        if limit == passed or (limit is not None and rows < enough):
            continue
        whole = [_taken(blocks, limit) for blocks in held]
        rows, passed = sum(len(block) for blocks in held for block in blocks), limit
        if any(each is not None for each in whole):
            yield whole


def _taken(blocks: list[ChangeRows], limit: str | None) -> ChangeRows | None:
    """The rows of earlier commits, or all without a limit; they are taken from the blocks."""
    taken: list[ChangeRows] = []
    while blocks:
        block = blocks[0]
        size = len(block) if limit is None else int(pc.sum(pc.less(block.commit, limit)).as_py() or 0)
        if size:
            taken.append(block.slice(0, size))
        if size < len(block):
            blocks[0] = block.slice(size, len(block))
            break
        blocks.pop(0)
    return ChangeRows.joined(taken) if taken else None
