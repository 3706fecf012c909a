"""Encodes Arrow columns as Avro: a datum is the concatenation of its fields, so each column becomes columns of bytes.

The layout is that of the Avro specification's binary encoding, under the schemas of schema.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from tailrace.errors import DecodeError
from tailrace.events.avro.blocks import Block, Integers, Pieces, binary, fixed, settled, short, varint, varints
from tailrace.events.avro.schema import AvroSettings, has_text_keys, value_first
from tailrace.events.parts import Parts, constant
from tailrace.events.payload import filled, required
from tailrace.model.arrow import entries_of, flags, indices, join
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.binary import unscaled
from tailrace.model.text.strings import bytes_of

_FIRST, _SECOND, _END = b"\x00", b"\x02", b"\x00"
# Runs are encoded once if they have so many rows on average: repeating a text costs about a quarter of encoding it.
_LONG_RUN = 4
_FLOATS = {"float": "<f4", "double": "<f8"}
_IS_TEXT = (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary)


def datums(
    values: pa.Array, schema: ConnectSchema, settings: AvroSettings, before: Sequence[bytes | pa.Array] = ()
) -> Parts:
    """A column as pieces, constants and binary columns, whose concatenation by row is each value's datum.

    The pieces of `before` stand before each datum. A null in a required field is written as its default or its type's
    zero, as JSON is. Raises DecodeError for a column whose Arrow type does not fit the schema.
    """
    return settled([*before, *_datums(values, schema, settings)])


def joined(pieces: Parts, rows: int) -> pa.Array:
    """The concatenation of the pieces by row; a large binary array where a plain one might not hold it."""
    constants = [piece for piece in pieces if isinstance(piece, str | bytes)]
    return constant(constants, rows) if len(constants) == len(pieces) else join(*pieces)


def _datums(values: pa.Array, schema: ConnectSchema, settings: AvroSettings) -> Pieces:
    if not settings.null_is_null:
        values = filled(values, schema)
    if not schema.optional:
        return _encoded(required(values, schema), schema, settings)
    value, null = (_FIRST, _SECOND) if value_first(schema) else (_SECOND, _FIRST)
    if values.null_count == 0:
        return _encoded(values, schema, settings, value)
    if values.null_count == len(values):
        return [null]
    valid = flags(values.is_valid())
    flat = _flat(values, schema, value)
    if flat:
        # Of a null nothing but the first piece has bytes.
        assert isinstance(flat[0], Block)
        return [flat[0].where(valid, null), *flat[1:]]
    some = joined(settled(_encoded(values.drop_null(), schema, settings, value)), int(valid.sum()))
    places = np.where(valid, np.cumsum(valid) - 1, len(some))
    return [pa.concat_arrays([some, pa.array([null], some.type)]).take(indices(places))]


def _encoded(values: pa.Array, schema: ConnectSchema, settings: AvroSettings, before: bytes = b"") -> Pieces:
    """Values without nulls, each behind the bytes of `before`."""
    if not len(values):
        return [pa.array([], pa.binary())]
    return _flat(values, schema, before) or [before, *_nested(values, schema, settings)]


def _flat(values: pa.Array, schema: ConnectSchema, before: bytes) -> Pieces:
    """Values that contain no others, none for those that do. Of a null the first piece, a block, is without meaning."""
    kind = values.type
    if pt.is_integer(kind) and schema.type in ("int8", "int16", "int32", "int64"):
        return _numbers(values, before)
    if pt.is_boolean(kind) and schema.type == "boolean":
        return [fixed(flags(_filled(values, False)).view(np.uint8), before)]
    if pt.is_floating(kind) and schema.type in ("float", "double"):
        return [fixed(values.to_numpy(zero_copy_only=False).astype(_FLOATS[schema.type]), before)]
    if pt.is_decimal(kind):
        return _texts(unscaled(values), before)
    if pt.is_fixed_size_binary(kind):
        return _texts(values.cast(pa.binary()), before)
    if schema.type in ("string", "bytes") and any(test(kind) for test in _IS_TEXT):
        return _texts(values, before)
    return []


def _nested(values: pa.Array, schema: ConnectSchema, settings: AvroSettings) -> Pieces:
    """Structs, arrays and maps without nulls."""
    kind = values.type
    if schema.type == "struct":
        return _struct(values, schema, settings)
    if schema.items is not None and (pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)):
        return _blocks(values, _datums(values.flatten(), schema.items, settings))
    if schema.keys is not None and schema.values is not None and pt.is_map(kind):
        lists, keys, items = entries_of(values)
        key = schema.keys.with_(optional=False) if has_text_keys(schema, settings) else schema.keys
        return _blocks(lists, [*_datums(keys, key, settings), *_datums(items, schema.values, settings)])
    raise DecodeError(f"a column of Arrow type {kind} has no form in Avro as {schema.type}")


def _struct(values: pa.Array, schema: ConnectSchema, settings: AvroSettings) -> Pieces:
    """The fields one after the other. Those that change with few rows, such as positions, are written once a run."""
    columns = values.flatten() if values.null_count else [values.field(place) for place in range(len(schema.fields))]
    starts, steady = _runs(columns, len(values))
    first, run = indices(starts), np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
    out: Pieces = []
    stretch: Pieces = []
    for place, (column, field) in enumerate(zip(columns, schema.fields, strict=True)):
        if place in steady:
            stretch += _datums(column.take(first), field.schema, settings)
            continue
        pieces = _datums(column, field.schema, settings)
        if stretch and all(isinstance(piece, bytes) for piece in pieces):
            stretch += pieces
            continue
        out += [*_by_row(stretch, run, len(starts)), *pieces]
        stretch = []
    return [*out, *_by_row(stretch, run, len(starts))]


def _runs(columns: list[pa.Array], rows: int) -> tuple[Integers, set[int]]:
    """Where runs of rows begin that are equal in some columns of whole numbers, and the places of these columns."""
    changes: dict[int, npt.NDArray[np.bool_]] = {}
    for place, column in enumerate(columns):
        if pt.is_integer(column.type) and column.null_count == 0 and rows > 1:
            numbers = column.to_numpy(zero_copy_only=False)
            changed = numbers[1:] != numbers[:-1]
            if (np.count_nonzero(changed) + 1) * _LONG_RUN <= rows:
                changes[place] = changed
    if len(changes) < 2:
        return np.zeros(1, np.int64), set()
    begins = np.logical_or.reduce(list(changes.values()))
    starts = np.concatenate([[0], np.flatnonzero(begins) + 1]).astype(np.int64)
    return (starts, set(changes)) if len(starts) * _LONG_RUN <= rows else (starts, set())


def _by_row(pieces: Pieces, run: Integers, runs: int) -> Pieces:
    """Pieces by run as pieces by row."""
    if all(isinstance(piece, bytes) for piece in pieces):
        return pieces
    text = joined(settled(pieces), runs)
    piece = short(text)
    if isinstance(piece, bytes):
        return [piece]
    return [text.take(indices(run)) if piece is None else piece.take(run)]


def _blocks(lists: pa.Array, items: Pieces) -> Pieces:
    """Arrays and maps: the number of items, the items and a zero, or the zero alone."""
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    total = int(lengths.sum())
    if not total:
        return [_END]
    text = joined(settled(items), total)
    ends = np.concatenate([[0], lengths.cumsum()])
    kind = pa.large_binary() if pt.is_large_binary(text.type) else pa.binary()
    whole = pa.LargeListArray.from_arrays(indices(ends), text)
    content = pc.binary_join(whole, pa.scalar(b"", kind))
    counts = varints(lengths)
    if lengths.all():
        return [counts, content, _END]
    shapes = np.array([[False], [True]])
    return [counts, content, Block(np.zeros((len(lengths), 1), np.uint8), shapes, (lengths > 0).astype(np.int64))]


def _numbers(values: pa.Array, before: bytes) -> Pieces:
    """Whole numbers; a constant where all are equal."""
    numbers = _filled(values, 0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    if not values.null_count and numbers[0] == numbers[-1] and (numbers == numbers[0]).all():
        return [before + varint(int(numbers[0]))]
    return [varints(numbers, before)]


def _texts(values: pa.Array, before: bytes) -> Pieces:
    """Texts and bytes with their lengths before them; a constant where all are equal."""
    piece = None if values.null_count else short(values)
    if isinstance(piece, bytes):
        return [before + varint(len(piece)) + piece]
    if piece is not None:
        return [before + varint(piece.width), piece]
    offsets, data = bytes_of(values)
    if values.null_count and np.diff(offsets)[flags(values.is_null())].any():
        offsets, data = bytes_of(values.fill_null(pa.scalar("", values.type)))
    return [varints(np.diff(offsets), before), binary(offsets, data)]


def _filled(values: pa.Array, value: object) -> pa.Array:
    return values.fill_null(value) if values.null_count else values
