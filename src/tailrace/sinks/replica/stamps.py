"""Stamps each change with its time and its number among all changes of its table.

The time of a change is that of its commit, or of an earlier one in the log whose clock said a later time: so times
ascend as the log does, and the changes up to any time are those of a range of the log. A row that is read amid the log
has the time of the change before it: the log may be behind the clock, and what follows there is older.

The place is a text that sorts as the log does: the position of the commit and the number of the table's change in it;
of a row that was read, how far the table's log was written then, and the number of the row among all that were read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.shapes import sortable
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.sinks.replica.marks import Extent, LogPlace, TableProgress, Tally
from tailrace.sinks.replica.modes import STAMP

Times = npt.NDArray[np.int64]
Placed = tuple[ChangeBatch, LogPlace | None]

_DIGITS = 12


@dataclass(frozen=True)
class Stamps:
    """Of each change its time (microseconds since 1970), and columns by what they hold, see modes.py.

    `tally` is what later changes go on from.
    """

    at: Times
    columns: dict[str, pa.Array]
    tally: Tally

    def taken(self, rows: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
        """The columns of some changes."""
        return {name: values.take(pa.array(rows)) for name, values in self.columns.items()}


def start(progress: TableProgress, extent: Extent, *, begins: bool) -> LogPlace | None:
    """How far a table's log is written before a part; with the first rows of a snapshot that is as far as they go."""
    places = [progress.place]
    if begins and extent.read is not None and extent.read.position is not None:
        places.append(LogPlace(extent.read.position, 0))
    return max((place for place in places if place is not None), default=None)


def stamped(placed: Sequence[Placed], tally: Tally, begun: LogPlace | None) -> Stamps:
    """The stamps of batches in order, the first one of which follows what `tally` says; see `start` for `begun`."""
    batches = [batch for batch, _ in placed]
    own = np.concatenate([np.zeros(0, np.int64), *(_times(batch, tally) for batch in batches)])
    told, floor = own, np.iinfo(np.int64).min
    if tally.clock is not None:
        lies_amid = np.repeat([_lies_amid_the_log(batch) for batch in batches], [len(batch) for batch in batches])
        told, floor = np.where(lies_amid, floor, own), tally.clock
    at = np.maximum(np.maximum.accumulate(told), floor) if len(own) else own
    sequences, reads = [pa.array([], pa.string())], tally.reads
    for batch, place in placed:
        if batch.read is None:
            sequences.append(_logged(batch.rows.column(COMMIT), place))
            continue
        base = max((each for each in (place, begun) if each is not None), default=None)
        sequences.append(read_sequences(base, reads, len(batch)))
        reads += len(batch)
    columns = {
        "op": _joined([batch.rows.column("op") for batch in batches], pa.string()),
        "commit_time": pa.array(own).cast(STAMP),
        "transaction": _joined([_transaction(batch) for batch in batches], pa.string()),
        "sequence": _joined(sequences, pa.string()),
    }
    return Stamps(at, columns, replace(tally, clock=int(at[-1]) if len(at) else tally.clock, reads=reads))


def now(tally: Tally) -> int:
    """Now, unless a change had a later time. Microseconds since 1970."""
    present = time.time_ns() // 1000
    return present if tally.clock is None else max(present, tally.clock)


def read_sequences(base: LogPlace | None, first: int, count: int) -> pa.Array:
    """The sequences of rows that were read when the log was written up to a place, so many having been read before."""
    commit, rows = ("", 0) if base is None else (sortable(pa.array([base.commit]))[0].as_py(), base.rows)
    return _text([f"{commit}.{rows:0{_DIGITS}}."], np.arange(first + 1, first + count + 1))


def _logged(commits: pa.Array, place: LogPlace | None) -> pa.Array:
    """The sequences of changes of the log that begin at a place."""
    begins = np.asarray(pc.not_equal(commits[1:], commits[:-1]), bool)
    firsts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(begins) + 1])
    numbers = 1 + np.arange(len(commits)) - np.repeat(firsts, np.diff(firsts, append=len(commits)))
    if place is not None and place.commit == commits[0].as_py():
        numbers[: int(firsts[1]) if len(firsts) > 1 else len(commits)] += place.rows
    return _text([sortable(commits), "."], numbers)


def _text(before: Sequence[pa.Array | str], numbers: npt.NDArray[np.int64]) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), _DIGITS, "0")
    return pc.binary_join_element_wise(*before, digits, "")


def _lies_amid_the_log(batch: ChangeBatch) -> bool:
    """Whether rows were read while the log went on, and not as of a position where it goes on."""
    return batch.read is not None and batch.read.snapshot is None


def _times(batch: ChangeBatch, tally: Tally) -> Times:
    missing = 0 if tally.clock is None else tally.clock
    return np.asarray(batch.rows.column("ts_us").fill_null(missing), np.int64)


def _transaction(batch: ChangeBatch) -> pa.Array:
    block = batch.column("transaction")
    return pa.nulls(len(batch), pa.string()) if block is None else pc.struct_field(block, "id")


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([pa.array([], kind), *(part.cast(kind) for part in parts)])
