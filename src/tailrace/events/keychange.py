"""Splits updates that change the key into a delete of the old key and a create of the new one, as Debezium does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.equality import same
from tailrace.events.payload import required
from tailrace.model.arrow import flags, indices, literal
from tailrace.model.change import CREATE, DELETE, UPDATE, ChangeBatch

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def split_key_changes(batch: ChangeBatch, *, has_zeros: bool) -> ChangeBatch:
    """The batch with each key change as `d` (order as it was) and `c` (order + 1), `other_key` filled on both.

    Keys are compared only where the old image holds all of them, or with `has_zeros` always: there a key column
    that the old image lacks reads as its type's zero value. Without such updates the batch is
    returned as it is.
    """
    table = batch.table
    whole = bool(table.key) and set(table.key) <= set(table.identity)
    if not table.key or not (whole or has_zeros) or not len(batch):
        return batch
    before, after = batch.rows.column("before"), batch.rows.column("after")
    if before.null_count == len(batch) or after.null_count == len(batch):
        return batch
    changed = flags(before.is_valid()) & flags(after.is_valid())
    if changed.any():
        changed &= _keys_differ(batch, has_zeros)
    return _split(batch, changed) if changed.any() else batch


def _keys_differ(batch: ChangeBatch, has_zeros: bool) -> Bools:
    differ = np.zeros(len(batch), np.bool_)
    for name in batch.table.key:
        column = batch.table.column(name)
        old, new = (_field(batch.rows.column(image), name) for image in ("before", "after"))
        if has_zeros:
            old = required(old, column.schema)
        differ |= ~same(old, new, column.schema)
    return differ


def _field(struct: pa.StructArray, name: str) -> pa.Array:
    return struct.field(struct.type.get_field_index(name))


def _split(batch: ChangeBatch, changed: Bools) -> ChangeBatch:
    """Repeat the changed rows; of the two, the first loses its after image and the second its before image."""
    index = np.repeat(np.arange(len(batch)), changed.astype(np.int64) + 1)
    half = changed[index]
    create = np.concatenate([[False], index[1:] == index[:-1]])
    delete = half & ~create
    rows = batch.rows.take(indices(index))
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    ops = pa.array([None, DELETE, CREATE], pa.string()).take(indices(delete + 2 * create))
    columns["op"] = pc.coalesce(ops, columns["op"])
    columns["order"] = pc.add(columns["order"], indices(create.astype(np.int64)))
    columns["other_key"] = _other_keys(batch, index, delete, create)
    columns["before"] = batch.rows.column("before").take(indices(index, create))
    columns["after"] = batch.rows.column("after").take(indices(index, delete))
    if "unchanged" in columns:
        columns["unchanged"] = batch.rows.column("unchanged").take(indices(index, delete))
    return batch.with_rows(pa.record_batch(list(columns.values()), names=list(columns)))


def _other_keys(batch: ChangeBatch, index: Integers, delete: Bools, create: Bools) -> pa.Array:
    fields, columns = [], []
    places = indices(index + np.where(create, 0, len(batch)), ~(delete | create))
    for name in batch.table.key:
        both = pa.concat_arrays([_field(batch.rows.column(image), name) for image in ("before", "after")])
        fields.append(pa.field(name, both.type))
        columns.append(both.take(places))
    absent = pa.array(~(delete | create), pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=fields, mask=absent)


def with_identity(batch: ChangeBatch) -> ChangeBatch:
    """Updates that came without an old row get one of the identity's columns, which they did not change.

    So Debezium 1 did (`compat.version`). Must come before `split_key_changes`, which compares whole keys.
    """
    before, after = batch.rows.column("before"), batch.rows.column("after")
    lacking = flags(pc.and_(pc.equal(batch.rows.column("op"), literal(UPDATE)), before.is_null()))
    identity = set(batch.table.identity)
    if not lacking.any() or not identity:
        return batch
    columns = [
        after.field(place) if column.name in identity else pa.nulls(len(batch), column.arrow)
        for place, column in enumerate(batch.table.columns)
    ]
    kept = pa.StructArray.from_arrays(columns, fields=list(batch.table.row_type))
    pick = np.arange(len(batch)) + len(batch) * lacking
    place = batch.rows.schema.get_field_index("before")
    column = pa.concat_arrays([before, kept]).take(indices(pick))
    return batch.with_rows(batch.rows.set_column(place, "before", column))
