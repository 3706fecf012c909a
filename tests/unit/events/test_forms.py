"""Texts and bytes as keys and values: what an outbox has in its payload, as it is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import DecodeError
from tailrace.events.forms import record_schema
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import changes, table
from tests.unit.events.event_recordings import configured

STRING = "org.apache.kafka.connect.storage.StringConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
UNWRAP = {
    "transforms": "unwrap,field",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.field.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
}


def encoded(properties: dict[str, str]) -> list[dict[str, Any]]:
    image = {"id": 1, "code": "é {1}", "note": None}
    batch = changes(table(), {"op": "c", "after": image}, {"op": "d", "before": image})
    encoder = Encoder(configured({"extended.headers.enabled": "false", **properties}), SOURCE, "run")
    return [row for rows in encoder.encode(batch) for row in rows.to_pylist()]


def test_a_text_is_written_as_it_is_and_a_struct_as_java_prints_it() -> None:
    properties = {**UNWRAP, "transforms.field.field": "code", "key.converter": STRING, "value.converter": STRING}
    rows = encoded(properties)
    assert rows[0]["key"] == "Struct{id=1}"
    assert [row["value"] for row in rows] == ["é {1}", None]


def test_bytes_are_written_as_they_are() -> None:
    columns = (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("raw", ConnectSchema("bytes", optional=True), pa.binary()),
    )
    things = TableSchema(TableId("golden", "public", "things"), columns, ("id",), ("id",))
    rows = [{"op": "c", "after": {"id": 1, "raw": raw}} for raw in (b"\x00\xff", None, b"")]
    config = configured({**UNWRAP, "transforms.field.field": "raw", "value.converter": BYTES, "key.converter": STRING})
    assert [record_schema(config, SOURCE).field(name).type for name in ("key", "value")] == [pa.string(), pa.binary()]
    found = Encoder(config, SOURCE, "run").encode(changes(things, *rows))
    assert [row["value"] for records in found for row in records.to_pylist()] == [b"\x00\xff", None, b""]


def test_what_is_no_bytes_is_an_error_that_names_the_converter() -> None:
    with pytest.raises(DecodeError, match=r"takes bytes, and these are .*Envelope") as caught:
        encoded({"value.converter": BYTES})
    assert "value.converter, topic server1.public.things" in str(caught.value)
