"""Estimates the size of records in memory as the reference does (ApproximateStructSizeCalculator)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import TransformError
from tailrace.events.records import Integers, RecordPart, Records
from tailrace.model.arrow import entries_of, flags
from tailrace.model.text.binary import unscaled

# Bytes of empty objects, and of what each entry of an offset, header, field or element adds.
_STRUCT, _STRING, _BYTES, _ARRAY, _MAP, _PRIMITIVE = 56, 56, 24, 64, 88, 24
_ENTRY, _REFERENCE, _TIMESTAMP = 100, 8, 8


def require_struct_key(records: Records, where: str) -> None:
    """Keys that are no structs cannot be measured. Raises TransformError."""
    key = records.key
    if key is not None and key.schema.type != "struct" and key.values.null_count < len(records):
        raise TransformError(
            f"the key is {key.schema.type}, not a struct",
            where=where,
            remedy="Put it before the transforms that replace the key.",
        )


def record_sizes(records: Records) -> Integers:
    """Estimated bytes by record, of keys and values that are structs or null."""
    count = len(records)
    sizes = np.full(count, _TIMESTAMP, np.int64)
    if records.offset_entries is not None:
        sizes += records.offset_entries * _ENTRY
    for header in records.headers:
        sizes += header.where(count) * _ENTRY
    for side in (records.key, records.value):
        if side is not None and side.schema.type == "struct":
            sizes += _sizes(side)
    return sizes + _lengths(records.topic)


def _sizes(part: RecordPart) -> Integers:
    """Bytes by value. Numbers and booleans have a size even where they are null, other nulls have none."""
    kind, values = part.schema.type, part.values
    if kind == "struct":
        sizes = np.full(len(values), _STRUCT, np.int64)
        for _, field in part.fields():
            sizes += _REFERENCE + _sizes(field)
    elif kind == "string":
        sizes = _STRING + _lengths(values)
    elif kind == "bytes":
        sizes = _BYTES + _lengths(unscaled(values) if pa.types.is_decimal(values.type) else values)
    elif kind in ("array", "map"):
        sizes = _of_lists(part)
    else:
        return np.full(len(values), _PRIMITIVE, np.int64)
    return np.where(flags(values.is_valid()), sizes, 0)


def _of_lists(part: RecordPart) -> Integers:
    schema, lists = part.schema, part.values
    if schema.keys is not None and schema.values is not None:
        lists, keys, items = entries_of(lists)
        sizes = _sizes(RecordPart(schema.keys, keys)) + _sizes(RecordPart(schema.values, items))
        return _MAP + _sums(lists, 2 * _REFERENCE + sizes)
    assert schema.items is not None
    return _ARRAY + _sums(lists, _REFERENCE + _sizes(RecordPart(schema.items, lists.flatten())))


def _sums(lists: pa.Array, sizes: Integers) -> Integers:
    """The sums of the items' sizes by list."""
    ends = np.cumsum(_numbers(pc.list_value_length(lists)))
    sums = np.concatenate([[0], np.cumsum(sizes)])
    totals: Integers = np.diff(sums[ends], prepend=0)
    return totals


def _lengths(values: pa.Array) -> Integers:
    """Bytes of texts or binary values, in UTF-8; 0 for null."""
    return _numbers(pc.binary_length(values))


def _numbers(values: pa.Array) -> Integers:
    numbers: Integers = values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
