"""Reads keys and values in Avro as consumers do: ids by the registry, datums by a decoder that takes one form alone.

The decoder is not that of a library: it takes the names that Java takes, and no other bytes than Java's encoder writes.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from tailrace.config.converter_names import APICURIO_AVRO, AVRO
from tests.behaviour.avro_records import whole
from tests.golden.compare import Event, load
from tests.golden.databases.database import SkippedError
from tests.servers.registry import Registry, why_not_here

SCHEMAS = "schemas.json"
_HEADER = "apicurio."
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@cache
def registry() -> Registry:
    """The registry of the scenarios. Raises SkippedError where Maven has it not."""
    if (why := why_not_here()) is not None:
        raise SkippedError(why)
    return Registry().start()


def close_registry() -> None:
    """End the registry, if there is one."""
    if registry.cache_info().currsize:
        registry().close()
        registry.cache_clear()


def uses_registry(properties: Mapping[str, str]) -> bool:
    """Whether keys or values are Avro."""
    return any(properties.get(f"{part}.converter") in AVRO for part in ("key", "value"))


@dataclass(frozen=True)
class AvroReader:
    """Reads the records of a pipeline with these properties."""

    properties: Mapping[str, str]
    _texts: dict[tuple[str, int], str] = field(default_factory=dict)

    def event(self, row: Mapping[str, Any], headers: Mapping[str, bytes]) -> dict[str, Any]:
        """Key and value with the texts of their schemas and, of Avro, datums; headers of ids without their ids."""
        found = {part: self._document(part, row[part], headers) for part in ("key", "value")}
        own = {name: "<id>" if name.endswith("Id") else raw.decode() for name, raw in headers.items() if _is_own(name)}
        return {**found, "added": own}

    def _document(self, part: str, raw: bytes | None, headers: Mapping[str, bytes]) -> Any:
        if raw is None:
            return None
        kind = self.properties.get(f"{part}.converter")
        if kind not in AVRO:
            return json.loads(raw)
        for name in ("globalId", "contentId"):
            if (found := headers.get(f"{_HEADER}{part}.{name}")) is not None:
                return _with_datum(self._text(f"{name}s", int.from_bytes(found, "big")), raw)
        assert raw[0] == 0, "no magic byte"
        size = self._id_bytes(part)
        return _with_datum(self._text(self._kind(part), int.from_bytes(raw[1 : 1 + size], "big")), raw[1 + size :])

    def _id_bytes(self, part: str) -> int:
        own = self._own(part)
        is_4 = own.get("as-confluent") == "true" or own.get("id-handler", "").endswith("Default4ByteIdHandler")
        return 8 if own.get("url", "").endswith("/v2") and not is_4 else 4

    def _kind(self, part: str) -> str:
        own = self._own(part)
        if self.properties[f"{part}.converter"] != APICURIO_AVRO:
            return "contentIds"
        return own.get("use-id", "globalId" if own["url"].endswith("/v2") else "contentId") + "s"

    def _own(self, part: str) -> dict[str, str]:
        prefix = f"{part}.converter.apicurio.registry."
        return {name[len(prefix) :]: each for name, each in self.properties.items() if name.startswith(prefix)}

    def _text(self, kind: str, id_: int) -> str:
        """The text of a schema as it was registered; with references, all of them in it."""
        if (kind, id_) not in self._texts:
            base = f"{registry().base}/apis/registry/v3/ids/{kind}/{id_}"
            references = httpx.get(f"{base}/references", timeout=30).json()
            text = whole(registry(), kind, id_) if references else httpx.get(base, timeout=30).text
            self._texts[(kind, id_)] = text
        return self._texts[(kind, id_)]


def _is_own(name: str) -> bool:
    return name.startswith(_HEADER)


def _with_datum(text: str, raw: bytes) -> dict[str, str]:
    return {"schema": text, "datum": base64.b64encode(raw).decode()}


def in_avro(folder: Path) -> None:
    """Add to a scenario the converters of Apicurio, as most of its users have them."""
    file = folder / "connector.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    own = {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}
    for part in ("key", "value"):
        prefix = f"{part}.converter"
        own |= {prefix: APICURIO_AVRO, f"{prefix}.apicurio.registry.url": "${registry}/apis/registry/v2"}
        own |= {f"{prefix}.apicurio.registry.auto-register": "true"}
    document["config"] = {**own, **document["config"]}
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read(event: Event) -> Event:
    """An event with the values of its datums, as tests/golden/compare.py compares it."""
    return {**event, "key": _read(event["key"]), "value": _read(event["value"])}


def _read(document: Any) -> Any:
    if not isinstance(document, dict) or set(document) != {"schema", "datum"}:
        return document
    return {"schema": document["schema"], "payload": decoded(document["schema"], base64.b64decode(document["datum"]))}


def save(folder: Path, events: list[Event]) -> None:
    """Write `expected.jsonl`, and the texts of schemas in a file of their own."""
    texts: dict[str, int] = {}

    def short(document: Any) -> Any:
        if not isinstance(document, dict) or set(document) != {"schema", "datum"}:
            return document
        return {**document, "schema": texts.setdefault(document["schema"], len(texts))}

    lines = [json.dumps({**each, **{part: short(each[part]) for part in ("key", "value")}}, ensure_ascii=False) + "\n"
             for each in events]  # fmt: skip
    (folder / "expected.jsonl").write_text("".join(lines), encoding="utf-8")
    if texts:
        (folder / SCHEMAS).write_text(json.dumps(list(texts), ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def recorded(folder: Path) -> list[Event]:
    """The recorded events of a scenario."""
    events = load(folder / "expected.jsonl")
    if not (folder / SCHEMAS).exists():
        return events
    texts = json.loads((folder / SCHEMAS).read_text(encoding="utf-8"))

    def long(document: Any) -> Any:
        if not isinstance(document, dict) or set(document) != {"schema", "datum"}:
            return document
        return {**document, "schema": texts[document["schema"]]}

    return [read({**each, **{part: long(each[part]) for part in ("key", "value")}}) for each in events]


def decoded(schema: str, raw: bytes) -> Any:
    """The value of a datum, JSON-ready. Raises AssertionError for bytes that Java's encoder does not write."""
    node = json.loads(schema)
    reader = _Datum(raw, dict(_named(node, None)))
    value = reader.value(node, None)
    assert reader.at == len(raw), "bytes behind the datum"
    return value


def _full_name(record: Any, space: str | None) -> str:
    within = record.get("namespace", space)
    return record["name"] if "." in record["name"] or not within else f"{within}.{record['name']}"


def _named(node: Any, space: str | None) -> Iterator[tuple[str, tuple[Any, str | None]]]:
    """The records that are defined in a schema, each with its namespace, by their full names."""
    for member in node if isinstance(node, list) else [node]:
        if not isinstance(member, dict):
            continue
        if member["type"] == "record":
            name = _full_name(member, space)
            within = name.rpartition(".")[0] or None
            yield name, (member, within)
            for each in member["fields"]:
                yield from _named(each["type"], within)
        for inner in ("items", "values"):
            yield from _named(member.get(inner), space)


@dataclass
class _Datum:
    raw: bytes
    names: dict[str, Any]
    at: int = 0

    def value(self, kind: Any, space: str | None) -> Any:
        if isinstance(kind, list):
            return self.value(kind[self._number()], space)
        if isinstance(kind, str):
            if kind in _PRIMITIVES:
                return self._primitive(kind)
            return self._record(*self.names[kind if "." in kind or not space else f"{space}.{kind}"])
        if kind["type"] == "record":
            return self._record(*self.names[_full_name(kind, space)])
        if kind["type"] == "array":
            return [self.value(kind["items"], space) for _ in self._block()]
        if kind["type"] == "map":
            return {self._primitive("string"): self.value(kind["values"], space) for _ in self._block()}
        return self.value(kind["type"], space)

    def _record(self, node: Any, space: str | None) -> dict[str, Any]:
        return {each["name"]: self.value(each["type"], space) for each in node["fields"]}

    def _block(self) -> Any:
        """The places of the items: one block, as Java writes it."""
        if count := self._number():
            assert count > 0
            yield from range(count)
            assert self._number() == 0, "a second block"

    def _primitive(self, kind: str) -> Any:
        if kind == "null":
            return None
        if kind == "boolean":
            return {b"\x00": False, b"\x01": True}[self._take(1)]
        if kind in ("int", "long"):
            return self._number()
        if kind in ("float", "double"):
            form = "<f" if kind == "float" else "<d"
            number = struct.unpack(form, self._take(struct.calcsize(form)))[0]
            return number if math.isfinite(number) and str(number) != "-0.0" else str(number)
        octets = self._take(self._number())
        return octets.decode() if kind == "string" else f"0x{octets.hex()}"

    def _take(self, count: int) -> bytes:
        assert 0 <= count <= len(self.raw) - self.at, "the datum ends early"
        self.at += count
        return self.raw[self.at - count : self.at]

    def _number(self) -> int:
        number = shift = 0
        while True:
            octet = self._take(1)[0]
            number |= (octet & 0x7F) << shift
            if octet < 0x80:
                assert octet or not shift, "a longer number than needed"
                return (number >> 1) ^ -(number & 1)
            shift += 7
