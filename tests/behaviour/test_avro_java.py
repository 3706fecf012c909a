"""Apicurio's own Java deserializer and fastavro read the same in our records, in all forms that they may have."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from py4j.java_gateway import JavaGateway

from tailrace.events.parts import text_of
from tailrace.events.payload import array, from_json
from tailrace.events.records import RecordPart
from tailrace.events.registry.form import registry_form
from tailrace.model.schema import ConnectSchema
from tailrace.transforms.encoder import Encoder
from tests.behaviour.avro_records import apicurio, confluent, datum, whole, without_logical
from tests.servers.apicurio_java import JavaDeserializer, deserializers, why_not_here
from tests.servers.registry import Registry
from tests.unit.events import event_recordings
from tests.unit.events.event_recordings import RUN_ID, configured
from tests.unit.events.recorded_layouts import DB2, MONGODB, POSTGRES, SQLSERVER, Recorded
from tests.unit.events.test_avro_recordings import RECORDED

pytestmark = pytest.mark.long

# Types of values, keys of several columns, deletes, and changes of keys, which have headers of their own.
SCENARIOS = [
    (POSTGRES, "types-arrays"),
    (POSTGRES, "types-unknown-included"),
    (POSTGRES, "replica-identity"),
    (POSTGRES, "pk-change"),
    (MONGODB, "bson-types"),
    (MONGODB, "transactions"),
    (SQLSERVER, "types-strings"),
    (SQLSERVER, "types-temporal-adaptive"),
    (DB2, "types-strings-binary"),
    (DB2, "message-key-columns"),
]
OWN = {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}


PARTS = ("key", "value")
_NUMBERS = {
    "type": "struct",
    "name": "Numbers",
    "optional": False,
    "fields": [{"type": kind, "field": kind, "optional": False} for kind in ("float", "double")],
}
ODD_NUMBERS = [
    {"schema": _NUMBERS, "payload": {"float": number, "double": number}}
    for number in (0.1, "NaN", "Infinity", "-Infinity", 1e-320)  # Java's encoder of JSON makes -0.0 of FLOAT 0.0
]
# Refers from a namespace to a record without one, which Java finds and fastavro does not. Not tried either: records
# without fields, whose JSON is the end for fastavro.
_JAVA_ALONE = "some.space.Outer"
# Java prints these in quotes.
_NO_NUMBERS = re.compile(r'"(NaN|-?Infinity)"')


@dataclass(frozen=True)
class Written:
    """How records are written, and what their consumer sets; `id_bytes` is 0 where headers have the ids."""

    properties: Mapping[str, str]
    reading: Mapping[str, str]
    kind: str
    id_bytes: int
    is_confluent: bool = False

    def converters(self, registry: Registry) -> dict[str, str]:
        """The converters of keys and values."""
        if self.is_confluent:
            return confluent(registry, **self.properties)
        paths = {name: f"{registry.base}{value}" for name, value in self.properties.items() if name == "url"}
        return apicurio(registry, **{**self.properties, **paths})

    def consumer(self, registry: Registry) -> dict[str, str]:
        """The properties of the deserializer, which is of version 2 and has that version's defaults."""
        own = {f"apicurio.registry.{name}": value for name, value in self.reading.items()}
        return {"apicurio.registry.url": f"{registry.base}/apis/registry/v2", **own}

    def split(self, part: str, headers: Sequence[Mapping[str, Any]], raw: bytes) -> tuple[int, bytes]:
        """The id and the datum of a record."""
        if not self.id_bytes:
            name = f"apicurio.{part}.{self.kind.removesuffix('s')}"
            (found,) = (each["value"] for each in headers if each["key"] == name)
            return int.from_bytes(found, "big"), raw
        assert raw[0] == 0
        return int.from_bytes(raw[1 : 1 + self.id_bytes], "big"), raw[1 + self.id_bytes :]


V2, V3 = {"url": "/apis/registry/v2"}, {"url": "/apis/registry/v3"}
EIGHT = {"id-handler": "io.apicurio.registry.serde.Legacy8ByteIdHandler", "use-id": "globalId"}
FORMS = {
    "confluent": Written({}, {"as-confluent": "true", "use-id": "contentId"}, "contentIds", 4, True),
    "as-confluent": Written(
        {**V2, "headers.enabled": "false", "as-confluent": "true"}, {"as-confluent": "true"}, "globalIds", 4
    ),
    "defaults-of-2": Written(V2, {}, "globalIds", 0),
    "eight-bytes-of-2": Written({**V2, "headers.enabled": "false"}, {}, "globalIds", 8),
    "references-in-headers-of-2": Written({**V2, "dereference-schema": "false"}, {}, "globalIds", 0),
    "defaults-of-3": Written(V3, {"as-confluent": "true", "use-id": "contentId"}, "contentIds", 4),
    "headers-of-3": Written({**V3, "headers.enabled": "true"}, {"use-id": "contentId"}, "contentIds", 0),
    "eight-bytes-of-3": Written({**V3, **EIGHT}, {}, "globalIds", 8),
    "whole-schemas-of-3": Written(
        {**V3, **EIGHT, "dereference-schema": "true", "headers.enabled": "true"}, {}, "globalIds", 0
    ),
}


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    if (reason := why_not_here()) is not None:
        pytest.skip(reason)
    with deserializers() as gateway:
        yield gateway


class Consumers:
    """The deserializer of keys and that of values, beside fastavro."""

    def __init__(self, form: Written, java: JavaGateway, registry: Registry) -> None:
        self._form, self._registry = form, registry
        self._readers = {part: JavaDeserializer(java, form.consumer(registry), part) for part in PARTS}
        self._texts: dict[int, str] = {}

    def compare(self, part: str, row: Mapping[str, Any]) -> None:
        """Raises AssertionError where they read another key or value of a record."""
        headers, raw = row["headers"] or (), row[part]
        printed = self._readers[part].json(row["topic"], headers, raw)
        if raw is None:
            assert printed is None
            return
        assert printed is not None
        id_, own = self._form.split(part, headers, raw)
        text = self._text(id_)
        if text.startswith("["):  # null or a record; the deserializer gives the record
            text, own = json.dumps(json.loads(text)[own[0] // 2]), own[1:]
        # Written by fastavro it is the same bytes: this compares numbers of 32 bits and NaN as well.
        assert _rewritten(text, printed) == own, (printed, datum(text, own))

    def _text(self, id_: int) -> str:
        if id_ not in self._texts:
            found = (
                self._registry.schema(id_) if self._form.is_confluent else whole(self._registry, self._form.kind, id_)
            )
            self._texts[id_] = json.dumps(without_logical(json.loads(found)))
        return self._texts[id_]


def _rewritten(text: str, printed: str) -> bytes:
    """What Avro's JSON encoder printed, read by fastavro and written in binary."""
    schema, out = fastavro.parse_schema(json.loads(text)), io.BytesIO()
    (found,) = fastavro.json_reader(io.StringIO(_NO_NUMBERS.sub(r"\1", printed)), schema)
    fastavro.schemaless_writer(out, schema, found)
    return out.getvalue()


def encoded(scenario: str, of: Recorded, properties: Mapping[str, str]) -> list[dict[str, Any]]:
    """The records that the encoder makes of the recorded changes."""
    encoder = Encoder(configured({**OWN, **properties}), of.block, RUN_ID)
    changes = event_recordings.batches(event_recordings.lines(scenario, of), None, of)
    return [row for batch, _ in changes for records in encoder.encode(batch) for row in records.to_pylist()]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_java_reads_what_fastavro_reads(form: Written, java: JavaGateway, registry: Registry) -> None:
    consumers = Consumers(form, java, registry)
    seen: Counter[str] = Counter()
    for of, scenario in SCENARIOS:
        for row in encoded(scenario, of, form.converters(registry)):
            for part in PARTS:
                consumers.compare(part, row)
                seen[part] += row[part] is not None
    assert min(seen[part] for part in PARTS) > 50


@pytest.mark.parametrize("form", ["confluent", "defaults-of-2", "defaults-of-3"])
def test_java_reads_each_kind_of_field(form: str, java: JavaGateway, registry: Registry) -> None:
    consumers = Consumers(FORMS[form], java, registry)
    written = registry_form(configured(FORMS[form].converters(registry)), "value")
    records = [each for each in RECORDED if each["schema"].get("fields") and each["schema"].get("name") != _JAVA_ALONE]
    assert len(records) > 80
    for number, each in enumerate([*records, *ODD_NUMBERS]):
        topic, schema = f"kinds-{form}-{number}", ConnectSchema.from_json(each["schema"])
        part, topics = RecordPart(schema, array([from_json(each["payload"], schema)], schema)), pa.array([topic])
        headers = [{"key": name, "value": column[0].as_py()} for name, column in written.headers(part, topics)]
        raw = text_of(written.parts(part, topics), 0, 1, topic)[0].as_py()
        consumers.compare("value", {"topic": topic, "headers": headers, "value": raw})
