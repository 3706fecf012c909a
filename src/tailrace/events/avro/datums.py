"""Encodes Arrow columns as Avro: a datum is the concatenation of its fields, so each column becomes columns of bytes.

The layout is that of the Avro specification's binary encoding, under the schemas of schema.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from tailrace.errors import DecodeError
from tailrace.events.avro.schema import AvroSettings, has_text_keys, value_first
from tailrace.events.parts import Parts, constant, flat
from tailrace.events.payload import filled, required
from tailrace.model.arrow import LARGEST, entries_of, flags, indices, is_constant, join
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.binary import unscaled

Integers = npt.NDArray[np.int64]

_FIRST, _SECOND, _END = b"\x00", b"\x02", b"\x00"
# Runs are encoded once if they have so many rows on average: repeating a text costs about a quarter of encoding it.
_LONG_RUN = 4
_FLOATS = {"float": "<f4", "double": "<f8"}
_IS_TEXT = (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary)


def datums(values: pa.Array, schema: ConnectSchema, settings: AvroSettings) -> Parts:
    """A column as pieces, constants and binary columns, whose concatenation by row is each value's datum.

    A null in a required field is written as its default or its type's zero, as JSON is. Raises DecodeError for a
    column whose Arrow type does not fit the schema.
    """
    if not settings.null_is_null:
        values = filled(values, schema)
    if not schema.optional:
        return _encoded(required(values, schema), schema, settings)
    value, null = (_FIRST, _SECOND) if value_first(schema) else (_SECOND, _FIRST)
    if values.null_count == 0:
        return _encoded(values, schema, settings, value)
    if values.null_count == len(values):
        return [null]
    valid = values.is_valid()
    some = joined(_encoded(values.filter(valid), schema, settings, value), len(values) - values.null_count)
    flag = flags(valid)
    places = np.where(flag, np.cumsum(flag) - 1, len(some))
    return [pa.concat_arrays([some, pa.array([null], some.type)]).take(indices(places))]


def joined(pieces: Parts, rows: int) -> pa.Array:
    """The concatenation of the pieces by row; a large binary array where a plain one might not hold it."""
    constants = [piece for piece in pieces if isinstance(piece, str | bytes)]
    return constant(constants, rows) if len(constants) == len(pieces) else join(*pieces)


def varints(numbers: Integers, before: bytes = b"") -> pa.Array:
    """Zigzag varints, as Avro writes int and long, each behind the bytes of `before`."""
    unsigned = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    longest = 1 + max(int(unsigned.max(initial=np.uint64(0))).bit_length() - 1, 0) // 7
    lead = len(before)
    octets = np.empty((len(numbers), lead + longest), np.uint8)
    octets[:, :lead] = np.frombuffer(before, np.uint8)
    if longest == 1:
        octets[:, lead] = unsigned
        return _fixed(octets, lead + 1)
    widths = np.ones(len(numbers), np.int64)
    for place in range(longest):
        low = unsigned.astype(np.uint8) & 0x7F
        unsigned = unsigned >> np.uint64(7)
        more = unsigned != 0
        octets[:, lead + place] = low | more.view(np.uint8) << 7
        widths += more
    if int(widths.min()) == longest:
        return _fixed(octets, lead + longest)
    offsets = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(widths + lead, out=offsets[1:])
    return _binary(offsets, octets[np.arange(lead + longest) < lead + widths[:, None]])


def _encoded(values: pa.Array, schema: ConnectSchema, settings: AvroSettings, before: bytes = b"") -> Parts:
    """Values without nulls, each behind the bytes of `before`: a piece less to join than a constant of its own."""
    kind = values.type
    if not len(values):
        return [pa.array([], pa.binary())]
    if pt.is_integer(kind) and schema.type in ("int8", "int16", "int32", "int64"):
        return _numbers(values, before)
    if pt.is_boolean(kind) and schema.type == "boolean":
        return [_behind(before, flags(values).astype(np.uint8))]
    if pt.is_floating(kind) and schema.type in ("float", "double"):
        return [_behind(before, values.to_numpy(zero_copy_only=False).astype(_FLOATS[schema.type]))]
    if pt.is_decimal(kind):
        return _texts(unscaled(values), before)
    if pt.is_fixed_size_binary(kind):
        return _texts(values.cast(pa.binary()), before)
    if schema.type in ("string", "bytes") and any(test(kind) for test in _IS_TEXT):
        return _texts(values, before)
    return flat(before, _nested(values, schema, settings))


def _nested(values: pa.Array, schema: ConnectSchema, settings: AvroSettings) -> Parts:
    """Structs, arrays and maps without nulls."""
    kind = values.type
    if schema.type == "struct":
        return _struct(values, schema, settings)
    if schema.items is not None and (pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)):
        return _blocks(values, datums(values.flatten(), schema.items, settings))
    if schema.keys is not None and schema.values is not None and pt.is_map(kind):
        lists, keys, items = entries_of(values)
        key = schema.keys.with_(optional=False) if has_text_keys(schema, settings) else schema.keys
        return _blocks(lists, [*datums(keys, key, settings), *datums(items, schema.values, settings)])
    raise DecodeError(f"a column of Arrow type {kind} has no form in Avro as {schema.type}")


def _struct(values: pa.Array, schema: ConnectSchema, settings: AvroSettings) -> Parts:
    """The fields one after the other. Those that change with few rows, such as positions, are written once a run."""
    columns = values.flatten() if values.null_count else [values.field(place) for place in range(len(schema.fields))]
    starts, steady = _runs(columns, len(values))
    if not steady:
        fields = zip(columns, schema.fields, strict=True)
        return flat(b"", *(datums(column, field.schema, settings) for column, field in fields))
    first, run = indices(starts), indices(np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values))))
    out: Parts = []
    stretch: Parts = []
    for place, (column, field) in enumerate(zip(columns, schema.fields, strict=True)):
        if place in steady:
            stretch += datums(column.take(first), field.schema, settings)
            continue
        pieces = datums(column, field.schema, settings)
        if all(isinstance(piece, bytes) for piece in pieces):
            stretch += pieces
            continue
        out += [*_repeated(stretch, run, len(starts)), *pieces]
        stretch = []
    return flat(*out, *_repeated(stretch, run, len(starts)))


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


def _repeated(pieces: Parts, run: pa.Array, runs: int) -> Parts:
    """Pieces by run as pieces by row."""
    pieces = flat(*pieces)
    if all(isinstance(piece, bytes) for piece in pieces):
        return pieces
    text = joined(pieces, runs)
    return [text[0].as_py()] if runs == 1 else [text.take(run)]


def _blocks(lists: pa.Array, items: Parts) -> Parts:
    """Arrays and maps: the number of items, the items and a zero, or the zero alone."""
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    total = int(lengths.sum())
    if not total:
        return [_END]
    text = joined(flat(*items), total)
    ends = np.concatenate([[0], lengths.cumsum()])
    kind = pa.large_binary() if pt.is_large_binary(text.type) else pa.binary()
    whole = pa.LargeListArray.from_arrays(indices(ends), text)
    content = pc.binary_join(whole, pa.scalar(b"", kind))
    counts = varints(lengths)
    if lengths.all():
        return [counts, content, _END]
    end = pa.array([b"", _END], pa.binary()).take(indices((lengths > 0).astype(np.int64)))
    return [counts, content, end]


def _numbers(values: pa.Array, before: bytes) -> Parts:
    numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if len(numbers) > 1 and numbers[0] == numbers[-1] and (numbers == numbers[0]).all():
        return [varints(numbers[:1], before)[0].as_py()]
    return [varints(numbers, before)]


def _texts(values: pa.Array, before: bytes) -> Parts:
    """Texts and bytes with their lengths before them; a constant where all are equal."""
    is_large = pt.is_large_string(values.type) or pt.is_large_binary(values.type)
    raw = values.view(pa.large_binary() if is_large else pa.binary())
    if len(raw) > 1 and is_constant(raw):
        whole = raw[0].as_py()
        return [varints(np.array([len(whole)], np.int64), before)[0].as_py() + whole]
    return [varints(pc.binary_length(raw).to_numpy(zero_copy_only=False).astype(np.int64), before), raw]


def _behind(before: bytes, values: npt.NDArray[Any]) -> pa.Array:
    """Values of one size behind the bytes of `before`."""
    octets = values.view(np.uint8).reshape(len(values), -1)
    if before:
        lead = np.broadcast_to(np.frombuffer(before, np.uint8), (len(values), len(before)))
        octets = np.hstack([lead, octets])
    return _fixed(octets, octets.shape[1])


def _fixed(values: npt.NDArray[Any], width: int) -> pa.Array:
    offsets = np.arange(len(values) + 1, dtype=np.int64) * width
    return _binary(offsets, values)


def _binary(offsets: Integers, data: npt.NDArray[Any]) -> pa.Array:
    """A binary array of this memory, large where it must be."""
    large = int(offsets[-1]) > LARGEST
    places = offsets if large else offsets.astype(np.int32)
    buffers = [None, pa.py_buffer(places), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary() if large else pa.binary(), len(offsets) - 1, buffers)
