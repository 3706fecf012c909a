"""Removes and renames fields of many documents at once, in their BSON.

An edit cuts the bytes of the documents into pieces and puts them together in another order: a renamed field moves to
the end of its document, as it does in the reference. Then the sizes of what it is in are corrected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.mongodb.types.layout import (
    ABSENT,
    ARRAY,
    DOCUMENT,
    Buffer,
    Bytes,
    Flags,
    Ints,
    Values,
    value_ends,
)
from tailrace.connectors.mongodb.types.names import Names
from tailrace.connectors.mongodb.types.strings import byte_slices
from tailrace.connectors.mongodb.types.walk import Elements, members
from tailrace.errors import DecodeError
from tailrace.model.arrow import indices
from tailrace.model.text.strings import bytes_of


@dataclass(frozen=True)
class FieldEdit:
    """Fields to remove or rename: `way` has the names of the fields that they are in, one set for each level.

    `fields` maps a name to its new name, or to None to remove it. Of an array on the way each document is meant.
    """

    way: tuple[tuple[str, ...], ...]
    fields: Mapping[str, str | None]


@dataclass(frozen=True)
class _Level:
    """Documents and arrays that an edit goes through; `parents` are their places in the level above."""

    values: Values
    parents: Ints


def compact(values: Values) -> Values:
    """The documents one behind the other in a buffer of their own, as an edit takes them; other values are left out."""
    rows = np.flatnonzero(values.kinds == DOCUMENT)
    documents = values.take(rows)
    raw = byte_slices(values.buffer, documents.starts, documents.ends())
    kinds, starts = np.full(len(values), ABSENT, np.uint8), np.zeros(len(values), np.int64)
    kinds[rows] = DOCUMENT
    starts[rows] = np.frombuffer(raw.buffers()[1], np.int32)[: len(rows)]
    return Values(Buffer([raw.buffers()[2]] if len(rows) else []), kinds, starts)


def apply(values: Values, edit: FieldEdit) -> Values:
    """The edited documents. Raises DecodeError where a field would get a name that its document has."""
    levels = [_Level(values, np.zeros(len(values), np.int64))]
    for names in edit.way:
        levels += _inside(levels[-1].values, Names(names))
    inner = levels[-1].values
    elements = members(inner)
    wanted = Names(list(edit.fields))
    numbers = wanted.find(values.buffer, elements)
    chosen = np.flatnonzero(numbers >= 0)
    if not chosen.size:
        return values
    new_names = [edit.fields[name] for name in wanted.names]
    _check_new_names(inner, elements, chosen, new_names)
    headers = _headers(new_names, numbers[chosen], elements.kinds[chosen])
    return _rebuilt(levels, elements, chosen, headers)


def _inside(values: Values, names: Names) -> list[_Level]:
    """Two levels: the documents and arrays of these names, and the documents that are these or items of these."""
    elements = members(values)
    is_named = names.find(values.buffer, elements) >= 0
    outer = np.flatnonzero(is_named & ((elements.kinds == DOCUMENT) | (elements.kinds == ARRAY)))
    first = Values(values.buffer, elements.kinds[outer], elements.starts[outer])
    is_array = first.kinds == ARRAY
    arrays = np.flatnonzero(is_array)
    items = members(first.take(arrays))
    inner = np.flatnonzero(items.kinds == DOCUMENT)
    starts = np.concatenate([first.starts[~is_array], items.starts[inner]])
    parents = np.concatenate([np.flatnonzero(~is_array), arrays[items.rows[inner]]])
    order = np.argsort(starts)
    second = Values.documents(values.buffer, starts[order])
    return [_Level(first, elements.rows[outer]), _Level(second, parents[order])]


def _check_new_names(values: Values, elements: Elements, chosen: Ints, new_names: Sequence[str | None]) -> None:
    names = Names([name for name in new_names if name is not None])
    found_at = np.flatnonzero(names.find(values.buffer, elements) >= 0)
    both = found_at[np.isin(elements.rows[found_at], elements.rows[chosen])]
    if both.size:
        name = values.buffer.data[elements.names[both[0]] : elements.name_ends[both[0]]].decode(errors="replace")
        raise DecodeError(
            f"field.renames gives a field the name {name!r}, which its document has already",
            remedy="choose another name in field.renames, or remove the other field by field.exclude.list",
        )


def _headers(new_names: Sequence[str | None], numbers_of_names: Ints, kinds: Bytes) -> pa.Array:
    """The type byte and the new name of each field, null for a removed one."""
    keys, numbers = np.unique(numbers_of_names * 256 + kinds, return_inverse=True)
    headers = []
    for number, kind in (divmod(key, 256) for key in keys.tolist()):
        name = new_names[number]
        headers.append(None if name is None else bytes([kind]) + name.encode() + b"\0")
    return pa.array(headers, pa.binary()).take(indices(numbers.reshape(-1)))


def _rebuilt(levels: list[_Level], elements: Elements, chosen: Ints, headers: pa.Array) -> Values:
    """The documents with the chosen elements left out, or renamed and at the end of what they are in."""
    inner, rows = levels[-1].values, elements.rows[chosen]
    buffer = inner.buffer
    begins, starts = elements.names[chosen] - 1, elements.starts[chosen]
    ends = value_ends(buffer, elements.kinds[chosen], starts)
    closes = inner.starts[rows] + buffer.int32[inner.starts[rows]] - 1
    is_last = np.append(rows[1:] != rows[:-1], True)
    # Four pieces for each field: what is before it, its header, its value, and what follows the last one of a document.
    cuts = np.stack([begins, starts, ends, np.where(is_last, closes, ends)], axis=1).reshape(-1)
    offsets = np.concatenate([[0], cuts, [buffer.size]]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(buffer.data)]
    pieces = pa.concat_arrays([pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers), headers])
    renamed = headers.is_valid().to_numpy(zero_copy_only=False)
    data = bytearray(bytes_of(pieces.take(indices(_order(rows, is_last, renamed))))[1])
    header_sizes = pc.binary_length(headers).fill_null(0).to_numpy(zero_copy_only=False)
    growth = np.where(renamed, header_sizes - (starts - begins), begins - ends)
    return _with_sizes(levels, rows, begins, growth, bytearray(data))


def _order(rows: Ints, is_last: Flags, renamed: Flags) -> Ints:
    """The pieces as they are put together: those that stay of a document, then its renamed fields."""
    fields = np.arange(len(rows))
    documents = np.concatenate([[0], np.cumsum(is_last)[:-1]])
    kept = np.stack([4 * fields, 4 * fields + 3], axis=1).reshape(-1)
    headers = 4 * len(rows) + 1 + fields
    moved = np.stack([headers, 4 * fields + 2], axis=1)[renamed].reshape(-1)
    ranks = np.concatenate([np.repeat(2 * documents, 2), np.repeat(2 * documents[renamed] + 1, 2)])
    order = np.concatenate([kept, moved])[np.argsort(ranks, kind="stable")]
    return np.append(order, 4 * len(rows))


def _with_sizes(levels: list[_Level], rows: Ints, begins: Ints, growth: Ints, data: bytearray) -> Values:
    """The new bytes with the sizes of all that an edited field is in."""
    before = np.concatenate([[0], np.cumsum(growth)])
    buffer = levels[0].values.buffer
    sizes = np.ndarray((len(data) - 3,), "<i4", data, strides=(1,))
    grown = np.zeros(len(levels[-1].values), np.int64)
    np.add.at(grown, rows, growth)
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        edited = np.flatnonzero(grown)
        starts = level.values.starts[edited]
        sizes[starts + before[np.searchsorted(begins, starts)]] = buffer.int32[starts] + grown[edited]
        if number:
            outer = np.zeros(len(levels[number - 1].values), np.int64)
            np.add.at(outer, level.parents, grown)
            grown = outer
    root = levels[0].values
    return Values(Buffer([data]), root.kinds, root.starts + before[np.searchsorted(begins, root.starts)])
