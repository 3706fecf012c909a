"""CloudEvents are those that Debezium's converter made of the same events, byte for byte.

tests/golden/cloudevents/README.md says how the recordings were made.
"""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tailrace.capture.heartbeat import heartbeat
from tailrace.config import Config
from tailrace.config.topics import TopicNaming
from tailrace.connectors.db2.position import BLOCK as DB2
from tailrace.connectors.mongodb.position import BLOCK as MONGODB
from tailrace.connectors.postgres.position import SOURCE as POSTGRES
from tailrace.connectors.sqlserver.position import BLOCK as SQLSERVER
from tailrace.errors import ConfigError, DecodeError
from tailrace.events.payload import array, from_json
from tailrace.events.records import Header, RecordPart, Records
from tailrace.events.registry import form
from tailrace.events.registry.registry import Wanted
from tailrace.events.rows import RowWriter
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import TableSchema
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import OUTBOX, changes, table
from tests.unit.events.event_recordings import configured

GOLDEN = Path(__file__).parents[2] / "golden"
FOLDER = GOLDEN / "cloudevents"
BLOCKS = {"postgres": POSTGRES, "mongodb": MONGODB, "sqlserver": SQLSERVER, "db2": DB2}
RECORDED: list[dict[str, Any]] = [
    json.loads(line) for line in (FOLDER / "converted.jsonl").read_text(encoding="utf-8").splitlines()
]
SCHEMAS = [json.loads(line) for line in (FOLDER / "schemas.jsonl").read_text(encoding="utf-8").splitlines()]
IDS: dict[tuple[str, str], int] = {(each["topic"], each["text"]): each["id"] for each in SCHEMAS}
PREFIX = "value.converter"
CONVERTER = {PREFIX: "io.debezium.converters.CloudEventsConverter"}
KINDS = [each for each in RECORDED if "error" not in each]
FAILED = [each for each in RECORDED if "error" in each]


def named(recorded: dict[str, Any]) -> str:
    return f"{recorded['scenario']}-{recorded['line']}-{recorded['name']}"


def part_of(node: dict[str, Any], rows: int) -> RecordPart:
    schema = ConnectSchema.from_json(node["schema"])
    return RecordPart(schema, array([from_json(node["payload"], schema)] * rows, schema))


@lru_cache
def lines(scenario: str) -> list[str]:
    return (GOLDEN / scenario / "expected.jsonl").read_text(encoding="utf-8").split("\n")


def records(recorded: dict[str, Any], rows: int) -> Records:
    """The recorded event so many times."""
    event = json.loads(lines(recorded["scenario"])[recorded["line"]])
    value = event["value"]
    if recorded.get("value") == "after":
        fields = {field["field"]: field for field in value["schema"]["fields"]}
        value = {"schema": fields["after"], "payload": value["payload"]["after"]}
    headers = tuple(Header(name, part_of(node, rows)) for name, node in recorded.get("headers", ()))
    order, none = np.arange(rows), pa.nulls(rows, pa.int32())
    topic = pa.array([event["topic"]] * rows)
    stamp = pa.nulls(rows, pa.timestamp("us", "UTC"))
    return Records(order, topic, none, stamp, key=None, value=part_of(value, rows), headers=headers)


def config_of(recorded: dict[str, Any]) -> Config:
    own = {f"{PREFIX}.{name}": value for name, value in recorded["config"].items()}
    return configured({**CONVERTER, **own})


def written(recorded: dict[str, Any], rows: int = 3) -> list[Any]:
    writer = RowWriter(config_of(recorded), BLOCKS[recorded["scenario"].partition("/")[0]])
    return [each for found in writer.rows([records(recorded, rows)]) for each in found.column("value").to_pylist()]


@pytest.fixture(autouse=True)
def ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids that the recordings' registry gave; another schema has none."""

    def known(settings: Any, registry: Any, wanted: Wanted) -> int:
        return IDS[wanted.topic, wanted.text]

    monkeypatch.setattr(form, "known_id", known)


@pytest.mark.parametrize("recorded", KINDS, ids=map(named, KINDS))
def test_events_are_the_recorded_ones(recorded: dict[str, Any]) -> None:
    wanted = recorded["written"]
    if isinstance(wanted, dict):
        wanted = base64.b64decode(wanted["base64"])
    assert written(recorded) == [wanted] * 3


@pytest.mark.parametrize("recorded", FAILED, ids=map(named, FAILED))
def test_what_the_reference_stops_at_is_an_error(recorded: dict[str, Any]) -> None:
    with pytest.raises((DecodeError, ConfigError)):
        written(recorded)


def test_recordings_are_of_all_databases_and_of_every_kind() -> None:
    assert {each["scenario"].partition("/")[0] for each in KINDS} == set(BLOCKS)
    assert {"default", "plain", "numeric", "avro data", "avro", "avro named", "all", "rows"} <= {
        each["name"] for each in KINDS
    }


UNWRAP = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.unwrap.add.headers": "op,source",
    "transforms.unwrap.add.headers.prefix": "",
    "transforms.unwrap.delete.tombstone.handling.mode": "drop",
    f"{PREFIX}.metadata.source": "header,id:generate,type:generate",
    f"{PREFIX}.json.schemas.enable": "false",
}


def encoded(
    properties: dict[str, str], *changed: dict[str, Any], of: TableSchema | None = None
) -> list[dict[str, Any]]:
    """The records of changes of a table."""
    encoder = Encoder(configured({**CONVERTER, **properties}), POSTGRES, "run")
    return [row for found in encoder.encode(changes(of or table(), *changed)) for row in found.to_pylist()]


IMAGE = {"id": 1, "code": "é", "note": None}


def test_a_tombstone_stays_one_and_keys_are_as_their_converter_says() -> None:
    found = encoded({}, {"op": "c", "after": IMAGE}, {"op": "d", "before": IMAGE})
    assert [None if row["value"] is None else json.loads(row["value"])["iodebeziumop"] for row in found] == [
        "c",
        "d",
        None,
    ]
    assert [json.loads(row["key"])["payload"] for row in found] == [{"id": 1}] * 3


def test_rows_without_an_envelope_have_their_metadata_in_headers() -> None:
    found = encoded(UNWRAP, {"op": "c", "after": IMAGE}, {"op": "u", "before": IMAGE, "after": {**IMAGE, "code": "x"}})
    events = [json.loads(row["value"]) for row in found]
    assert [event["data"] for event in events] == [IMAGE, {**IMAGE, "code": "x"}]
    assert [event["iodebeziumop"] for event in events] == ["c", "u"]


def test_records_without_these_headers_have_no_value_beside_those_that_have_them() -> None:
    conditional = {
        **UNWRAP,
        "transforms": "unwrap,drop",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.DropHeaders",
        "transforms.drop.headers": "op",
    }
    assert [row["value"] for row in encoded(conditional, {"op": "c", "after": IMAGE})] == [None]


def test_a_batch_of_events_and_others_keeps_its_order() -> None:
    event = next(each for each in KINDS if each["name"] == "no transaction in headers")
    made = records(event, 3)
    half = tuple(Header(each.name, each.part, np.array([True, False, True])) for each in made.headers)
    writer = RowWriter(config_of(event), POSTGRES)
    (found,) = writer.rows([made.with_(headers=half)])
    assert found.column("value").to_pylist() == [event["written"], None, event["written"]]


def test_heartbeats_have_no_value_as_in_the_reference() -> None:
    naming = TopicNaming(configured(CONVERTER))
    encoder = Encoder(configured(CONVERTER), POSTGRES, "run")
    assert [row["value"] for found in encoder.encode(heartbeat(naming, 5)) for row in found.to_pylist()] == [None]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("value.converter.serializer.type", "avro", "JSON cannot be within Avro"),
        ("value.converter.data.serializer.type", "avro", "avro.schema.registry.url: A value is required"),
        ("value.converter.metadata.source", "value", "a value has no id"),
        ("value.converter.metadata.source", "generate,id:generate", "must be value or header"),
        ("value.converter.metadata.source", "value,subject:header", "subject:header is no entry"),
        ("value.converter.metadata.source", "value,id:value,type:generate", "id:value is no entry"),
        ("key.converter", CONVERTER[PREFIX], "take another converter for keys"),
    ],
)
def test_what_cannot_work_is_told_at_the_start(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        configured({**CONVERTER, name: value})


def test_a_traceparent_comes_from_a_header() -> None:
    own = {f"{PREFIX}.opentelemetry.tracing.attributes.enable": "true"}
    with pytest.raises(DecodeError, match="no header traceparent"):
        encoded(own, {"op": "c", "after": IMAGE})
    sources = {f"{PREFIX}.metadata.source": "value,id:generate,type:generate"}
    with pytest.raises(ConfigError, match="a traceparent can come from a header alone"):
        configured({**CONVERTER, **own, **sources})


HEADERS = {
    "transforms": "metadata",
    "transforms.metadata.type": "org.apache.kafka.connect.transforms.HeaderFrom$Value",
    "transforms.metadata.fields": "source,op,transaction",
    "transforms.metadata.headers": "source,op,transaction",
    "transforms.metadata.operation": "copy",
    f"{PREFIX}.json.schemas.enable": "false",
}
# As Debezium's page on CloudEvents has it.
ROUTED = {
    **HEADERS,
    "tombstones.on.delete": "false",
    "transforms": "metadata,outbox",
    "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
    "transforms.outbox.table.expand.json.payload": "true",
    "transforms.outbox.table.fields.additional.placement": "type:header,type:header:dataSchemaName",
    f"{PREFIX}.metadata.source": "header",
}


def outbox(*types: str | None) -> list[dict[str, Any]]:
    """Rows of an outbox whose payloads all have the same fields."""
    return [
        {
            "op": "c",
            "after": {"id": str(at), "aggregatetype": "a", "aggregateid": "7", "type": each, "payload": '{"a":1}'},
        }
        for at, each in enumerate(types)
    ]


def test_each_record_of_an_outbox_has_its_own_id_type_and_name_of_the_schema() -> None:
    named = {f"{PREFIX}.schema.data.name.source.header.enable": "true", f"{PREFIX}.json.schemas.enable": "true"}
    found = encoded({**ROUTED, **named}, *outbox("Made", "Paid", "Made", "Sent"), of=OUTBOX)
    events = [json.loads(row["value"]) for row in found]
    assert [(event["id"], event["type"], event["data"]["schema"]["name"]) for event in events] == [
        ("0", "Made", "Made"),
        ("1", "Paid", "Paid"),
        ("2", "Made", "Made"),
        ("3", "Sent", "Sent"),
    ]


def test_the_source_of_metadata_is_in_any_case() -> None:
    found = encoded(
        {**HEADERS, f"{PREFIX}.metadata.source": "Header, id:GENERATE, type:generate"}, {"op": "c", "after": IMAGE}
    )
    assert json.loads(found[0]["value"])["iodebeziumop"] == "c"


def without(field: str) -> dict[str, str]:
    """A transform that drops a field of the values."""
    return {
        "transforms": "drop",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.drop.exclude": field,
    }


BY_HEADERS = {**HEADERS, f"{PREFIX}.metadata.source": "header,id:generate,type:generate"}


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (without("before"), "has no field before"),
        (without("source"), "has no field source"),
        (without("op"), "has no field op"),
        ({**BY_HEADERS, "transforms.metadata.fields": "after,op,transaction"}, "source has no field connector"),
        ({**BY_HEADERS, "transforms.metadata.headers": "op,source,transaction"}, "source is no struct"),
        ({**BY_HEADERS, "transforms.metadata.fields": "source,ts_ms,transaction"}, "header op .* is no text"),
    ],
)
def test_metadata_that_are_not_there_are_told(properties: dict[str, str], said: str) -> None:
    with pytest.raises(DecodeError, match=said):
        encoded(properties, {"op": "c", "after": IMAGE})


def test_a_header_that_is_null_is_told() -> None:
    with pytest.raises(DecodeError, match="header type of a record is null"):
        encoded(ROUTED, *outbox("Made", None), of=OUTBOX)


def test_a_value_whose_schema_has_no_name_is_an_error_and_not_lost() -> None:
    """The reference stops there too."""
    by_value = {
        f"{PREFIX}.metadata.source": "value,id:generate,type:generate",
        "transforms.outbox.table.expand.json.payload": "false",
    }
    with pytest.raises(DecodeError, match=r"metadata\.source=header"):
        encoded({**ROUTED, **by_value}, *outbox("Made"), of=OUTBOX)
