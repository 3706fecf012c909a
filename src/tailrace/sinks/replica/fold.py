"""Reduces many changes of a table to their net effect: for each key its last image or its deletion, without a loop.

A table without a key is a bag: an image counts how often it is to be added or taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import TableError
from tailrace.model.change import CREATE, DELETE, READ, TRUNCATE, UPDATE, ChangeBatch
from tailrace.model.native import native_rows, with_whole
from tailrace.model.table import TableSchema
from tailrace.sinks.replica.codes import canonical, row_codes
from tailrace.sinks.replica.lineage import Steps, resolve
from tailrace.sinks.replica.old_values import with_old_values

COUNT = "_tailrace_count"
KEEP = "_tailrace_keep_"
FROM = "_tailrace_from_"
# Optional columns of changes: whether the old row is taken away, and whether the new one is put, see settle.py.
TAKES, PUTS = "takes", "puts"
_PUTS = (CREATE, UPDATE, READ)


@dataclass(frozen=True)
class Net:
    """The net effect of some changes.

    `rows` has the table's columns in native types, and `_tailrace_count`: with a key, 1 puts the row and -1 deletes it
    (its other columns are null); without one, how many of this row are to be added (or taken away, negative).
    A column `_tailrace_keep_<name>` is true where the target's value stays; with `_tailrace_from_<key column>` filled,
    it is the value of the target's row of that key, as the key was changed. `cleared`: the target is emptied first.
    `lacking` says why the rows may differ from the source's after it.
    """

    table: TableSchema
    key: tuple[str, ...]
    rows: pa.Table
    cleared: bool
    lacking: str | None = None

    @property
    def kept(self) -> list[str]:
        """The columns that keep some of their values in the target."""
        return [name.removeprefix(KEEP) for name in self.rows.column_names if name.startswith(KEEP)]

    @property
    def moves(self) -> bool:
        """Whether some rows want values of the target's rows of other keys."""
        return any(name.startswith(FROM) for name in self.rows.column_names)

    @property
    def upserted(self) -> int:
        """How many rows are put."""
        return int(pc.sum(pc.max_element_wise(self.rows.column(COUNT), 0), min_count=0).as_py())

    @property
    def deleted(self) -> int:
        """How many rows are deleted, those that may not be there included."""
        return -int(pc.sum(pc.min_element_wise(self.rows.column(COUNT), 0), min_count=0).as_py())


def merge_key(table: TableSchema) -> tuple[str, ...]:
    """The columns that identify a row; empty: all of them, as a bag.

    The event key, unless old images do not hold it, or it may be null (message.key.columns), by which no row is found:
    then the identity.
    """
    may_be_null = any(table.column(name).schema.optional for name in table.key)
    if table.key and (not table.identity or (set(table.key) <= set(table.identity) and not may_be_null)):
        return table.key
    return table.identity if len(table.identity) < len(table.columns) else ()


def fold(batches: Sequence[ChangeBatch]) -> Net:
    """The net effect of batches of one TableSchema, in order. Raises TableError for a change without its old row."""
    rows, cleared = _after_truncate([batch.rows for batch in batches])
    table = with_whole(batches[0].table, [batch.column(name) for batch in rows for name in ("before", "after")])
    key = merge_key(table)
    changes = NativeChanges.of(table, key, rows)
    if key:
        lacking = nameless(changes)
    else:
        before, lacking = with_old_values(table, changes.op, changes.before, changes.after)
        changes = replace(changes, before=before)
    net = _keyed(changes) if key else _bag(changes)
    if cleared:
        net = net.filter(pc.greater(net.column(COUNT), 0))
        net = net.drop_columns([name for name in net.column_names if name.startswith((KEEP, FROM))])
    return Net(table, key, net, cleared, lacking)


def _after_truncate(batches: list[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], bool]:
    for index in reversed(range(len(batches))):
        places = np.flatnonzero(pc.equal(batches[index].column("op"), TRUNCATE))
        if len(places):
            return [batches[index].slice(int(places[-1]) + 1), *batches[index + 1 :]], True
    return batches, False


@dataclass(frozen=True)
class NativeChanges:
    """Changes of one table in native types; `old_key` is the former key where a key change says it.

    `unchanged` are flags by column, of values that the log did not repeat; `takes` and `puts` as in settle.py.
    """

    table: TableSchema
    key: tuple[str, ...]
    op: pa.Array
    before: pa.StructArray
    after: pa.StructArray
    old_key: pa.StructArray
    unchanged: dict[str, npt.NDArray[np.bool_]]
    takes: npt.NDArray[np.bool_]
    puts: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.op)

    def is_op(self, *ops: str) -> npt.NDArray[np.bool_]:
        """Which ones are of these operations."""
        return np.asarray(pc.is_in(self.op, pa.array(ops)), bool)

    @property
    def has_old(self) -> npt.NDArray[np.bool_]:
        """Whether there is an old image."""
        return np.asarray(self.before.is_valid(), bool)

    @property
    def has_old_key(self) -> npt.NDArray[np.bool_]:
        """Whether the old image has a value in each column of the key."""
        has_key = self.has_old
        for name in self.key:
            has_key = has_key & np.asarray(child(self.before, name).is_valid(), bool)
        return has_key

    @property
    def keys(self) -> list[pa.Array]:
        """The columns of the key: of all old images, then of all new ones, then the former keys."""
        return [
            pa.concat_arrays([child(self.before, name), child(self.after, name), child(self.old_key, name)])
            for name in self.key
        ]

    @staticmethod
    def of(table: TableSchema, key: tuple[str, ...], rows: list[pa.RecordBatch]) -> NativeChanges:
        """The changes of some batches, in order."""
        keys = replace(table, columns=tuple(table.column(name) for name in key))
        has_old_key = key == table.key
        return NativeChanges(
            table,
            key,
            pa.concat_arrays([batch.column("op") for batch in rows]),
            _rows(table, key, [batch.column("before") for batch in rows]),
            _rows(table, key, [batch.column("after") for batch in rows]),
            _rows(keys, key, [_other_key(batch, keys, has_old_key) for batch in rows]),
            _unchanged(table, rows),
            *(np.concatenate([_flags(batch, name) for batch in rows]) for name in (TAKES, PUTS)),
        )


def _rows(table: TableSchema, key: tuple[str, ...], images: list[pa.StructArray]) -> pa.StructArray:
    """Images in native types; keys that are lists or structs are identical where they are equal."""
    rows = native_rows(table, pa.concat_arrays(images))
    if not any(pa.types.is_nested(rows.type.field(name).type) for name in key):
        return rows
    columns = [
        canonical(values) if field.name in key and pa.types.is_nested(field.type) else values
        for field, values in zip(rows.type, rows.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(rows.type), mask=rows.is_null())


def _other_key(rows: pa.RecordBatch, keys: TableSchema, wanted: bool) -> pa.StructArray:
    if not wanted or "other_key" not in rows.schema.names:
        return pa.nulls(rows.num_rows, keys.row_type)
    other = rows.column("other_key")
    fields = [other.field(name) for name in keys.row_type.names]
    return pa.StructArray.from_arrays(fields, fields=list(keys.row_type), mask=other.is_null())


def _flags(rows: pa.RecordBatch, name: str) -> npt.NDArray[np.bool_]:
    if name not in rows.schema.names:
        return np.ones(rows.num_rows, bool)
    return np.asarray(rows.column(name), bool)


def _unchanged(table: TableSchema, rows: list[pa.RecordBatch]) -> dict[str, npt.NDArray[np.bool_]]:
    """By column, where its value was not repeated; columns that were always repeated are left out."""
    masks = {}
    for name in table.row_type.names:
        mask = np.concatenate([_unchanged_column(batch, name) for batch in rows])
        if mask.any():
            masks[name] = mask
    return masks


def _unchanged_column(rows: pa.RecordBatch, name: str) -> npt.NDArray[np.bool_]:
    if "unchanged" not in rows.schema.names or rows.schema.field("unchanged").type.get_field_index(name) < 0:
        return np.zeros(rows.num_rows, bool)
    return np.asarray(pc.struct_field(rows.column("unchanged"), name).fill_null(False), bool)


def _keyed(changes: NativeChanges) -> pa.Table:
    keys = changes.keys
    steps, codes = steps_of(changes, row_codes(keys, 3 * len(changes)))
    last = steps.last_of_each_key()
    puts, deletes = last[steps.is_put[last]], last[~steps.is_put[last]]
    images = changes.after.take(pa.array(steps.row[puts]))
    table = pa.Table.from_struct_array(images) if len(images) else _no_rows(changes)
    table = table.append_column(COUNT, pa.array(np.ones(len(puts), np.int64)))
    if changes.unchanged:
        table = _with_kept(changes, steps, puts, table, keys, codes)
    gone = changes.before.take(pa.array(steps.row[deletes]))
    deletions = pa.table([child(gone, name) for name in changes.key], names=list(changes.key))
    deletions = deletions.append_column(COUNT, pa.array(np.full(len(deletes), -1, np.int64)))
    return pa.concat_tables([table, deletions], promote_options="default")


def nameless(changes: NativeChanges) -> str | None:
    """Why the target may have other rows: some were changed while they had no value in what is the key by now."""
    count = int((changes.is_op(UPDATE, DELETE) & changes.has_old & ~changes.has_old_key).sum())
    return f"{count:,} rows were changed while they had no value in what is the key by now" if count else None


def steps_of(changes: NativeChanges, codes: npt.NDArray[np.int64]) -> tuple[Steps, npt.NDArray[np.int64]]:
    """Changes as deletions and puts of keys, in order; an update that changes the key is both.

    `codes` are those of `NativeChanges.keys`. Raises TableError for a deletion whose row the log does not contain.
    """
    before, after, old = np.split(codes, 3)
    has_before = changes.has_old_key
    deleted = changes.is_op(DELETE)
    if (deleted & ~changes.has_old).any():
        raise no_old_row(changes.table)
    moved = changes.is_op(UPDATE) & has_before & (before != after)
    has_old = changes.is_op(CREATE) & np.asarray(changes.old_key.is_valid(), bool)
    source = np.where(moved, before, np.where(has_old, old, after))
    gone = np.flatnonzero(((deleted & has_before) | moved) & changes.takes)
    put = np.flatnonzero(changes.is_op(*_PUTS) & changes.puts)
    order = np.argsort(np.concatenate([2 * gone, 2 * put + 1]))
    return Steps(
        row=np.concatenate([gone, put])[order],
        is_put=np.concatenate([np.zeros(len(gone), bool), np.ones(len(put), bool)])[order],
        key=np.concatenate([before[gone], after[put]])[order],
        source=np.concatenate([before[gone], source[put]])[order],
    ), codes


def _with_kept(
    changes: NativeChanges,
    steps: Steps,
    puts: npt.NDArray[np.int64],
    table: pa.Table,
    keys: list[pa.Array],
    codes: npt.NDArray[np.int64],
) -> pa.Table:
    """Values the log did not repeat: from the row's earlier change if it is here, else marked to stay."""
    origin = np.full(len(puts), -1, np.int64)
    for name, mask in changes.unchanged.items():
        holder, kept, root_key = resolve(steps, puts, mask)
        values = child(changes.after, name).take(pa.array(steps.row[holder]))
        values = pc.if_else(pa.array(kept), pa.scalar(None, values.type), values)
        table = table.set_column(table.schema.get_field_index(name), name, values)
        table = table.append_column(KEEP + name, pa.array(kept))
        origin = np.where(kept & (root_key != steps.key[puts]), root_key, origin)
    if (origin >= 0).any():
        first = np.unique(codes, return_index=True)[1]
        where = pa.array(first[np.maximum(origin, 0)], mask=origin < 0)
        for name, values in zip(changes.key, keys, strict=True):
            table = table.append_column(FROM + name, values.take(where))
    return table


def _bag(changes: NativeChanges) -> pa.Table:
    gone = changes.is_op(UPDATE, DELETE)
    if (gone & ~changes.has_old).any():
        raise no_old_row(changes.table)
    put = changes.is_op(*_PUTS)
    images = pa.concat_arrays([changes.before.filter(pa.array(gone)), changes.after.filter(pa.array(put))])
    if not len(images):
        return _no_rows(changes).append_column(COUNT, pa.array([], pa.int64()))
    codes = row_codes(images.flatten(), len(images))
    signs = np.concatenate([np.full(gone.sum(), -1), np.ones(put.sum(), np.int64)])
    _, first = np.unique(codes, return_index=True)
    net = np.zeros(len(first), np.int64)
    np.add.at(net, codes, signs)
    table = pa.Table.from_struct_array(images.take(pa.array(first)))
    table = table.append_column(COUNT, pa.array(net))
    return table.filter(pa.array(net != 0))


def child(struct: pa.StructArray, name: str) -> pa.Array:
    """A struct's field, null where the struct is."""
    return pc.struct_field(struct, name)


def _no_rows(changes: NativeChanges) -> pa.Table:
    return pa.schema(list(changes.after.type)).empty_table()


def no_old_row(table: TableSchema) -> TableError:
    """The error of a change of which the log does not say the row."""
    return TableError(
        "a row was changed or deleted, but the log does not say which",
        where=str(table.id),
        remedy=f"ALTER TABLE {table.id} REPLICA IDENTITY FULL (or give it a primary key), then run `tailrace retry`; "
        "with on_error=stop, take a new snapshot of it",
    )
