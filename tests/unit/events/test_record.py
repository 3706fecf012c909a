"""Records of mixed batches, tombstones, cuts, control records and placeholders."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tailrace.capture.heartbeat import heartbeat
from tailrace.config.topics import TopicNaming
from tailrace.connectors.postgres.position import SOURCE, SOURCE_TYPE
from tailrace.events.record import KAFKA, RecordEncoder
from tailrace.events.shapes import EventShaper
from tailrace.events.unavailable import placeholder_text
from tailrace.model.change import ChangeBatch, from_ipc
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import BARE, changes, encoded, table
from tests.unit.events.event_recordings import config, configured

ONE = {"id": 1, "code": "a", "note": "one"}
MIXED = (
    {"op": "c", "after": ONE},
    {"op": "d", "before": {"id": 1}},
    {"op": "u", "before": ONE, "after": {**ONE, "note": None}},
    {"op": "t"},
    {"op": "r", "after": ONE, "snapshot": "last"},
)


def payloads(rows: list[dict[str, object]]) -> list[Any]:
    return [None if row["value"] is None else json.loads(str(row["value"])) for row in rows]


def test_mixed_operations_keep_their_order() -> None:
    rows = encoded(changes(table(), *MIXED))
    assert [row["key"] for row in rows] == ['{"id":1}'] * 4 + [None, '{"id":1}']
    values = payloads(rows)
    assert [value and value["op"] for value in values] == ["c", "d", None, "u", "t", "r"]
    assert [value and value["after"] for value in values] == [ONE, None, None, {**ONE, "note": None}, None, ONE]
    assert values[1]["before"] == {"id": 1, "code": "", "note": None}
    assert [value and value["source"]["lsn"] for value in values] == [100, 101, None, 102, 103, 104]
    assert [value and value["source"]["snapshot"] for value in values] == ["false"] * 2 + [None] + ["false"] * 2 + [
        "last"
    ]


def test_tombstones_of_keyless_deletes_and_none_when_off() -> None:
    given = changes(table(key=(), identity=("id", "code", "note")), {"op": "d", "before": ONE})
    assert [(row["key"], row["value"] is None) for row in encoded(given)] == [(None, False), (None, True)]
    assert len(encoded(given, tombstones_on_delete="false")) == 1


def test_schemas_of_key_and_value_are_switched_apart() -> None:
    row = encoded(changes(table(), MIXED[0]), key_converter_schemas_enable="true")[0]
    assert set(json.loads(row["key"])) == {"schema", "payload"}
    assert set(json.loads(row["value"])) > {"before", "after"}


def test_converters_of_keys_and_values_are_set_apart() -> None:
    price = ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal", parameters=(("scale", "2"),))
    columns = (
        Column("price", price, pa.decimal128(9, 2)),
        Column("code", ConnectSchema("string", optional=True, default="none"), pa.string()),
    )
    of = TableSchema(TableId("golden", "public", "t"), columns, ("price", "code"), ("price", "code"))
    image = {"price": Decimal("2.50"), "code": None}
    given = changes(of, {"op": "c", "after": image}, other_key=pa.array([image], of.row_type))

    def payloads_under(**properties: str) -> tuple[object, object, object]:
        (row,) = encoded(given, **{"value_converter_schemas_enable": "false", **properties})
        header = json.loads(row["headers"][0]["value"])["payload"]
        return json.loads(row["key"]), json.loads(row["value"])["after"], header

    plain = {"price": "APo=", "code": "none"}
    assert payloads_under() == (plain, plain, plain)
    assert payloads_under(key_converter_decimal_format="NUMERIC") == ({**plain, "price": 2.5}, plain, plain)
    assert payloads_under(value_converter_decimal_format="numeric") == (plain, {**plain, "price": 2.5}, plain)
    assert payloads_under(key_converter_replace_null_with_default="false")[:2] == ({**plain, "code": None}, plain)
    assert payloads_under(value_converter_replace_null_with_default="false")[:2] == (plain, {**plain, "code": None})
    header = {"header_converter_decimal_format": "NUMERIC", "header_converter_replace_null_with_default": "false"}
    assert payloads_under(**header) == (plain, plain, {"price": 2.5, "code": None})
    (row,) = encoded(given, header_converter_schemas_enable="false", extended_headers_enabled="true")
    assert [header["value"] for header in row["headers"][:2]] == [b'{"price":"APo=","code":"none"}', b'"server1"']


@pytest.mark.parametrize(
    ("converter", "key", "context"),
    [
        (
            "storage.SimpleHeaderConverter",
            b'{"id":1,"name":"a \\"b\\"","price":2.50,"raw":"/w==","gone":null}',
            b"server1",
        ),
        ("storage.StringConverter", b'Struct{id=1,name=a "b",price=2.50,raw=/w==}', b"server1"),
        (
            "json.JsonConverter",
            b'{"id":1,"name":"a \\"b\\"","price":"APo=","raw":"/w==","gone":null}',
            b'"server1"',
        ),
    ],
)
def test_headers_are_written_as_their_converter_does(converter: str, key: bytes, context: bytes) -> None:
    price = ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal", parameters=(("scale", "2"),))
    columns = (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("name", ConnectSchema("string"), pa.string()),
        Column("price", price, pa.decimal128(9, 2)),
        Column("raw", ConnectSchema("bytes"), pa.binary()),
        Column("gone", ConnectSchema("string", optional=True), pa.string()),
    )
    names = tuple(column.name for column in columns)
    of = TableSchema(TableId("golden", "public", "t"), columns, names, names)
    image = {"id": 1, "name": 'a "b"', "price": Decimal("2.50"), "raw": b"\xff", "gone": None}
    given = changes(of, {"op": "c", "after": image}, other_key=pa.array([image], of.row_type))
    settings = {"header_converter": f"org.apache.kafka.connect.{converter}", "extended_headers_enabled": "true"}
    (row,) = encoded(given, header_converter_schemas_enable="false", **settings)
    assert [each["value"] for each in row["headers"][:2]] == [key, context]


def test_output_is_cut_by_bytes_and_a_large_row_travels_alone() -> None:
    texts = ["x" * 100] * 2000 + ["y" * (20 << 20)] + ["x" * 100] * 2000
    given = changes(table(), *({"op": "c", "after": {"id": i, "code": t, "note": None}} for i, t in enumerate(texts)))
    encoder = RecordEncoder(configured({}), SOURCE, "run")
    out = list(encoder.encode(given))
    assert all(each.schema == KAFKA for each in out)
    sizes = [each.column("value").nbytes + each.column("key").nbytes for each in out]
    assert [len(each) for each, size in zip(out, sizes, strict=True) if size > (17 << 20)] == [1]
    ids = [json.loads(key)["payload"]["id"] for each in out for key in each.column("key").to_pylist()]
    assert ids == list(range(len(texts)))


def test_times_of_single_row_and_many_row_transactions_agree() -> None:
    rows = [{"op": "c", "after": ONE, "ts_us": 1_000_000 + at // 5 * 1001} for at in range(20)]
    many = payloads(encoded(changes(table(), *rows)))
    for at, value in enumerate(many):
        micros = 1_000_000 + at // 5 * 1001
        alone = payloads(encoded(changes(table(), rows[at])))[0]
        assert (value["source"]["ts_ms"], value["source"]["ts_us"]) == (micros // 1000, micros)
        assert value["source"]["ts_ns"] == micros * 1000
        assert {**value["source"], "lsn": 0, "sequence": ""} == {**alone["source"], "lsn": 0, "sequence": ""}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (ConnectSchema("string"), '"gone"'),
        (ConnectSchema("bytes"), '"Z29uZQ=="'),
        (ConnectSchema("array", items=ConnectSchema("string", optional=True)), '["gone"]'),
        (ConnectSchema("array", items=ConnectSchema("int32", optional=True)), "[103,111,110,101]"),
        (ConnectSchema("map", keys=ConnectSchema("string"), values=ConnectSchema("string")), '{"gone":"gone"}'),
        (ConnectSchema("array", items=ConnectSchema("int32", name="io.debezium.time.Date")), "[103,111,110,101]"),
        (ConnectSchema("array", items=ConnectSchema("int64", name="io.debezium.time.MicroTimestamp")), None),
        (ConnectSchema("int32"), None),
        (ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal"), None),
    ],
)
def test_placeholders_by_type(schema: ConnectSchema, text: str | None) -> None:
    assert placeholder_text(schema, "gone") == text
    assert placeholder_text(schema, "hex:676f6e65") == text


def test_hstore_as_json_has_an_object_for_what_is_missing() -> None:
    hstore = ConnectSchema("string", name="io.debezium.data.Json", version=1, empty="{}")
    of = TableSchema(
        TableId("golden", "public", "h"),
        (Column("id", ConnectSchema("int32"), pa.int32()), Column("h", hstore, pa.string())),
        ("id",),
        ("id",),
    )
    unchanged = pa.array([{"h": True}, {"h": False}], pa.struct([("h", pa.bool_())]))
    rows = ({"op": "u", "after": {"id": 1}}, {"op": "d", "before": {"id": 1}})
    given = from_ipc(changes(of, *rows, unchanged=unchanged).to_ipc())
    assert isinstance(given, ChangeBatch)
    assert given.table == of
    for transforms in ({}, {"transforms": "t", "transforms.t.type": "io.debezium.transforms.TimezoneConverter"}):
        timezone = {"transforms.t.converted.timezone": "UTC"} if transforms else {}
        encoder = Encoder(configured({**BARE, **transforms, **timezone}), SOURCE, "run")
        found = [
            json.loads(text) for part in encoder.encode(given) for text in part.column("value").to_pylist() if text
        ]
        placeholder = "__debezium_unavailable_value"
        assert json.loads(found[0]["after"]["h"]) == {placeholder: placeholder}
        assert found[1]["before"]["h"] == "{}"


def test_the_placeholder_of_numbers_is_signed_bytes() -> None:
    schema = ConnectSchema("array", items=ConnectSchema("int64", optional=True))
    assert placeholder_text(schema, "hex:00ff7f80") == "[0,-1,127,-128]"


def test_the_uuid_placeholder() -> None:
    items = ConnectSchema("string", optional=True, name="io.debezium.data.Uuid", version=1)
    text = placeholder_text(ConnectSchema("array", items=items), "__debezium_unavailable_value")
    assert text == '["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]'


def test_a_heartbeat() -> None:
    settings = config(topic_heartbeat_prefix="__hb")
    control = from_ipc(heartbeat(TopicNaming(settings), 1795268761582).to_ipc())
    (records,) = RecordEncoder(settings, SOURCE, "run").encode(control)
    (row,) = records.to_pylist()
    assert (row["topic"], row["partition"], row["headers"]) == ("__hb.server1", 0, None)
    assert json.loads(row["key"])["payload"] == {"serverName": "server1"}
    assert json.loads(row["value"])["schema"]["name"] == "io.debezium.connector.common.Heartbeat"
    assert json.loads(row["value"])["payload"] == {"ts_ms": 1795268761582}


def test_the_event_shape() -> None:
    shaper = EventShaper(configured(BARE), SOURCE)
    (rows,) = shaper.encode(changes(table(), *MIXED))
    assert rows.schema == shaper.schema
    found = rows.to_pylist()
    assert [row["op"] for row in found] == ["c", "d", "u", "t", "r"]
    assert [row["key"] for row in found] == ['{"id":1}'] * 3 + [None, '{"id":1}']
    assert [row["before"] is None for row in found] == [True, False, False, True, True]
    assert found[0]["after"] == '{"id":1,"code":"a","note":"one"}'
    assert (found[0]["position"], found[0]["source"]["txId"], found[0]["source"]["schema"]) == (
        f"{100:016X}",
        7,
        "public",
    )
    assert [row["source"]["snapshot"] for row in found] == ["false"] * 4 + ["last"]


@pytest.mark.parametrize(
    ("format_", "shown"), [(None, "2.50"), ("number", "2.50"), ("text", '"2.50"'), ("base64", '"APo="')]
)
def test_decimals_of_the_event_shape(format_: str | None, shown: str) -> None:
    price = ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal", parameters=(("scale", "2"),))
    columns = (Column("price", price, pa.decimal128(9, 2)),)
    of = replace(table(), columns=columns, key=("price",))
    settings = configured({} if format_ is None else {"event.decimal.format": format_})
    (rows,) = EventShaper(settings, SOURCE).encode(changes(of, {"op": "c", "after": {"price": Decimal("2.50")}}))
    (row,) = rows.to_pylist()
    assert row["key"] == row["after"] == f'{{"price":{shown}}}'


def test_an_empty_batch_gives_nothing() -> None:
    given = changes(table(), MIXED[0])
    assert encoded(type(given)(given.table, given.rows.slice(0, 0))) == []
    assert list(EventShaper(configured(BARE), SOURCE).encode(given.slice(0, 0))) == []
    assert pa.types.is_string(KAFKA.field("value").type)


def test_positions_are_texts_that_sort_as_the_log_does() -> None:
    source = pa.array([{"lsn": each} for each in (0, 9, 10, 255, 1 << 40, (1 << 63) - 1, None)], SOURCE_TYPE)
    rows = changes(table(), *[{"op": "c", "after": MIXED[0]["after"]}] * 7)
    at = rows.rows.schema.get_field_index("source")
    (found,) = EventShaper(configured(BARE), SOURCE).encode(rows.with_rows(rows.rows.set_column(at, "source", source)))
    positions = found.column("position").to_pylist()
    assert [int(each, 16) for each in positions[:-1]] == [0, 9, 10, 255, 1 << 40, (1 << 63) - 1]
    assert positions[-1] is None
    assert positions[:-1] == sorted(positions[:-1])


def test_a_position_of_several_columns() -> None:
    block = replace(SOURCE, position=("origin", "txId"))
    source = pa.array([{"origin": "a:1", "txId": 2}, {"origin": "a:1"}, {}], SOURCE_TYPE)
    rows = changes(table(), *[{"op": "c", "after": MIXED[0]["after"]}] * 3)
    at = rows.rows.schema.get_field_index("source")
    (found,) = EventShaper(configured(BARE), block).encode(rows.with_rows(rows.rows.set_column(at, "source", source)))
    assert found.column("position").to_pylist() == [f"a:1/{2:016X}", "a:1", None]
