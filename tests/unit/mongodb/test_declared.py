"""Declared columns: Spark's DDL is understood, and what is wrong in it is named."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors.mongodb.declared import declaration, declared_fields, parse_declarations
from tailrace.errors import ConfigError

LEAVES = st.sampled_from(
    [
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.timestamp("us", "UTC"),
        pa.timestamp("us"),
        pa.string(),
        pa.binary(),
        pa.decimal128(10, 2),
    ]
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters=";"), min_size=1, max_size=8)


def fields(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    pairs = st.lists(st.tuples(NAMES, types), min_size=1, max_size=4, unique_by=lambda pair: pair[0])
    return pairs.map(lambda found: [pa.field(name, kind) for name, kind in found])


TYPES = st.recursive(LEAVES, lambda inner: st.one_of(inner.map(pa.list_), fields(inner).map(pa.struct)), max_leaves=5)


@given(fields(TYPES))
def test_a_declaration_is_read_as_it_was_written(columns: list[pa.Field]) -> None:
    (found,) = parse_declarations(declaration(".*", columns))
    assert list(found.fields) == columns


def test_the_first_matching_declaration_counts() -> None:
    found = parse_declarations(
        r"shop\.orders: a INT, b array<struct<c: string, d decimal(5)>>;  shop\..*: `x y` DOUBLE;"
    )
    items = pa.list_(pa.struct([("c", pa.string()), ("d", pa.decimal128(5, 0))]))
    assert declared_fields(found, "shop.orders") == (pa.field("a", pa.int32()), pa.field("b", items))
    assert declared_fields(found, "shop.stock") == (pa.field("x y", pa.float64()),)
    assert declared_fields(found, "other.stock") == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("shop.orders", "no column is declared"),
        ("shop.orders:", "a name is expected at the end"),
        ("(: a INT", "is no regular expression"),
        ("x: a", "a type is expected at the end"),
        ("x: a MAP", "MAP is no type for a field of a document"),
        ("x: a INT b", "unexpected b"),
        ("x: a INT, a INT", "a name is declared twice"),
        ("x: a DECIMAL(40,2)", "at most 38 digits"),
        ("x: a ARRAY<INT", "> is expected at the end"),
        ("x: a ARRAY(INT)", "< is expected before ("),
        ("x: a-b INT", "unexpected -b INT"),
    ],
)
def test_what_is_wrong_is_named(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_declarations(text)
    assert why in caught.value.what
