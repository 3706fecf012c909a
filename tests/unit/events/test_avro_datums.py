"""Avro datums made by columns are, byte for byte, what fastavro writes of the same values under the same schema."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.errors import ConfigError, DecodeError
from tailrace.events.avro.datums import datums, joined
from tailrace.events.avro.schema import AvroSettings, avro_schema, schema_text
from tailrace.events.payload import arrow_type
from tailrace.events.registry.languages import Avro
from tailrace.model.schema import ConnectSchema, Field

PLAIN = AvroSettings()
_INTS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)


def ours(values: pa.Array, schema: ConnectSchema, settings: AvroSettings = PLAIN) -> list[bytes]:
    found: list[bytes] = joined(datums(values, schema, settings), len(values)).to_pylist()
    return found


def theirs(values: list[Any], schema: ConnectSchema, settings: AvroSettings = PLAIN) -> list[bytes]:
    """By fastavro, under the text that is registered."""
    parsed = fastavro.parse_schema(_without_logical(json.loads(schema_text(avro_schema(schema, settings)))))
    written = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        written.append(out.getvalue())
    return written


def _without_logical(node: Any) -> Any:
    """The schema by whose types alone fastavro writes: it would convert values of logical types."""
    if isinstance(node, list):
        return [_without_logical(each) for each in node]
    if isinstance(node, dict):
        return {name: _without_logical(value) for name, value in node.items() if name != "logicalType"}
    return node


@st.composite
def _schemas(draw: st.DrawFn, depth: int = 3) -> ConnectSchema:
    optional = draw(st.booleans())
    kinds = [*_INTS, "boolean", "float", "double", "string", "bytes"]
    kind = draw(st.sampled_from([*kinds, "struct", "array", "map"] if depth else kinds))
    if kind == "array":
        return ConnectSchema("array", optional, items=draw(_schemas(depth - 1)))
    if kind == "map":
        return ConnectSchema("map", optional, keys=ConnectSchema("string"), values=draw(_schemas(depth - 1)))
    if kind == "struct":
        names = draw(st.lists(_NAMES, unique=True, max_size=4))
        return ConnectSchema("struct", optional, fields=tuple(Field(name, draw(_schemas(depth - 1))) for name in names))
    return ConnectSchema(kind, optional)


def _values(schema: ConnectSchema) -> st.SearchStrategy[Any]:
    found: st.SearchStrategy[Any]
    if schema.type in _INTS:
        most = 2 ** (_INTS[schema.type] - 1)
        found = st.integers(-most, most - 1)
    elif schema.type == "struct":
        found = st.fixed_dictionaries({field.name: _values(field.schema) for field in schema.fields})
    elif schema.items is not None:
        found = st.lists(_values(schema.items), max_size=4)
    elif schema.values is not None:
        found = st.dictionaries(_TEXT, _values(schema.values), max_size=3)
    else:
        found = {
            "boolean": st.booleans(),
            "float": st.floats(width=32, allow_nan=False),
            "double": st.floats(allow_nan=False),
            "string": _TEXT,
            "bytes": st.binary(max_size=200),
        }[schema.type]
    return st.none() | found if schema.optional else found


def _as_arrow(value: Any, schema: ConnectSchema) -> Any:
    """A value as pyarrow takes it: maps as pairs."""
    if value is None:
        return None
    if schema.type == "struct":
        return {field.name: _as_arrow(value[field.name], field.schema) for field in schema.fields}
    if schema.items is not None:
        return [_as_arrow(item, schema.items) for item in value]
    if schema.values is not None:
        return [(key, _as_arrow(item, schema.values)) for key, item in value.items()]
    return value


@given(st.data())
def test_any_nested_value_is_written_as_fastavro_writes_it(data: st.DataObject) -> None:
    schema = data.draw(_schemas())
    values = data.draw(st.lists(_values(schema), min_size=1, max_size=12))
    column = pa.array([_as_arrow(value, schema) for value in values], arrow_type(schema))
    assert ours(column, schema) == theirs(values, schema)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_numbers_of_all_sizes_have_the_shortest_form(numbers: list[int]) -> None:
    assert ours(pa.array(numbers, pa.int64()), ConnectSchema("int64")) == theirs(numbers, ConnectSchema("int64"))


def test_numbers_at_the_bounds_of_each_length() -> None:
    numbers = sorted({sign * (2**bits + near) for bits in range(63) for near in (-1, 0, 1) for sign in (1, -1)})
    for some in (numbers, numbers[len(numbers) // 2 :], [63, 64], [-64, -65], [0]):
        assert ours(pa.array(some, pa.int64()), ConnectSchema("int64")) == theirs(some, ConnectSchema("int64"))


def test_slices_of_columns_are_written_as_what_they_show() -> None:
    schema = ConnectSchema(
        "struct",
        fields=(
            Field("a", ConnectSchema("array", optional=True, items=ConnectSchema("string", optional=True))),
            Field("m", ConnectSchema("map", keys=ConnectSchema("string"), values=ConnectSchema("bytes"))),
            Field("t", ConnectSchema("string")),
            Field("b", ConnectSchema("boolean", optional=True)),
        ),
    )
    values = [
        {"a": None if n % 3 == 0 else ["x" * n, None][: n % 4], "m": {"k": bytes([n])} if n % 2 else {}, "t": "same",
         "b": None if n % 5 == 0 else n % 2 == 0}
        for n in range(40)
    ]  # fmt: skip
    column = pa.array([_as_arrow(value, schema) for value in values], arrow_type(schema))
    assert ours(column.slice(7, 20), schema) == theirs(values[7:27], schema)


@st.composite
def _columns(draw: st.DrawFn) -> tuple[ConnectSchema, list[Any]]:
    """A schema and 70 values of it: of a few sizes, so that equal values, equal lengths and many lengths all occur."""
    schema = ConnectSchema(draw(st.sampled_from([*_INTS, "boolean", "float", "double", "string", "bytes"])))
    some = _values(schema)
    if schema.type in ("string", "bytes") and draw(st.booleans()):
        size = draw(st.integers(0, 210))
        letters = st.sampled_from("abcdefgh")
        some = letters.map(lambda letter: letter * size if schema.type == "string" else letter.encode() * size)
    pool = draw(st.lists(some, min_size=1, max_size=6))
    optional = draw(st.booleans())
    if optional and draw(st.booleans()):
        pool.append(None)
    places = np.random.default_rng(draw(st.integers(0, 99)))
    return schema.with_(optional=optional), [pool[place] for place in places.integers(0, len(pool), 70)]


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_columns(), min_size=1, max_size=14))
def test_neighbouring_fields_of_all_sizes_are_put_together(columns: list[tuple[ConnectSchema, list[Any]]]) -> None:
    names = [f"f{place}" for place in range(len(columns))]
    schema = ConnectSchema("struct", fields=tuple(map(Field, names, (schema for schema, _ in columns))))
    values = [dict(zip(names, row, strict=True)) for row in zip(*(column for _, column in columns), strict=True)]
    column = pa.array(values, arrow_type(schema))
    assert ours(column, schema) == theirs(values, schema)
    assert ours(column.slice(3, 50), schema) == theirs(values[3:53], schema)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_bytes_that_a_null_holds_are_not_written(kind: pa.DataType) -> None:
    texts = pa.array(["abc", "hidden", "de"], kind)
    column = pa.Array.from_buffers(kind, 3, [pa.py_buffer(b"\x05"), *texts.buffers()[1:]])
    assert ours(column, ConnectSchema("string", optional=True)) == [b"\x02\x06abc", b"\x00", b"\x02\x04de"]


def test_fields_that_change_with_few_rows_are_written_as_others() -> None:
    long = ConnectSchema("int64")
    schema = ConnectSchema(
        "struct", fields=(*(Field(name, long) for name in "abcd"), Field("t", ConnectSchema("string")))
    )
    values = [{"a": n // 10, "b": n, "c": -(n // 10) * 10**12, "d": n // 20, "t": "constant"} for n in range(95)]
    column = pa.array(values, arrow_type(schema))
    assert ours(column, schema) == theirs(values, schema)


@pytest.mark.parametrize("arrow", [pa.decimal128(12, 2), pa.decimal256(50, 2), pa.decimal64(12, 2)])
def test_decimals_are_the_bytes_of_their_unscaled_value(arrow: pa.DataType) -> None:
    schema = ConnectSchema(
        "bytes", optional=True, name="org.apache.kafka.connect.data.Decimal", parameters=(("scale", "2"),)
    )
    numbers = [Decimal("1.23"), None, Decimal("-12345678.90"), Decimal("0.00"), Decimal("-0.01"), Decimal("327.68")]
    raw = [None if n is None else int(n.scaleb(2)) for n in numbers]
    octets = [
        None if n is None else n.to_bytes((n if n >= 0 else ~n).bit_length() // 8 + 1, "big", signed=True) for n in raw
    ]
    assert ours(pa.array(numbers, arrow), schema) == theirs(octets, schema)


def test_a_null_under_a_default_is_the_default_unless_nulls_stay() -> None:
    schema = ConnectSchema("int32", optional=True, default=7)
    column = pa.array([1, None, 3], pa.int32())
    assert ours(column, schema) == [b"\x00\x02", b"\x00\x0e", b"\x00\x06"]
    assert ours(column, schema, AvroSettings(null_is_null=True)) == [b"\x00\x02", b"\x02", b"\x00\x06"]


def test_values_that_do_not_fit_the_schema_are_an_error() -> None:
    with pytest.raises(DecodeError, match="no form in Avro as string"):
        datums(pa.array([1]), ConnectSchema("string"), PLAIN)


def test_a_name_that_avro_does_not_allow_is_an_error_with_the_setting() -> None:
    schema = ConnectSchema("struct", name="s.t-1", fields=(Field("ok", ConnectSchema("int32")),))
    with pytest.raises(ConfigError, match=r"schema.name.adjustment.mode"):
        avro_schema(schema, PLAIN)
    assert avro_schema(schema, AvroSettings(scrub=True))["name"] == "s.t_1"
    with pytest.raises(ConfigError, match=r"field.name.adjustment.mode"):
        avro_schema(ConnectSchema("struct", fields=(Field("1st", ConnectSchema("int32")),)), PLAIN)


def test_two_structs_of_one_name_are_an_error_where_they_differ() -> None:
    def point(kind: str) -> ConnectSchema:
        return ConnectSchema("struct", name="Point", optional=True, fields=(Field("x", ConnectSchema(kind)),))

    def both(one: str, other: str) -> ConnectSchema:
        return ConnectSchema("struct", name="t", fields=(Field("a", point(one)), Field("b", point(other))))

    assert schema_text(avro_schema(both("int32", "int32"), PLAIN)).count('"fields"') == 2
    with pytest.raises(ConfigError, match="two different structs"):
        avro_schema(both("int32", "int64"), PLAIN)


def test_an_empty_column_has_no_datum() -> None:
    assert ours(pa.array([], pa.int64()), ConnectSchema("int64")) == []


def test_a_row_that_may_be_null_is_a_union_for_confluent_alone() -> None:
    schema = ConnectSchema("struct", optional=True, name="a.Row", fields=(Field("id", ConnectSchema("int32")),))
    rows = pa.array([{"id": 1}, {"id": 2}])
    for of_values, text, datum in (
        (True, '{"type":"record"', b"\x02"),
        (False, '["null",{"type":"record"', b"\x02\x02"),
    ):
        language = Avro(AvroSettings(), of_values)
        assert language.described(schema)[1].startswith(text)
        assert joined(language.parts(rows, schema, None), 2)[0].as_py() == datum
