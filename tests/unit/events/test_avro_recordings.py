"""Schemas and datums are those that Kafka Connect's Avro converter made of the same data, text for text, byte for byte.

tests/golden/avro/README.md says how the recordings were made.
"""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tailrace.config.converter_names import APICURIO_AVRO
from tailrace.events.avro.datums import datums, joined
from tailrace.events.avro.schema import AvroSettings, avro_schema, schema_text
from tailrace.events.converter import Converter
from tailrace.events.form import JsonForm
from tailrace.events.parts import text_of
from tailrace.events.payload import array, from_json
from tailrace.events.records import RecordPart
from tailrace.events.registry.apicurio import Artifact, artifact
from tailrace.events.registry.apicurio_settings import ApicurioSettings
from tailrace.events.registry.registry import Wanted
from tailrace.events.unfold import Unfolder
from tailrace.model.schema import ConnectSchema
from tests.behaviour.avro_records import without_logical
from tests.unit.events import event_recordings
from tests.unit.events.event_recordings import RUN_ID, configured
from tests.unit.events.recorded_layouts import ALL, Recorded
from tests.unit.events.test_recordings_of_all import scenarios

FILE = Path(__file__).parents[2] / "golden" / "avro" / "converted.jsonl"
SCRUBBED = AvroSettings(scrub=True)
RECORDED: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_recordings_are_of_all_databases() -> None:
    text = FILE.read_text(encoding="utf-8")
    names = ("postgresql.Source", "mongo.Source", "sqlserver.Source", "db2.Source", "SchemaChangeValue", "Heartbeat")
    assert all(name in text for name in (*names, "TransactionMetadataValue", "Notification"))


@pytest.mark.parametrize("recorded", RECORDED, ids=[each["schema"].get("name") or "unnamed" for each in RECORDED])
def test_schema_and_datum(recorded: dict[str, Any]) -> None:
    schema, settings = ConnectSchema.from_json(recorded["schema"]), AvroSettings()
    assert schema_text(avro_schema(schema, settings)) == recorded["avro"]
    column = array([from_json(recorded["payload"], schema)] * 3, schema)
    assert joined(datums(column, schema, settings), 3).to_pylist() == [base64.b64decode(recorded["datum"])] * 3


ARTIFACTS: list[dict[str, Any]] = [
    json.loads(line) for line in (FILE.parent / "artifacts.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("recorded", ARTIFACTS, ids=[each["topic"] for each in ARTIFACTS])
def test_artifacts_of_nested_records(recorded: dict[str, Any]) -> None:
    """Texts and references are those that Apicurio's converter registered; a registry keeps one of equal references."""
    name = "value.converter"
    properties = {f"{name}.apicurio.registry.url": "http://localhost", name: APICURIO_AVRO}
    settings = ApicurioSettings.of(configured(properties), name)
    node = avro_schema(ConnectSchema.from_json(recorded["schema"]), AvroSettings())
    found = artifact(settings, Wanted(recorded["topic"], "value", node, schema_text(node)))

    def shown(each: Artifact) -> dict[str, Any]:
        inner = {name: shown(reference) for name, reference in each.references}
        return {"artifact": each.name, "text": each.text, "references": inner}

    def wanted(each: dict[str, Any]) -> dict[str, Any]:
        return {**each, "references": {name: wanted(inner) for name, inner in each["references"]}}

    del recorded["schema"], recorded["topic"]
    assert shown(found) == wanted(recorded)


@pytest.mark.parametrize(("of", "scenario"), scenarios(*ALL))
def test_avro_says_what_json_says(of: Recorded, scenario: str) -> None:
    """Of the recorded changes of four databases, made into batches: keys and values read by fastavro and from JSON."""
    config = event_recordings.config_of(scenario, of)
    unfolder, style = Unfolder(config, of.block, RUN_ID), JsonForm(Converter(schemas=False))
    lines = event_recordings.lines(scenario, of)
    names = event_recordings.original("\n".join(lines)) if scenario == "names-avro-unicode" else None
    for batch, _ in event_recordings.batches(lines, names, of):
        for records in (each for group in unfolder.unfold(batch) for each in group):
            for part in filter(None, (records.key, records.value)):
                texts = text_of(style.parts(part, records.topic), 0, len(records), scenario).to_pylist()
                told = array([from_json(json.loads(text), part.schema) for text in texts], part.schema)
                assert _read(part) == [repr(each) for each in told.to_pylist(maps_as_pydicts="strict")]


def _read(part: RecordPart) -> list[str]:
    node = avro_schema(part.schema, SCRUBBED)
    parsed = fastavro.parse_schema(without_logical(json.loads(schema_text(node))))
    found = joined(datums(part.values, part.schema, SCRUBBED), len(part.values)).to_pylist()
    values = [fastavro.schemaless_reader(io.BytesIO(raw), parsed, None) for raw in found]
    return [repr(_named(value, part.schema)) for value in values]


def _named(value: Any, schema: ConnectSchema) -> Any:
    """A value as Connect has it: its own names of fields, and a map where Avro, whose keys are text, has entries."""
    if value is None:
        return None
    if schema.type == "map" and isinstance(value, list):
        return {each["key"]: each["value"] for each in value}
    if schema.type != "struct":
        return value
    return {field.name: _named(each, field.schema) for field, each in zip(schema.fields, value.values(), strict=True)}
