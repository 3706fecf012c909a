"""Turns changes of a table into versions of its rows: from when to when each one held, without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import TableError
from tailrace.model.change import TRUNCATE
from tailrace.model.native import with_whole
from tailrace.model.table import TableSchema
from tailrace.sinks.replica.codes import row_codes
from tailrace.sinks.replica.fold import COUNT, FROM, KEEP, NativeChanges, Net, child, merge_key, nameless, steps_of
from tailrace.sinks.replica.lineage import Steps, resolve
from tailrace.sinks.replica.modes import STAMP, Mode
from tailrace.sinks.replica.stamps import Placed, Stamps

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Versions:
    """What changes do to a table of versions.

    `net.rows` are versions that begin, with the columns of the mode; one that keeps values of the table's current
    version of a key names that key, see Net. `ends` are keys and the time at which their current versions end;
    `cleared` is when those of all other keys do (microseconds since 1970), None: they stay. `deleted` counts rows.
    """

    net: Net
    ends: pa.Table
    cleared: int | None
    deleted: int


def versions(placed: Sequence[Placed], stamps: Stamps, mode: Mode, replaces: int | None) -> Versions:
    """The versions of batches of one TableSchema, in order; `replaces`: the time when all that were there end.

    Raises TableError for a table without a key, and for a deletion without its old row.
    """
    rows = [batch.rows for batch, _ in placed]
    table = with_whole(placed[0][0].table, [batch.column(name) for batch in rows for name in ("before", "after")])
    key = merge_key(table)
    if not key:
        raise _without_key(table)
    changes = NativeChanges.of(table, key, rows)
    empties = changes.is_op(TRUNCATE)
    borders = np.concatenate([[] if replaces is None else [replaces], stamps.at[empties]]).astype(np.int64)
    eras = np.cumsum(empties) + (replaces is not None)
    keys = changes.keys
    plain, codes = steps_of(changes, row_codes(keys, 3 * len(changes)))
    width = int(codes.max(initial=0)) + 1
    shift = eras[plain.row] * width
    steps = Steps(plain.row, plain.is_put, plain.key + shift, plain.source + shift)
    times, follower = stamps.at[steps.row], _followers(steps)
    last_era = np.append(borders, 0)[np.minimum(steps.key // width, len(borders))]
    until = np.where(follower >= 0, times[follower], last_era)
    is_open = (follower < 0) & (steps.key // width >= len(borders))
    puts = np.flatnonzero(steps.is_put)
    images = changes.after.take(pa.array(steps.row[puts]))
    put_rows = pa.Table.from_struct_array(images) if len(images) else pa.schema(list(changes.after.type)).empty_table()
    held = {
        **stamps.taken(steps.row[puts]),
        "valid_from": _stamps(times[puts]),
        "valid_to": _stamps(until[puts], is_open[puts]),
    }
    for what, name in mode.columns.items():
        put_rows = put_rows.append_column(name, held[what])
    put_rows = put_rows.append_column(COUNT, pa.array(np.ones(len(puts), np.int64)))
    if changes.unchanged:
        put_rows = _with_kept(changes, steps, puts, put_rows, keys, codes)
    first = _firsts(steps)
    first = first[steps.key[first] < width] if replaces is None else first[:0]
    ends = _keys_at(key, keys, codes, steps.key[first])
    ends = ends.append_column(str(mode.end), _stamps(times[first]))
    cleared = int(borders[0]) if len(borders) else None
    return Versions(
        Net(table, key, put_rows, bool(empties.any()), nameless(changes)), ends, cleared, int((~steps.is_put).sum())
    )


def _followers(steps: Steps) -> Numbers:
    """For each step the next one of its key, -1 for none."""
    order = np.argsort(steps.key, kind="stable")
    next_of_key = np.full(len(order), -1)
    same = steps.key[order[1:]] == steps.key[order[:-1]]
    next_of_key[order[:-1][same]] = order[1:][same]
    return next_of_key


def _firsts(steps: Steps) -> Numbers:
    """The first step of each key."""
    return np.unique(steps.key, return_index=True)[1]


def _keys_at(key: Sequence[str], keys: Sequence[pa.Array], codes: Numbers, wanted: Numbers) -> pa.Table:
    """The keys of some codes, of which -1 is null."""
    places = np.unique(codes, return_index=True)[1]
    at = pa.array(places[np.maximum(wanted, 0)] if len(places) else wanted, mask=wanted < 0)
    return pa.table([values.take(at) for values in keys], names=list(key))


def _with_kept(
    changes: NativeChanges, steps: Steps, puts: Numbers, rows: pa.Table, keys: Sequence[pa.Array], codes: Numbers
) -> pa.Table:
    """Values that the log did not repeat: from the version before if it is here, else marked to be the table's."""
    origin = np.full(len(puts), -1)
    for name, mask in changes.unchanged.items():
        holder, kept, root = resolve(steps, puts, mask)
        values = child(changes.after, name).take(pa.array(steps.row[holder]))
        values = pc.if_else(pa.array(kept), pa.scalar(None, values.type), values)
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
        rows = rows.append_column(KEEP + name, pa.array(kept))
        origin = np.where(kept, root, origin)
    # After the table was emptied no older row is left that could have the value.
    origin = np.where(origin > codes.max(initial=0), -1, origin)
    wanted = _keys_at(changes.key, keys, codes, origin)
    for name in changes.key:
        rows = rows.append_column(FROM + name, wanted.column(name))
    return rows


def _stamps(times: Numbers, is_null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.array(times, pa.int64(), mask=is_null).cast(STAMP)


def _without_key(table: TableSchema) -> TableError:
    return TableError(
        "the table has no key, by which the versions of a row belong together",
        where=str(table.id),
        remedy="give it a primary key, or its columns in message.key.columns, then run `tailrace retry`; or leave it "
        "out of this pipeline, and keep it by another one with mode: changes",
    )
