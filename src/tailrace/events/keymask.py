"""Masks images of rows whose event key stays plain, as the reference engine does (`compat.faults`)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import PLAIN_KEY, ChangeBatch
from tailrace.model.masked import applied
from tailrace.model.table import TableSchema


def mask_images(batch: ChangeBatch) -> ChangeBatch:
    """The batch with the masks of its key columns applied, and the key as it was in a column of its own.

    Comes after `split_key_changes`, which compares the keys themselves. Without such masks the batch is as it was.
    """
    table = batch.table
    if all(column.masking is None for column in table.columns):
        return batch
    columns = dict(zip(batch.rows.schema.names, batch.rows.columns, strict=True))
    before, after = columns["before"], columns["after"]
    columns[PLAIN_KEY] = pc.if_else(after.is_valid(), _key(after, table), _key(before, table))
    columns |= {"before": _masked(before, table), "after": _masked(after, table)}
    bare = replace(table, columns=tuple(replace(column, masking=None) for column in table.columns))
    return replace(batch, table=bare, rows=pa.record_batch(list(columns.values()), names=list(columns)))


def _key(image: pa.StructArray, table: TableSchema) -> pa.StructArray:
    columns = [image.field(image.type.get_field_index(name)) for name in table.key]
    return pa.StructArray.from_arrays(columns, names=list(table.key), mask=image.is_null())


def _masked(image: pa.StructArray, table: TableSchema) -> pa.StructArray:
    columns = [
        image.field(place) if column.masking is None else applied(image.field(place), column.masking)
        for place, column in enumerate(table.columns)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(table.row_type), mask=image.is_null())
