"""Arrays for tables that are to equal their sources: lists, and JSON for values that no list of the elements is.

These are arrays of more than one dimension, and those with elements that their own type cannot hold. An array whose
elements are not counted from 1 is as the server prints it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.postgres.log.protocol import arrays
from tailrace.connectors.value_type import ValueType, as_string
from tailrace.errors import DecodeError
from tailrace.model.held import held, held_type, is_held, json_text, text_of, value_of
from tailrace.model.native import whole_values
from tailrace.model.schema import ConnectSchema

# The bounds of a literal are written before it where one of them is not 1.
_OTHERS = r"^(?:\[|\{\{)"


def array_type(item: ValueType, delimiter: str) -> ValueType:
    """Arrays of elements of a type."""
    plain = item.arrow.field(0).type if is_held(item.arrow) else item.arrow

    def convert(text: pa.Array) -> pa.Array:
        text = as_string(text)
        other = pc.match_substring_regex(text, _OTHERS).fill_null(False)
        element_lists = arrays.elements(pc.if_else(other, pa.scalar("{}"), text), delimiter).lists
        values = item.convert(element_lists.values)
        if is_held(item.arrow):
            other = pc.or_(other, _with_others(element_lists, values))
            values = value_of(values)
        nulls = pc.or_(other, element_lists.is_null())
        lists = pa.ListArray.from_arrays(element_lists.offsets, values, type=pa.list_(plain), mask=nulls)
        return held(lists, _texts(text, other, item, delimiter) if pc.any(other).as_py() else None)

    schema = ConnectSchema("array", items=item.schema.with_(optional=True))
    sql = item.sql and f"{item.sql}[]"
    return ValueType(schema, held_type(pa.list_(plain)), convert, loses=item.loses, sql=sql, form=item.form)


def _with_others(lists: pa.ListArray, values: pa.StructArray) -> pa.Array:
    """Which lists have elements that the type of the elements cannot hold."""
    parents = pc.list_parent_indices(lists).filter(text_of(values).is_valid())
    return pc.is_in(pa.array(range(len(lists)), parents.type), parents)


def _texts(text: pa.Array, other: pa.Array, item: ValueType, delimiter: str) -> pa.Array:
    """JSON of some arrays, one by one."""
    chosen = zip(text.to_pylist(), other.to_pylist(), strict=True)
    return pa.array([_json(each, item, delimiter) if is_other else None for each, is_other in chosen], pa.string())


def _json(literal: str, item: ValueType, delimiter: str) -> str:
    if literal.startswith("["):
        return literal
    whole = arrays.nested(literal, delimiter)
    flat = pa.array([*_flat(whole)], pa.string())
    try:
        values = whole_values(item.schema, item.convert(flat)).to_pylist()
    except (pa.ArrowInvalid, DecodeError):
        values = flat.to_pylist()
    following = iter(values)

    def filled(node: Any) -> Any:
        return [filled(each) for each in node] if isinstance(node, list) else next(following)

    return json_text(filled(whole))


def _flat(node: Any) -> Any:
    for each in node:
        if isinstance(each, list):
            yield from _flat(each)
        else:
            yield each
