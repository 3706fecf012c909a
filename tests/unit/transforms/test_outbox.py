"""The outbox event router: which rows become messages, and what each setting does to them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import ConfigError, TransformError
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import changes
from tests.unit.events.event_recordings import configured
from tests.unit.transforms.transformed import headers, payload, properties, rows

ROUTER = "io.debezium.transforms.outbox.EventRouter"
STRING, TEXT = ConnectSchema("string"), ConnectSchema("string", optional=True)
TABLE = TableSchema(
    TableId("golden", "public", "outbox"),
    (
        Column("id", STRING, pa.string()),
        Column("aggregatetype", STRING, pa.string()),
        Column("aggregateid", STRING, pa.string()),
        Column("type", STRING, pa.string()),
        Column("payload", TEXT, pa.string()),
        Column("part", ConnectSchema("int32", optional=True), pa.int32()),
        Column("at", ConnectSchema("int64", True, "io.debezium.time.MicroTimestamp", 1), pa.int64()),
    ),
    ("id",),
    ("id",),
)
ROW = {"id": "e1", "aggregatetype": "Order", "aggregateid": "7", "type": "Made", "payload": '{"a": 1}', "part": 3}


def routed(settings: dict[str, str] | None = None, *, ops: str = "c", **columns: Any) -> list[dict[str, Any]]:
    """The messages of rows that differ from ROW in these columns."""
    batch: ChangeBatch = changes(
        TABLE,
        *({"op": op, "before" if op == "d" else "after": {**ROW, "at": -1_500, **columns}} for op in ops),
    )
    return rows(batch, properties(ROUTER, settings))


def test_a_row_becomes_a_message_of_its_aggregate() -> None:
    (row,) = routed()
    assert (row["topic"], payload(row["key"]), payload(row["value"])) == ("outbox.event.Order", "7", '{"a": 1}')
    assert headers(row) == [("id", "e1")]


def test_reads_are_messages_and_deletes_and_updates_are_not() -> None:
    assert len(routed(ops="cdur")) == 2


def test_an_update_of_the_outbox_table_is_an_error_with_fatal() -> None:
    with pytest.raises(TransformError, match="update of the outbox table"):
        routed({"table.op.invalid.behavior": "fatal"}, ops="cu")


def test_columns_go_to_headers_the_envelope_and_the_partition() -> None:
    places = "type:envelope:kind,part:partition,aggregatetype:header"
    (row,) = routed({"table.fields.additional.placement": places})
    assert payload(row["value"]) == {"payload": '{"a": 1}', "kind": "Made"}
    assert row["partition"] == 3
    assert headers(row) == [("id", "e1"), ("aggregatetype", "Order")]
    assert json.loads(row["value"])["schema"]["name"] == "server1.public.outbox.Order.Value"


@pytest.mark.parametrize("depth", [130, 300, pytest.param(999, marks=pytest.mark.long)])
def test_a_deep_document_is_expanded(depth: int) -> None:
    document = '{"a":' * depth + "1" + "}" * depth
    (row,) = routed({"table.expand.json.payload": "true"}, payload=document)
    assert f'"payload":{document}' in row["value"]


@pytest.mark.parametrize(
    "document",
    [
        '{"a":' * 1001 + "1" + "}" * 1001,
        '{"a":' + "[" * 1200 + "]" * 1200 + "}",
        "[" * 100_000,
        '{"a":"\\ud800"}',
        '{"\\udc00":1}',
        '{"a":["x","\\udbff"]}',
        '{"a":' + "9" * 5000 + "}",
    ],
)
def test_a_document_that_no_value_can_be_made_of_is_sent_as_its_text(
    document: str, caplog: pytest.LogCaptureFixture
) -> None:
    (row,) = routed({"table.expand.json.payload": "true"}, payload=document)
    assert payload(row["value"]) == document
    assert "JSON expansion failed" in caplog.text


def test_a_missing_column_ends_it_or_is_left_out() -> None:
    settings = {"table.fields.additional.placement": "colour:envelope,type:header"}
    with pytest.raises(TransformError, match="no field 'colour'"):
        routed(settings)
    (row,) = routed({**settings, "table.field.additional.missing": "ignore"})
    assert headers(row) == [("id", "e1"), ("type", "Made")]
    assert payload(row["value"]) == {"payload": '{"a": 1}'}


@pytest.mark.parametrize(("text", "dead"), [(None, True), (" \n\0", True), ("\u2028", False), ("{}", False)])
def test_an_empty_payload_is_a_tombstone_if_configured(text: str | None, dead: bool) -> None:
    (row,) = routed({"route.tombstone.on.empty.payload": "true"}, payload=text)
    assert (row["value"] is None) == dead
    (kept,) = routed({}, payload=text)
    assert payload(kept["value"]) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"a": {"b": [1, 2]}, "n": null}', {"a": {"b": [1, 2]}}), ("[1]", "[1]"), ("oh", "oh"), (None, None)],
)
def test_a_document_is_expanded_and_anything_else_stays_text(text: str | None, expected: object) -> None:
    (row,) = routed({"table.expand.json.payload": "true"}, payload=text)
    assert payload(row["value"]) == expected


def test_the_time_is_that_of_a_column_cut_to_milliseconds() -> None:
    (row,) = routed({"table.field.event.timestamp": "at"})
    assert row["timestamp"].timestamp() == -0.001
    with pytest.raises(TransformError, match="Unsupported field type"):
        routed({"table.field.event.timestamp": "part"})


def test_a_time_that_no_record_can_have_is_left_out() -> None:
    at = Column("at", ConnectSchema("int64", True, "io.debezium.time.Timestamp", 1), pa.int64())
    of = TableSchema(TABLE.id, (*TABLE.columns[:-1], at), TABLE.key, TABLE.identity)
    made = changes(of, *({"op": "c", "after": {**ROW, "at": time}} for time in (2**63 - 1, -(2**63), -1)))
    found = rows(made, properties(ROUTER, {"table.field.event.timestamp": "at"}))
    assert [row["timestamp"] and row["timestamp"].timestamp() for row in found] == [None, None, -0.001]


def test_kafka_gets_the_time_of_a_message_and_of_no_other_record() -> None:
    made = changes(TABLE, {"op": "c", "after": {**ROW, "at": 1_000_000}})
    for given, time in ((properties(ROUTER, {"table.field.event.timestamp": "at"}), 1.0), ({}, None)):
        (found,) = Encoder(configured(given), SOURCE, "run", own_times=True).encode(made)
        (stamp,) = found.column("timestamp").to_pylist()
        assert (stamp and stamp.timestamp()) == time


def test_the_version_of_the_schema_is_that_of_a_column() -> None:
    settings = {"table.fields.additional.placement": "type:envelope", "table.field.event.schema.version": "part"}
    (row,) = routed(settings)
    assert json.loads(row["value"])["schema"]["version"] == 3


def test_a_schema_of_values_has_its_own_name() -> None:
    """Debezium's EventRouterDelegate.getValueSchema remembers the first name of a payload's schema."""
    settings = {"table.fields.additional.placement": "type:envelope", "table.expand.json.payload": "true"}
    made = [
        {"op": "c", "after": {**ROW, "at": 0, "id": str(number), "aggregatetype": of, "payload": text}}
        for number, (of, text) in enumerate([("B", '{"x": 1}'), ("A", '{"y": "b"}'), ("B", '{"y": "b"}')])
    ]
    given = properties(ROUTER, settings)
    found = [(row["topic"], json.loads(row["value"])["schema"]["name"]) for row in rows(changes(TABLE, *made), given)]
    assert found == [(f"outbox.event.{name}", f"server1.public.outbox.{name}.Value") for name in ("B", "A", "B")]


def test_placements_are_checked_before_anything_starts() -> None:
    for text, words in (("type", "pairs or trios"), ("type:body", "unknown placement 'body'")):
        with pytest.raises(ConfigError, match=words):
            routed({"table.fields.additional.placement": text})
