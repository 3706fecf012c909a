"""Converts documents to table rows: declared fields in typed columns, all other fields as JSON in `_rest`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.mongodb.types import layout
from tailrace.connectors.mongodb.types.columns import text_column, typed_column
from tailrace.connectors.mongodb.types.json import RELAXED, json_text
from tailrace.connectors.mongodb.types.layout import Flags, Values
from tailrace.connectors.mongodb.types.names import Names, column
from tailrace.connectors.mongodb.types.repeats import once
from tailrace.connectors.mongodb.types.strings import slices
from tailrace.connectors.mongodb.types.walk import Elements, members
from tailrace.javalike.escapes import escape
from tailrace.model.arrow import indices, join, mask

REST = "_rest"
_NO_TYPE = frozenset((layout.NULL, layout.UNDEFINED))
_TYPES: dict[frozenset[int], pa.DataType] = {
    frozenset((layout.INT32,)): pa.int32(),
    frozenset((layout.INT64, layout.INT32)): pa.int64(),
    frozenset((layout.DOUBLE, layout.INT32, layout.INT64)): pa.float64(),
    frozenset((layout.STRING,)): pa.string(),
    frozenset((layout.OBJECT_ID,)): pa.string(),
    frozenset((layout.BOOLEAN,)): pa.bool_(),
    frozenset((layout.DATE,)): pa.timestamp("us", "UTC"),
    frozenset((layout.BINARY,)): pa.binary(),
    frozenset((layout.DECIMAL128,)): pa.decimal128(38, 18),
    frozenset((layout.DOCUMENT, layout.ARRAY)): pa.string(),
}


def document_rows(
    values: Values, fields: Sequence[pa.Field], held: str | None = None, texts: Collection[str] = ()
) -> pa.StructArray:
    """A struct for each document: the fields, and `_rest`, which is JSON text of all that is in none of them.

    `held` is a field that another column holds: it is not in `_rest`, either. `texts` are the fields that also hold
    dates and decimals as texts, see text_column.

    A value that its field's type does not hold exactly is in `_rest`, and the field is null. `_rest` is null when there
    is nothing in it; a row without a document is null. Raises ConfigError for a type that no BSON value has.
    """
    elements = once(values, members(values))
    rows = elements.rows
    left = np.ones(len(elements), np.bool_)
    columns = []
    names = Names([field.name for field in fields])
    for field, places in zip(fields, names.places(values.buffer, elements), strict=True):
        source = column(values, elements, places)
        typed, misfits = text_column(source) if field.name in texts else typed_column(source, field.type)
        columns.append(typed)
        left[places] = misfits[rows[places]]
    if held is not None:
        left[Names([held]).find(values.buffer, elements) >= 0] = False
    columns.append(_object_text(values, elements, left))
    kinds = [*(field.with_nullable(True) for field in fields), pa.field(REST, pa.string())]
    return pa.StructArray.from_arrays(columns, fields=kinds, mask=mask(~values.present))


def inferred_fields(values: Values) -> list[pa.Field]:
    """Fields for what is in a sample of documents, in the order of their appearance.

    Documents and arrays become strings of JSON. A name whose values have no type in common has no field, nor has one
    that is always null: both stay in `_rest`.
    """
    elements = once(values, members(values))
    names = slices(values.buffer, elements.names, elements.name_ends).dictionary_encode()
    pairs = np.unique(names.indices.to_numpy(zero_copy_only=False).astype(np.int64) * 256 + elements.kinds)
    kinds: dict[int, set[int]] = {}
    for number, kind in (divmod(pair, 256) for pair in pairs.tolist()):
        kinds.setdefault(number, set()).update({kind} - _NO_TYPE)
    typed = ((name, _common_type(kinds[number])) for number, name in enumerate(names.dictionary.to_pylist()))
    return [pa.field(name, kind) for name, kind in typed if kind is not None]


def _common_type(kinds: set[int]) -> pa.DataType | None:
    return next((kind for accepted, kind in _TYPES.items() if kinds and kinds <= accepted), None)


def _object_text(values: Values, elements: Elements, chosen: Flags) -> pa.Array:
    """A JSON object of the chosen elements of each document, null where there is none."""
    at = np.flatnonzero(chosen)
    texts = json_text(Values(values.buffer, elements.kinds[at], elements.starts[at]), RELAXED)
    names = escape(slices(values.buffer, elements.names[at], elements.name_ends[at]))
    counts = np.bincount(elements.rows[at], minlength=len(values))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), join('"', names, '": ', texts))
    whole = join("{", pc.binary_join(lists, ","), "}").cast(pa.string())
    return whole.take(indices(np.arange(len(values)), counts == 0))
