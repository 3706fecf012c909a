"""JSON Schemas and their records are those that Confluent's and Apicurio's converters made of the same data.

tests/golden/json-schema/README.md says how the recordings were made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.converter_names import APICURIO_JSON, CONFLUENT_JSON
from tailrace.errors import SinkError
from tailrace.events.parts import text_of
from tailrace.events.payload import array, from_json
from tailrace.events.records import RecordPart
from tailrace.events.registry import form
from tailrace.events.registry.form import RegistryForm, registry_form
from tailrace.events.registry.json_schema import json_changes
from tailrace.events.registry.registry import Wanted
from tailrace.model.schema import ConnectSchema
from tests.unit.events.event_recordings import configured

GOLDEN = Path(__file__).parents[2] / "golden"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


GIVEN = lines("avro/converted.jsonl")
CONFLUENT, APICURIO = lines("json-schema/converted.jsonl"), lines("json-schema/apicurio.jsonl")
FIVE_BYTES = b"\x00\x00\x00\x01\x02"


def named(recorded: dict[str, Any]) -> str:
    return f"{recorded['line']}-{','.join(recorded['config']) or 'default'}"


def form_of(kind: str, own: dict[str, str], part: str = "value") -> RegistryForm:
    name = f"{part}.converter"
    urls = {f"{name}.schema.registry.url": "http://h", f"{name}.apicurio.registry.url": "http://h/apis/registry/v2"}
    return registry_form(configured({name: kind, **urls, **{f"{name}.{k}": v for k, v in own.items()}}), part)


def written(made: RegistryForm, schema: ConnectSchema, payload: Any) -> list[Any]:
    part = RecordPart(schema, array([from_json(payload, schema)] * 3, schema))
    return text_of(made.parts(part, pa.array(["t"] * 3)), 0, 3, "t").to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("recorded", CONFLUENT, ids=map(named, CONFLUENT))
def test_confluents_schema_and_record(recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "known_id", lambda settings, registry, wanted: 258)
    given = GIVEN[recorded["line"]]
    made, schema = form_of(CONFLUENT_JSON, recorded["config"]), ConnectSchema.from_json(given["schema"])
    assert made.wanted(schema, "t").text == recorded["schema"]
    assert written(made, schema, given["payload"]) == [FIVE_BYTES + recorded["written"].encode()] * 3


@pytest.mark.parametrize("recorded", APICURIO, ids=map(named, APICURIO))
def test_apicurios_schema_and_record(recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "known_id", lambda settings, registry, wanted: recorded["id"])
    given = GIVEN[recorded["line"]]
    made, schema = form_of(APICURIO_JSON, recorded["config"]), ConnectSchema.from_json(given["schema"])
    assert made.wanted(schema, "t").text == recorded["schema"]
    assert made.wanted(schema, "t").language == "KCONNECT"
    assert written(made, schema, given["payload"]) == [recorded["written"]] * 3


@pytest.mark.parametrize(
    "name", ["key.converter.object.additional.properties", "value.converter.object.additional.properties"]
)
def test_objects_may_be_closed(name: str) -> None:
    made = form_of(CONFLUENT_JSON, {"object.additional.properties": "false"}, name.partition(".")[0])
    text = made.wanted(ConnectSchema("struct"), "t").text
    assert text == '{"type":"object","additionalProperties":false}'


def test_a_null_is_a_value_of_confluents_and_none_of_apicurios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "known_id", lambda settings, registry, wanted: 258)
    schema = ConnectSchema("string", optional=True)
    assert written(form_of(CONFLUENT_JSON, {}), schema, None) == [FIVE_BYTES + b"null"] * 3
    assert written(form_of(APICURIO_JSON, {}), schema, None) == [None] * 3


def test_records_of_many_topics_have_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "known_id", lambda settings, registry, wanted: {"a": 1, "b": 2}[wanted.topic])
    schema = ConnectSchema("string")
    part, topics = RecordPart(schema, pa.array(["x", "y", "z"])), pa.array(["a", "b", "a"])
    for kind, wanted in (
        (CONFLUENT_JSON, [b'\x00\x00\x00\x00\x01"x"', b'\x00\x00\x00\x00\x02"y"', b'\x00\x00\x00\x00\x01"z"']),
        (APICURIO_JSON, [f'{{"schemaId":{id_},"payload":"{text}"}}' for id_, text in ((1, "x"), (2, "y"), (1, "z"))]),
    ):
        assert text_of(form_of(kind, {}).parts(part, topics), 0, 3, "t").to_pylist() == wanted


def test_a_strategy_by_record_names_takes_the_title() -> None:
    strategy = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    made = form_of(CONFLUENT_JSON, {"value.subject.name.strategy": strategy})
    assert made.registry.name(made.wanted(ConnectSchema("struct", name="a.B"), "t")) == "a.B"
    with pytest.raises(SinkError, match="no record"):
        made.registry.name(made.wanted(ConnectSchema("string"), "t"))


def test_changes_of_a_schema_are_told_by_paths() -> None:
    text, number = {"type": "string"}, {"type": "integer"}
    old = {"type": "object", "properties": {"before": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {
        "a": text, "b": text, "c": text}}]}}}  # fmt: skip
    new = {"type": "object", "properties": {"before": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {
        "a": text, "b": number, "d": text}}]}}}  # fmt: skip
    told = ["before.b was string and is integer", "before.c is dropped", "before.d is added"]
    assert list(json_changes(old, new)) == told
    assert Wanted("t", "value", new, json.dumps(new), "JSON").difference(new) == "nothing"
