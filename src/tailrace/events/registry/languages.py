"""Translates Connect schemas for a registry, and writes records behind its ids: Avro, JSON Schema, Connect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from tailrace.events.avro.datums import datums
from tailrace.events.avro.schema import AvroSettings, avro_schema, schema_text
from tailrace.events.form import json_parts
from tailrace.events.parts import Parts, flat
from tailrace.events.records import RecordPart
from tailrace.events.registry.json_schema import json_schema, json_schema_text
from tailrace.events.registry.registry import AVRO, CONNECT, JSON
from tailrace.model.schema import ConnectSchema
from tailrace.model.text import json as text
from tailrace.model.text.strings import quote_wide
from tailrace.override import override

_MAGIC = b"\x00"


@dataclass(frozen=True)
class Ids:
    """Ids of schemas as bytes and as decimal numbers: by record, or those of all."""

    octets: bytes | pa.Array
    numbers: str | pa.Array


class Language(Protocol):
    """A language of schemas. `name` is what registries call it; `kind` is the Arrow type of records."""

    @property
    def name(self) -> str:
        """What registries call it."""

    @property
    def kind(self) -> pa.DataType:
        """The Arrow type of what is written."""

    @property
    def writes_null(self) -> bool:
        """Whether a null that has a schema is written; else its record is null."""

    def described(self, schema: ConnectSchema) -> tuple[Any, str]:
        """The schema and its text. Raises ConfigError for what the language cannot say."""

    def parts(self, values: pa.Array, schema: ConnectSchema, ids: Ids | None) -> Parts:
        """The values, with the ids of their schemas where these are given. Raises DecodeError."""


@dataclass(frozen=True)
class Avro(Language):
    """Avro, by the rules of AvroData.

    `of_values`: a struct that may be null is no union with null, as Apicurio's converter takes the schema from the
    record itself. Confluent's takes it from AvroData.
    """

    settings: AvroSettings
    of_values: bool = False
    name, writes_null = AVRO, False
    kind = pa.binary()

    @override
    def described(self, schema: ConnectSchema) -> tuple[Any, str]:
        node = avro_schema(self._own(schema), self.settings)
        return node, schema_text(node)

    @override
    def parts(self, values: pa.Array, schema: ConnectSchema, ids: Ids | None) -> Parts:
        return datums(values, self._own(schema), self.settings, () if ids is None else (_MAGIC, ids.octets))

    def _own(self, schema: ConnectSchema) -> ConnectSchema:
        is_bare = self.of_values and schema.type == "struct" and schema.optional
        return schema.with_(optional=False) if is_bare else schema


@dataclass(frozen=True)
class JsonSchema(Language):
    """JSON Schema as Confluent's converter has it; with `closed` objects have no further properties."""

    style: text.Style
    closed: bool
    name, writes_null = JSON, True
    kind = pa.binary()

    @override
    def described(self, schema: ConnectSchema) -> tuple[Any, str]:
        node = json_schema(schema, self.style, self.closed)
        return node, json_schema_text(node)

    @override
    def parts(self, values: pa.Array, schema: ConnectSchema, ids: Ids | None) -> Parts:
        written = json_parts(RecordPart(schema, values), self.style)
        return written if ids is None else flat(_MAGIC, ids.octets, written)


@dataclass(frozen=True)
class ConnectJson(Language):
    """Connect's own schemas and JSON, as Apicurio's ExtJsonConverter has them."""

    style: text.Style
    name, writes_null = CONNECT, False
    kind = pa.string()

    @override
    def described(self, schema: ConnectSchema) -> tuple[Any, str]:
        return schema.to_json(), text.schema_text(schema, self.style, quote_wide)

    @override
    def parts(self, values: pa.Array, schema: ConnectSchema, ids: Ids | None) -> Parts:
        written = json_parts(RecordPart(schema, values), self.style)
        return written if ids is None else flat('{"schemaId":', ids.numbers, ',"payload":', written, "}")
