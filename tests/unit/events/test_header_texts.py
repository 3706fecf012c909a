from __future__ import annotations

import pyarrow as pa

from tailrace.events.converter import STRING, Converter
from tailrace.events.header_texts import header_texts
from tailrace.model.schema import ConnectSchema, Field


def test_a_struct_as_java_prints_it_has_no_fields_that_are_null() -> None:
    text = ConnectSchema("string", optional=True)
    schema = ConnectSchema("struct", fields=(Field("a", text), Field("b", text)))
    rows = [{"a": "1", "b": "2"}, {"a": None, "b": "2"}, {"a": ",", "b": None}, {"a": None, "b": None}, None]
    values = pa.array(rows, pa.struct([("a", pa.string()), ("b", pa.string())]))
    texts = header_texts(values, schema, Converter(False, kind=STRING), "header h")
    assert texts.to_pylist() == ["Struct{a=1,b=2}", "Struct{b=2}", "Struct{a=,}", "Struct{}", None]


def test_a_struct_of_one_field_that_is_null_has_a_text() -> None:
    schema = ConnectSchema("struct", fields=(Field("a", ConnectSchema("string", optional=True)),))
    values = pa.array([{"a": None}, {"a": "x"}], pa.struct([("a", pa.string())]))
    texts = header_texts(values, schema, Converter(False, kind=STRING), "header h")
    assert texts.to_pylist() == ["Struct{}", "Struct{a=x}"]
