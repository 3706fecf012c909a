"""JSON documents as structs: the schema that Debezium reads off a document, and its values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.events.payload import array
from tailrace.model.schema import OPTIONAL_STRING, ConnectSchema
from tailrace.model.text.json import encode
from tailrace.transforms.expand import Expander, read

scalars = st.one_of(
    st.text(max_size=4),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
names = st.text("abcXYZ_", min_size=1, max_size=3)
documents = st.recursive(
    st.dictionaries(names, scalars | st.none(), max_size=4),
    lambda inner: st.dictionaries(names, inner | scalars | st.lists(st.text(max_size=3), max_size=3), max_size=3),
    max_leaves=6,
)


def shown(node: Any) -> Any:
    """A document without what has no schema: nulls and empty arrays."""
    if isinstance(node, dict):
        return {name: shown(value) for name, value in node.items() if value is not None and value != []}
    return node


@settings(deadline=None)
@given(documents)
def test_a_document_survives_the_conversion_to_a_struct_and_back(node: dict[str, Any]) -> None:
    schema = Expander().schema("payload", node)
    assert schema is not None
    text = encode(array([Expander().value(node, schema)], schema), schema)[0].as_py()
    assert json.loads(text) == shown(node)


def kinds(schema: ConnectSchema | None) -> dict[str, str]:
    assert schema is not None
    return {field.name: field.schema.type for field in schema.fields}


def test_numbers_are_as_wide_as_they_need() -> None:
    node = json.loads(
        '{"a": 2147483647, "b": 2147483648, "c": -2147483648, "d": 9223372036854775808, "e": 1.0, "f": true}'
    )
    assert kinds(Expander().schema("p", node)) == {
        "a": "int32",
        "b": "int64",
        "c": "int32",
        "d": "double",
        "e": "double",
        "f": "boolean",
    }


def test_items_are_merged_and_are_required_only_where_they_were() -> None:
    one = Expander().schema("p", {"a": [{"x": 1}, {"x": 2}]})
    two = Expander().schema("p", {"a": [{"x": 1}, {"y": "b"}]})
    assert one is not None
    assert two is not None
    items = [each.fields[0].schema.items for each in (one, two)]
    assert [(item.name, item.optional, kinds(item)) for item in items if item is not None] == [
        ("p.a", True, {"x": "int32"}),
        ("p.a", False, {"x": "int32", "y": "string"}),
    ]


@pytest.mark.parametrize("node", [{"a": [1, "b"]}, {"a": [1, 2.5]}, {"a": [None]}, {"a": [1, True]}])
def test_arrays_of_different_things_are_refused(node: object) -> None:
    with pytest.raises(ValueError, match=r"homogenous|unrecognized"):
        Expander().schema("p", node)


def test_nulls_are_left_out_or_optional_bytes() -> None:
    node = {"a": None, "b": [{"c": None}, {"c": 1}]}
    assert kinds(Expander().schema("p", node)) == {"b": "array"}
    assert kinds(Expander(nulls=True).schema("p", node)) == {"a": "bytes", "b": "array"}


def test_empty_arrays_are_left_out_or_arrays_of_texts() -> None:
    node = {"a": [], "b": [[], []], "c": [1]}
    with pytest.raises(ValueError, match="unrecognized"):
        Expander().schema("p", node)
    schema = Expander(empty=True).schema("p", node)
    assert kinds(Expander().schema("p", {"a": [], "c": [1]})) == {"c": "array"}
    assert schema is not None
    shown = {field.name: field.schema.items for field in schema.fields}
    assert [shown["a"], shown["b"].items] == [OPTIONAL_STRING, OPTIONAL_STRING]  # type: ignore[union-attr]
    assert Expander(empty=True).value(node, schema) == node


@pytest.mark.parametrize("text", ["", "null", "1", '"{"', '{"a": NaN}', "{", ' {"a":1}'])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(text)


def test_what_follows_a_document_is_ignored_as_by_jackson() -> None:
    assert read('{"a": 1} x') == {"a": 1}


def test_a_field_without_a_name_is_refused() -> None:
    """Kafka: SchemaBuilder.field."""
    with pytest.raises(ValueError, match="no name"):
        Expander().schema("p", {"": 1})
