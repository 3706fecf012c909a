"""Apicurio's own Java deserializer and fastavro read the same in our records, in all forms that they may have."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import pytest
from py4j.java_gateway import JavaGateway

from tailrace.transforms.encoder import Encoder
from tests.behaviour.avro_records import apicurio, confluent, datum, whole, without_logical
from tests.servers.apicurio_java import JavaDeserializer, deserializers, why_not_here
from tests.servers.registry import Registry
from tests.unit.events import event_recordings
from tests.unit.events.event_recordings import RUN_ID, configured
from tests.unit.events.recorded_layouts import DB2, MONGODB, POSTGRES, SQLSERVER, Recorded

pytestmark = pytest.mark.long

# All types of values, keys of several columns, deletes, and events whose key has changed, which have headers of their own.
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


def encoded(scenario: str, of: Recorded, properties: Mapping[str, str]) -> list[dict[str, Any]]:
    """The records that the encoder makes of the recorded changes."""
    encoder = Encoder(configured({**OWN, **properties}), of.block, RUN_ID)
    changes = event_recordings.batches(event_recordings.lines(scenario, of), None, of)
    return [row for batch, _ in changes for records in encoder.encode(batch) for row in records.to_pylist()]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_java_reads_what_fastavro_reads(form: Written, java: JavaGateway, registry: Registry) -> None:
    readers = {part: JavaDeserializer(java, form.consumer(registry), part) for part in ("key", "value")}
    texts: dict[int, str] = {}
    seen = dict.fromkeys(readers, 0)
    for of, scenario in SCENARIOS:
        for row in encoded(scenario, of, form.converters(registry)):
            headers = row["headers"] or ()
            for part, reader in readers.items():
                printed = reader.json(row["topic"], headers, row[part])
                if row[part] is None:
                    assert printed is None
                    continue
                assert printed is not None
                id_, raw = form.split(part, headers, row[part])
                if id_ not in texts:
                    texts[id_] = json.dumps(without_logical(json.loads(whole(registry, form.kind, id_))))
                # Written by fastavro it is the same bytes, so numbers of 32 bits are compared as such.
                assert _rewritten(texts[id_], printed) == raw, (printed, datum(texts[id_], raw))
                seen[part] += 1
    assert seen["key"] > 50
    assert seen["value"] > 50


def _rewritten(text: str, printed: str) -> bytes:
    """What Avro's JSON encoder printed, read by fastavro and written in binary."""
    schema, out = fastavro.parse_schema(json.loads(text)), io.BytesIO()
    (found,) = fastavro.json_reader(io.StringIO(printed), schema)
    fastavro.schemaless_writer(out, schema, found)
    return out.getvalue()
