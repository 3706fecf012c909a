"""Reads the rows of the target that a part needs: old rows of changed keys, and rows equal to removed ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.sinks.replica.codes import Codes, row_codes
from tailrace.sinks.replica.fold import COUNT, FROM, KEEP, Net
from tailrace.sinks.replica.table import Table


def with_moved(target: Table, net: Net, beside: Table | None = None, end: str | None = None) -> tuple[pa.Table, int]:
    """The net rows, with the values that a row under a new key keeps from its old one.

    A row that is not in the target may be in another table `beside` it, whose columns have the same types. The number
    is that of rows which are in neither: their values are null. `end`: rows count alone where that column is null.
    """
    rows = net.rows
    wanted = rows.select([FROM + name for name in net.key]).rename_columns(list(net.key))
    moved = wanted.column(0).is_valid()
    old_rows = matching(target, wanted.filter(moved), net.key, end)
    if beside is not None and beside.schema == old_rows.schema:
        old_rows = pa.concat_tables([old_rows, matching(beside, wanted.filter(moved), net.key)])
    place = places_of(
        row_codes(joined([old_rows, wanted], net.key), old_rows.num_rows + rows.num_rows), old_rows.num_rows
    )
    lost = np.zeros(rows.num_rows, bool)
    for name in net.kept:
        values, kept = rows.column(name), rows.column(KEEP + name)
        taken = pc.and_(kept, moved)
        lost |= np.asarray(pc.and_(taken, place.is_null()), bool)
        held = old_rows.column(name).combine_chunks().take(place).cast(values.type)
        rows = rows.set_column(rows.column_names.index(name), name, pc.if_else(taken, held, values))
        kept = pc.and_(kept, pc.invert(moved))
        rows = rows.set_column(rows.column_names.index(KEEP + name), KEEP + name, kept)
    return rows, int(lost.sum())


def places_of(codes: Codes, split: int) -> pa.Array:
    """For each code after the split its place before it, null where it is not there."""
    distinct, first = np.unique(codes[:split], return_index=True)
    at = np.searchsorted(distinct, codes[split:])
    missing = np.append(distinct, -1)[at] != codes[split:]
    return pa.array(np.append(first, 0)[at], mask=missing)


def matching(target: Table, wanted: pa.Table, names: Sequence[str], end: str | None = None) -> pa.Table:
    """The target's rows that equal one of some rows in the named columns; the target is read as a stream.

    `end`: those alone that are null in this column.
    """
    schema = target.schema
    kinds = pa.schema([schema.field(name) for name in names])
    asked = wanted.select(list(names)).cast(kinds)
    matches = [schema.empty_table()]
    for batch in target.scan():
        rows = pa.Table.from_batches([batch]).cast(schema)
        if end is not None:
            rows = rows.filter(rows.column(end).is_null())
        codes = row_codes(joined([rows, asked], names), rows.num_rows + asked.num_rows)
        hits = np.isin(codes[: rows.num_rows], codes[rows.num_rows :])
        if hits.any():
            matches.append(rows.filter(pa.array(hits)))
    return pa.concat_tables(matches)


def without(rows: pa.Table, gone: pa.Table, names: Sequence[str]) -> pa.Table:
    """Rows without as many of each image as were taken away."""
    codes = row_codes(joined([rows, gone], names), rows.num_rows + gone.num_rows)
    have, taken = codes[: rows.num_rows], codes[rows.num_rows :]
    budget = np.zeros(int(codes.max()) + 1, np.int64)
    budget[taken] = -gone.column(COUNT).to_numpy()
    order = np.argsort(have, kind="stable")
    _, starts, sizes = np.unique(have[order], return_index=True, return_counts=True)
    rank = np.empty(len(have), np.int64)
    rank[order] = np.arange(len(have)) - np.repeat(starts, sizes)
    return rows.filter(pa.array(rank >= budget[have]))


def joined(tables: list[pa.Table], names: Sequence[str]) -> list[pa.Array]:
    """Columns of several tables end to end, in the types of the first."""
    return [
        pa.concat_arrays(
            [chunk for table in tables for chunk in table.column(name).cast(kind).chunks] or [pa.nulls(0, kind)]
        )
        for name, kind in ((name, tables[0].schema.field(name).type) for name in names)
    ]
