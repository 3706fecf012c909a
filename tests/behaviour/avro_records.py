"""Encodes changes with converters of Avro, and reads what they wrote as a consumer would, by fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import httpx

from tailrace.connectors.postgres.position import SOURCE
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.transforms.encoder import Encoder
from tests.servers.registry import Registry
from tests.unit.events.event_recordings import config

CONFLUENT = "io.confluent.connect.avro.AvroConverter"
APICURIO = "io.apicurio.registry.utils.converter.AvroConverter"


def confluent(registry: Registry, **more: str) -> dict[str, str]:
    """Both converters of Confluent's kind; `more` are settings of both, `__` stands for a dot."""
    return _both(CONFLUENT, {"schema.registry.url": registry.confluent}, more)


def apicurio(registry: Registry, **more: str) -> dict[str, str]:
    """Both converters of Apicurio's kind, which register schemas; `more` are settings below apicurio.registry."""
    own = {"apicurio.registry.url": registry.base, "apicurio.registry.auto-register": "true"}
    named = {f"apicurio.registry.{name}": value for name, value in more.items()}
    return _both(APICURIO, {**own, **named}, {})


def _both(kind: str, own: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    settings = {**own, **{name.replace("__", "."): value for name, value in more.items()}}
    both = {f"{part}.converter": kind for part in ("key", "value")}
    return {
        **both,
        **{f"{part}.converter.{name}": each for part in ("key", "value") for name, each in settings.items()},
    }


def encoded(batch: ChangeBatch | ControlBatch, properties: dict[str, str]) -> list[dict[str, Any]]:
    """The records of a batch."""
    encoder = Encoder(config(**properties), SOURCE, "run")
    return [row for records in encoder.encode(batch) for row in records.to_pylist()]


def read(registry: Registry, raw: bytes | None) -> Any:
    """A key or a value with five bytes before it, as fastavro reads it; a tombstone is None."""
    if raw is None:
        return None
    assert raw[0] == 0
    return datum(registry.schema(int.from_bytes(raw[1:5], "big")), raw[5:])


def datum(schema: str, raw: bytes) -> Any:
    """One datum, all of it."""
    stream = io.BytesIO(raw)
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(json.loads(schema)), None)
    assert stream.read() == b""
    return found


def whole(registry: Registry, kind: str, id_: int) -> str:
    """A schema with all that it refers to, by an id of Apicurio's: `contentIds` or `globalIds`."""
    path = f"{registry.base}/apis/registry/v3/ids/{kind}/{id_}"
    if kind == "globalIds":
        return httpx.get(path, params={"references": "DEREFERENCE"}, timeout=30).text
    return json.dumps(_filled(registry, path, path, set()))  # of contents there is no such request


def _filled(registry: Registry, content: str, base: str, known: set[str]) -> Any:
    """A schema with references replaced by what they refer to, each where it comes first."""
    references = {each["name"]: each for each in httpx.get(f"{base}/references", timeout=30).json()}
    node = httpx.get(content, timeout=30).json()
    space = node.get("namespace")

    def filled(kind: Any) -> Any:
        if isinstance(kind, list):
            return [filled(each) for each in kind]
        if isinstance(kind, dict):
            if kind["type"] == "record":  # the items of arrays are defined in place
                known.add(f"{kind.get('namespace', space)}.{kind['name']}")
            return {**kind, **{inner: filled(kind[inner]) for inner in ("items", "values") if inner in kind}}
        name = kind if kind in references else f"{space}.{kind}"
        if name not in references or name in known:
            return kind
        known.add(name)
        place = references[name]
        path = f"groups/{place.get('groupId') or 'default'}/artifacts/{place['artifactId']}/versions/{place['version']}"
        inner = f"{registry.base}/apis/registry/v3/{path}"
        return _filled(registry, f"{inner}/content", inner, known)

    # Without a namespace of its own it does not get that of the record that it comes to be in.
    own = {"namespace": ""} if space is None and known else {}
    return {**node, **own, "fields": [{**field, "type": filled(field["type"])} for field in node["fields"]]}


def without_logical(node: Any) -> Any:
    """The types alone: fastavro would convert values, and takes no Infinity as a default, as Java does."""
    if isinstance(node, list):
        return [without_logical(each) for each in node]
    if isinstance(node, dict):
        return {name: without_logical(value) for name, value in node.items() if name not in ("logicalType", "default")}
    return node
