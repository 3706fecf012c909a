"""Fields left out and renamed: against a plain editor of decoded documents, and Debezium's examples."""

from __future__ import annotations

from typing import Any

import bson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.connectors.mongodb.fields import CollectionFields, parse_rules, rules_for
from tailrace.connectors.mongodb.types.json import STRICT, json_text
from tailrace.connectors.mongodb.types.layout import ABSENT, Values
from tailrace.errors import ConfigError, DecodeError
from tests.unit.mongodb.types_documents import values_of

NAMES = ["a", "b", "c"]
LEAVES = st.one_of(st.integers(0, 99), st.text("xyzé", max_size=12), st.none())
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.dictionaries(st.sampled_from(NAMES), inner, max_size=3), st.lists(inner, max_size=3)),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(NAMES), TREES, max_size=3)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(".".join)


def edited(fields: CollectionFields, documents: list[dict[str, Any]], *, changes: bool = False) -> list[dict[str, Any]]:
    values = values_of([bson.encode(document) for document in documents])
    result = fields.changes(values) if changes else fields.documents(values)
    json_text(result, STRICT).validate(full=True)
    ends = result.ends().tolist()
    return [bson.decode(result.buffer.data[start:end]) for start, end in zip(result.starts.tolist(), ends, strict=True)]


def rules(excluded: str = "", renamed: str = "", namespace: tuple[str, str] = ("shop", "orders")) -> CollectionFields:
    return rules_for(parse_rules(excluded, renamed), *namespace)


def plainly(document: Any, path: list[str], new_name: str | None) -> Any:
    """The rule on decoded values; arrays of arrays are left alone."""
    name, rest = path[0], path[1:]
    if rest:
        inner = document.get(name)
        for one in [inner] if isinstance(inner, dict) else inner if isinstance(inner, list) else []:
            if isinstance(one, dict):
                plainly(one, rest, new_name)
    elif name in document:
        value = document.pop(name)
        if new_name is not None:
            document[new_name] = value
    return document


@settings(deadline=None, max_examples=100)
@given(documents=st.lists(DOCUMENTS, max_size=6), edits=st.lists(st.tuples(PATHS, st.booleans()), max_size=3))
def test_any_documents(documents: list[dict[str, Any]], edits: list[tuple[str, bool]]) -> None:
    excluded = [path for path, rename in edits if not rename]
    renamed = [(path, f"new_{number}") for number, (path, rename) in enumerate(edits) if rename]
    fields = rules(
        ",".join(f"shop.orders.{path}" for path in excluded),
        ",".join(f"shop.orders.{path}:{name}" for path, name in renamed),
    )
    expected = [bson.decode(bson.encode(document)) for document in documents]
    for path, name in [*((path, None) for path in excluded), *renamed]:
        expected = [plainly(document, path.split("."), name) for document in expected]
    found = edited(fields, documents)
    assert [list(one.items()) for one in found] == [list(one.items()) for one in expected]
    assert [bson.encode(one) for one in found] == [bson.encode(one) for one in expected]


def test_rows_without_a_document_stay_without() -> None:
    values = values_of([bson.encode({"a": 1, "b": 2}), bson.encode({"a": 3})])
    values = Values(values.buffer, values.kinds.copy(), values.starts)
    values.kinds[0] = ABSENT
    assert json_text(rules("shop.orders.a").documents(values), STRICT).to_pylist() == [None, "{}"]
    values.kinds[1] = ABSENT
    assert json_text(rules("shop.orders.a").documents(values), STRICT).to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("excluded", "renamed", "change", "expected"),
    [
        ("shop.orders.a.b", "", {"a.b": 1, "a.c": 2}, {"a.c": 2}),
        ("shop.orders.a.b", "", {"a.b.c": 1, "a.bc": 2}, {"a.bc": 2}),
        ("shop.orders.a.b", "", {"a.0.b": 1, "a.0.c": 2}, {"a.0.c": 2}),
        ("shop.orders.a.b", "", {"a.0": {"b": 1, "c": 2}, "a.1": {"b": 3}}, {"a.0": {"c": 2}, "a.1": {}}),
        ("shop.orders.a.b", "", {"a": [{"b": 1}, {"c": 2}, 3]}, {"a": [{}, {"c": 2}, 3]}),
        ("", "shop.orders.a.b:x", {"a.b": 1, "a.c": 2}, {"a.c": 2, "a.x": 1}),
        ("", "shop.orders.a.b:x", {"a.0.b.3": 1, "z": 2}, {"z": 2, "a.0.x.3": 1}),
        ("", "shop.orders.a.b:x", {"a.b.c": 1, "a.b.d": 2, "z": 3}, {"z": 3, "a.x.c": 1, "a.x.d": 2}),
        ("", "shop.orders.a:x", {"a.b.c": 1, "b": 2}, {"b": 2, "x.b.c": 1}),
        ("", "shop.orders.a:x,shop.orders.x:y", {"a": 1}, {"y": 1}),
    ],
)
def test_changes(excluded: str, renamed: str, change: dict[str, Any], expected: dict[str, Any]) -> None:
    (found,) = edited(rules(excluded, renamed), [change], changes=True)
    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (False, [{"a.0": {}, "a.1": {}, "n": 1}, {"x": 2, "a.1": {}}, {"a.0": {}}]),
        (True, [{"a.0": {}, "a.1": {"b": 2}, "n": 1}, {"x": 2, "a.1": {}}, {"a.0": {}, "a.1.b": 3}]),
    ],
)
def test_the_reference_takes_a_field_from_the_first_of_what_it_is_in(
    faults: bool, expected: list[dict[str, Any]]
) -> None:
    """Debezium: FieldSelector.Path.modifyFieldsWithDotNotation."""
    fields = rules_for(parse_rules("shop.orders.a.b", ""), "shop", "orders", is_upward=faults)
    documents = [
        {"a.0": {"b": 1}, "a.1": {"b": 2}, "n": 1},
        {"x": 2, "a.1": {"b": 1}},
        {"a.0": {"b": 1}, "a.1.b": 3},
    ]
    assert edited(fields, documents, changes=True) == expected


def test_an_array_in_an_array_is_left_as_it_is() -> None:
    """Debezium: FieldSelector.Path.excludeNumericItems."""
    fields = rules("shop.orders.a.b")
    assert edited(fields, [{"a.0.1.b": 1, "a.0.b": 2}], changes=True) == [{"a.0.1.b": 1}]
    assert (fields.name("a.0.1.b"), fields.name("a.0.b")) == ("a.0.1.b", None)


def test_dotted_names() -> None:
    fields = rules("shop.orders.a.b", "shop.orders.c:x")
    names = ["a", "a.b", "a.0.b", "a.b.c", "a.bc", "c", "c.0.d", "d"]
    assert [fields.name(name) for name in names] == ["a", None, None, None, "a.bc", "x", "x.0.d", "d"]
    faulty = rules_for(parse_rules("shop.orders.a.b", "shop.orders.c:x"), "shop", "orders", is_upward=True)
    assert [faulty.name(name) for name in names] == [None, None, None, "a.b.c", "a.bc", "x", "c.0.d", "d"]


def test_which_collections() -> None:
    assert rules("*.orders.a", namespace=("other", "orders"))
    assert rules("SHOP.Orders.a")
    assert not rules("shop.order.a")
    assert rules("shop.ord*.a")


@pytest.mark.parametrize("renamed", ["shop.orders.a:b", "shop.orders.in.a:b"])
def test_a_name_that_is_there_is_an_error(renamed: str) -> None:
    documents = [{"a": 1, "in": [{"a": 1}]}, {"b": 2, "in": {"b": 2}}]
    edited(rules("", renamed), documents)
    with pytest.raises(DecodeError, match="'b', which its document has already"):
        edited(rules("", renamed), [*documents, {"a": 1, "b": 2, "in": [{"b": 1}, {"b": 1, "a": 2}]}])


@pytest.mark.parametrize(
    ("excluded", "renamed", "message"),
    [
        ("shop.orders", "", "field.exclude.list: shop.orders has invalid format (expecting <databaseName>."),
        ("shop..a.b", "", "field.exclude.list: shop..a.b has invalid format"),
        ("", "shop.orders.a", "field.renames: shop.orders.a has invalid format"),
        ("", "shop.orders.a:b:c", "<nestedFieldName>:<newNestedFieldName>)"),
        ("shop(.orders.a", "", "field.exclude.list: shop(.orders.a has invalid format"),
    ],
)
def test_a_wrong_entry_is_an_error(excluded: str, renamed: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_rules(excluded, renamed)
    assert message in str(error.value)


def test_commas_at_the_end_are_no_entries() -> None:
    """Debezium: FieldSelectorBuilder.parse, by Java's split."""
    assert [rule.path for rule in parse_rules("shop.orders.a,shop.orders.b,,", "")] == [("a",), ("b",)]
    assert parse_rules(",", ",") == []
    with pytest.raises(ConfigError):
        parse_rules("shop.orders.a,,shop.orders.b", "")
