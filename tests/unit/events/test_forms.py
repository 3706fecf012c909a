"""Texts and bytes as keys and values: what an outbox has in its payload, as it is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.converter_names import APICURIO_AVRO
from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import ConfigError, DecodeError
from tailrace.events.forms import are_bytes, record_schema
from tailrace.events.parts import text_of
from tailrace.events.records import RecordPart
from tailrace.events.registry.apicurio import ApicurioRegistry
from tailrace.events.registry.confluent import ConfluentRegistry
from tailrace.events.registry.form import registry_form
from tailrace.events.registry.registry import Wanted
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import changes, table
from tests.unit.events.event_recordings import configured

STRING = "org.apache.kafka.connect.storage.StringConverter"
BYTES_OR_OTHER = "io.debezium.converters.BinaryDataConverter"
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


def bytes_and_null() -> tuple[TableSchema, list[dict[str, Any]]]:
    columns = (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("raw", ConnectSchema("bytes", optional=True), pa.binary()),
    )
    things = TableSchema(TableId("golden", "public", "things"), columns, ("id",), ("id",))
    rows = [{"op": "c", "after": {"id": 1, "raw": raw}} for raw in (b"\x00\xff", None, b"")]
    return things, rows


@pytest.mark.parametrize("converter", [BYTES, BYTES_OR_OTHER])
def test_bytes_are_written_as_they_are(converter: str) -> None:
    things, rows = bytes_and_null()
    own = {"transforms.field.field": "raw", "value.converter": converter, "key.converter": STRING}
    config = configured({**UNWRAP, **own})
    assert [record_schema(config, SOURCE).field(name).type for name in ("key", "value")] == [pa.string(), pa.binary()]
    found = Encoder(config, SOURCE, "run").encode(changes(things, *rows))
    assert [row["value"] for records in found for row in records.to_pylist()] == [b"\x00\xff", None, b""]


def test_what_is_no_bytes_is_an_error_that_names_the_converter() -> None:
    with pytest.raises(DecodeError, match=r"takes bytes, and these are .*Envelope") as caught:
        encoded({"value.converter": BYTES})
    assert "value.converter, topic server1.public.things" in str(caught.value)
    assert "set it to io.debezium.converters.BinaryDataConverter" in str(caught.value)


@pytest.mark.parametrize(
    ("delegate", "settings"),
    [
        ("org.apache.kafka.connect.json.JsonConverter", {"schemas.enable": "false", "decimal.format": "NUMERIC"}),
        ("org.apache.kafka.connect.json.JsonConverter", {}),
        (STRING, {}),
        ("io.confluent.connect.avro.AvroConverter", {"schema.registry.url": "http://localhost"}),
    ],
)
def test_what_is_no_bytes_is_written_as_the_other_converter_does_alone(
    delegate: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConfluentRegistry, "id", lambda *_: 7)
    name = "value.converter"
    unwrap = {"transforms": "unwrap", "transforms.unwrap.type": UNWRAP["transforms.unwrap.type"]}  # no clocks
    alone = encoded({**unwrap, name: delegate, **{f"{name}.{each}": value for each, value in settings.items()}})
    prefix = f"{name}.delegate.converter.type"
    own = {
        **unwrap,
        name: BYTES_OR_OTHER,
        prefix: delegate,
        **{f"{prefix}.{each}": value for each, value in settings.items()},
    }
    expected = [each["value"].encode() if isinstance(each["value"], str) else each["value"] for each in alone]
    assert [each["value"] for each in encoded(own)] == expected


def test_bits_are_bytes_and_decimals_are_not() -> None:
    assert are_bytes(ConnectSchema("bytes", name="io.debezium.data.Bits"))
    assert not are_bytes(ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal"))
    assert not are_bytes(ConnectSchema("string"))


def test_nulls_have_no_headers_and_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of an outbox that may be null, in two topics of which one has nulls alone."""
    asked: list[str] = []

    def seven(registry: ApicurioRegistry, wanted: Wanted) -> int:
        asked.append(wanted.topic)
        return 7

    monkeypatch.setattr(ApicurioRegistry, "id", seven)
    own = {"value.converter": APICURIO_AVRO, "value.converter.apicurio.registry.url": "http://x/apis/registry/v2"}
    form = registry_form(configured(own), "value")
    values = RecordPart(ConnectSchema("string", optional=True), pa.array([None, "a", None]))
    topics = pa.array(["nulls-only", "some", "some"])
    assert [each.to_pylist() for _, each in form.headers(values, topics)] == [
        [None, (7).to_bytes(8, "big"), None],
        [None, b"BINARY", None],
    ]
    assert asked == ["some"]
    nulls = RecordPart(values.schema, pa.nulls(3, pa.string()))
    assert form.headers(nulls, topics) == []
    assert text_of(form.parts(nulls, topics), 0, 3, "a value").null_count == 3
    assert asked == ["some"]


def test_a_null_has_no_headers_of_its_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApicurioRegistry, "id", lambda *_: 7)
    things, rows = bytes_and_null()
    url = {"value.converter.apicurio.registry.url": "http://x/apis/registry/v2"}
    own = {"transforms.field.field": "raw", "value.converter": APICURIO_AVRO, "key.converter": STRING, **url}
    found = Encoder(configured({**UNWRAP, **own}), SOURCE, "run").encode(changes(things, *rows))
    names = [[each["key"] for each in row["headers"]][-2:] for records in found for row in records.to_pylist()]
    added = ["apicurio.value.globalId", "apicurio.value.encoding"]
    assert [each == added for each in names] == [True, False, True]


def test_without_another_converter_what_is_no_bytes_is_an_error() -> None:
    with pytest.raises(DecodeError, match=r"set it to .* and value.converter.delegate.converter.type"):
        encoded({"value.converter": BYTES_OR_OTHER})


@pytest.mark.parametrize(
    ("part", "prefix"),
    [("key", "key.converter.delegate.converter.type"), ("value", "value.converter.delegate.converter.type")],
)
def test_ids_of_the_other_converter_stand_before_the_datums(part: str, prefix: str) -> None:
    own = {f"{part}.converter": BYTES_OR_OTHER, prefix: APICURIO_AVRO}
    form = registry_form(configured({**own, f"{prefix}.apicurio.registry.url": "http://x/apis/registry/v2"}), part)
    assert (form.in_headers, form.id_bytes) == (False, 8)
    with pytest.raises(ConfigError, match=f"{prefix}.apicurio.registry.url: A value is required"):
        configured(own)
