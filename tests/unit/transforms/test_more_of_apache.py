"""InsertHeader, HeaderFrom, MaskField and TimestampRouter of Kafka Connect."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.converter_names import SIMPLE
from tailrace.errors import ConfigError, TransformError
from tailrace.events.converter import Converter
from tailrace.events.header_texts import header_texts
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.literals import literal_part
from tests.unit.events.changes import changes, table
from tests.unit.transforms.transformed import UNWRAP, headers, payload, properties, rows

CONNECT = "org.apache.kafka.connect.transforms."
IMAGE = {"id": 1, "code": "a", "note": None}
DELETED = ({"op": "c", "after": IMAGE}, {"op": "d", "before": IMAGE})


def unwrapped(kind: str, **settings: str) -> dict[str, str]:
    """The properties of unwrap, and of another transform of the row."""
    given = {
        "transforms": "u,t",
        "transforms.u.type": UNWRAP,
        "transforms.u.delete.tombstone.handling.mode": "tombstone",
    }
    named = {f"transforms.t.{name.replace('_', '.')}": text for name, text in settings.items()}
    return {**given, "transforms.t.type": CONNECT + kind, **named}


def test_a_header_with_a_constant_is_on_every_record() -> None:
    found = rows(
        changes(table(), *DELETED), properties(CONNECT + "InsertHeader", {"header": "h", "value.literal": "7"})
    )
    assert [headers(row) for row in found] == [[("h", 7)]] * 3
    with pytest.raises(ConfigError, match="A value is required"):
        rows(changes(table(), *DELETED), properties(CONNECT + "InsertHeader", {"header": "h"}))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("true", "boolean", True),
        ("-128", "int8", -128),
        ("128", "int16", 128),
        ("70000", "int32", 70000),
        ("5000000000", "int64", 5_000_000_000),
        ("99999999999999999999", "bytes", (10**20 - 1).to_bytes(9, "big")),
        ("1" + 80 * "0", "bytes", (10**80).to_bytes(34, "big")),
        ("1e400", "bytes", b"\x01"),
        ("-1.28e402", "bytes", b"\x80"),
        ("0e400", "int8", 0),
        ("1e-400", "float", 0.0),
        ("-1E+77", "double", -1e77),
        ("1e99999999999", "string", "1e99999999999"),
        ("1.5", "float", 1.5),
        ("1.0", "int8", 1),
        ("1e3", "int16", 1000),
        ("3.5e38", "double", 3.5e38),
        ("12:30", "int8", 12),
        ("v1", "string", "v1"),
        (" v1 ", "string", "v1"),
        ("-", "string", "-"),
        ("[1, 300]", "array", [1, 300]),
        ("[1.5,2]", "array", [1.5, 2.0]),
        ('["a","b"]', "array", ["a", "b"]),
        ('[1,"a"]', "string", '[1,"a"]'),
        ("[1e400, 2e400]", "array", [b"\x01", b"\x02"]),
        ('{"a": 1, "b": 2.5}', "map", [("a", 1.0), ("b", 2.5)]),
        ("{1:true}", "map", [(1, True)]),
        ('{"a":[1,2],"b":[3]}', "map", [("a", [1, 2]), ("b", [3])]),
        ('{"a":1,"b":"x"}', "string", '{"a":1,"b":"x"}'),
        ('{"a":null}', "string", '{"a":null}'),
        ('{"a" 1}', "string", '{"a" 1}'),
        ("{[1]:2}", "string", "{[1]:2}"),
        ("{}", "string", "{}"),
        ('["2020-01-01"]', "array", [18262]),
        ("[10:20:30.456Z]", "array", [37_230_456]),
        ("[" * 5000, "string", "[" * 5000),
        ("[1", "string", "[1"),
    ],
)
def test_literals_have_the_narrowest_type(text: str, kind: str, value: object) -> None:
    """Kafka: Values.parseString."""
    found = literal_part(text)
    assert (found.schema.type, found.values.to_pylist()) == (kind, [value])


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("2020-01-01", "Date", 18262),
        ("10:20:30.456Z", "Time", 37_230_456),
        ("2020-01-01T00:00:00.000Z", "Timestamp", 1_577_836_800_000),
    ],
)
def test_literals_of_times(text: str, name: str, value: int) -> None:
    found = literal_part(text)
    assert (found.schema.name, found.values.to_pylist()) == (f"org.apache.kafka.connect.data.{name}", [value])
    bare = header_texts(found.values, found.schema, Converter(kind=SIMPLE), "h")
    assert bare.to_pylist() == ["2020-01-01" if name == "Timestamp" else text]


def test_a_literal_null_has_no_schema() -> None:
    given = properties(CONNECT + "InsertHeader", {"header": "h", "value.literal": "null"})
    assert [row["headers"] for row in rows(changes(table(), *DELETED), given)] == [[{"key": "h", "value": None}]] * 3


@pytest.mark.parametrize(("operation", "left"), [("copy", IMAGE), ("move", {"code": "a"})])
def test_fields_become_headers(operation: str, left: dict[str, Any]) -> None:
    given = unwrapped("HeaderFrom$Value", fields="id,note", headers="number,remark", operation=operation)
    created, tombstone = rows(changes(table(), *DELETED), given)
    assert headers(created) == [("number", 1), ("remark", None)]
    assert payload(created["value"]) == left
    assert (payload(tombstone["value"]), tombstone["headers"]) == (None, None)


def test_headers_from_the_key() -> None:
    given = unwrapped("HeaderFrom$Key", fields="id", headers="number", operation="copy")
    assert [headers(row) for row in rows(changes(table(), *DELETED), given)] == [[("number", 1)]] * 2


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"fields": "id,note", "headers": "a", "operation": "copy"}, ConfigError, "same number of elements"),
        ({"fields": "id", "headers": "a", "operation": "swap"}, ConfigError, "move, copy"),
        ({"fields": "gone", "headers": "a", "operation": "copy"}, TransformError, "gone"),
    ],
)
def test_headers_that_cannot_be(settings: dict[str, str], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        rows(changes(table(), *DELETED), unwrapped("HeaderFrom$Value", **settings))


def of_types() -> Any:
    """A row with a column of many types."""
    price = ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal", parameters=(("scale", "2"),))
    tags = ConnectSchema("array", items=ConnectSchema("string"))
    point = ConnectSchema("struct", fields=(Field("x", ConnectSchema("int32")),))
    columns = (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("ratio", ConnectSchema("double"), pa.float64()),
        Column("price", price, pa.decimal128(9, 2)),
        Column("name", ConnectSchema("string", optional=True), pa.string()),
        Column("on", ConnectSchema("boolean"), pa.bool_()),
        Column("tags", tags, pa.list_(pa.string())),
        Column("point", point, pa.struct([("x", pa.int32())])),
    )
    of = TableSchema(TableId("golden", "public", "t"), columns, ("id",), ("id",))
    image = {"id": 1, "ratio": 1.5, "price": Decimal("2.50"), "name": "n", "on": True, "tags": ["a"], "point": {"x": 1}}
    return changes(of, {"op": "c", "after": image}, {"op": "c", "after": {**image, "id": 2, "name": None}})


def test_masks_are_the_zero_of_each_type() -> None:
    found = rows(of_types(), unwrapped("MaskField$Value", fields="id,ratio,price,name,on,tags"))
    masked = {"id": 0, "ratio": 0.0, "price": "AA==", "name": "", "on": False, "tags": [], "point": {"x": 1}}
    assert [payload(row["value"]) for row in found] == [masked, {**masked, "name": None}], "null stays null"
    assert [payload(row["key"])["id"] for row in found] == [1, 2]


def test_a_replacement_is_for_numbers_and_texts() -> None:
    given = unwrapped("MaskField$Value", fields="id,ratio,price,name", replacement="9")
    found = payload(rows(of_types(), given)[0]["value"])
    assert (found["id"], found["ratio"], found["price"], found["name"]) == (9, 9.0, "A4Q=", "9")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fields": "point"}, "a value of the type struct cannot be masked"),
        ({"fields": "tags", "replacement": "x"}, "a value of the type array cannot be masked with a replacement"),
        ({"fields": "id", "replacement": "x"}, "the replacement x is no int32"),
        ({"fields": "id", "replacement": "9" * 40}, "the replacement 9{40} is no int32"),
        ({"fields": "price", "replacement": "1e400"}, "the replacement 1e400 is no bytes"),
    ],
)
def test_what_cannot_be_masked(settings: dict[str, str], words: str) -> None:
    with pytest.raises(TransformError, match=words):
        rows(of_types(), unwrapped("MaskField$Value", **settings))


@pytest.mark.parametrize(
    ("topic", "pattern", "expected"),
    [
        ("${topic}-${timestamp}", "yyyyMMdd", "server1.public.things-20261122"),
        ("${topic}.${timestamp}", "yyyy-MM-dd'T'HH:mm:ss.SSS", "server1.public.things.2026-11-21T21:05:05.007"),
        ("all", "yyyy", "all"),
    ],
)
def test_topics_have_the_time_of_the_record(topic: str, pattern: str, expected: str) -> None:
    at = 1_795_295_105_007_912 if "T" in pattern else 1_795_305_600_000_000
    batch = changes(table(), {"op": "c", "after": IMAGE, "ts_us": at})
    given = properties(CONNECT + "TimestampRouter", {"topic.format": topic, "timestamp.format": pattern})
    (row,) = rows(batch, given)
    assert row["topic"] == expected
    assert json.loads(row["value"])["payload"]["op"] == "c"


def test_a_pattern_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ConfigError, match="The pattern ww is not known here"):
        rows(changes(table(), *DELETED), properties(CONNECT + "TimestampRouter", {"timestamp.format": "ww"}))
