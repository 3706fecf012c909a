"""Writes keys and values with the ids of their schemas in a registry, before each datum or in headers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.converter_checks import converter_of
from tailrace.config.converter_names import APICURIO, AVRO, CONFLUENT_JSON
from tailrace.config.options.converters import (
    ALLOW_OPTIONAL_MAP_KEYS,
    CONNECT_META_DATA,
    CONVERTER,
    IGNORE_DEFAULT_FOR_NULLABLES,
    OBJECT_ADDITIONAL_PROPERTIES,
    SCRUB_INVALID_NAMES,
)
from tailrace.events.avro.datums import joined
from tailrace.events.avro.schema import AvroSettings, Node
from tailrace.events.converter import Converter
from tailrace.events.form import Entry, Form
from tailrace.events.parts import Parts
from tailrace.events.records import Header, RecordPart
from tailrace.events.registry.apicurio import ApicurioRegistry
from tailrace.events.registry.apicurio_settings import ApicurioSettings
from tailrace.events.registry.confluent import ConfluentRegistry, ConfluentSettings
from tailrace.events.registry.languages import Avro, ConnectJson, Ids, JsonSchema, Language
from tailrace.events.registry.registry import Registry, Wanted, known_id
from tailrace.model.arrow import flags, indices, is_constant
from tailrace.model.schema import ConnectSchema
from tailrace.override import override

_HEADER_BYTES = 8  # a long
_MOST_SCHEMAS = 10_000  # guessed


@dataclass
class RegistryForm(Form):
    """Keys or values under one configuration. An id has `id_bytes` bytes, or stands in headers."""

    part: str
    language: Language
    settings: Hashable
    registry: Registry
    _: KW_ONLY
    id_name: str
    id_bytes: int
    in_headers: bool = False
    # By identity: the schemas of a table are the same objects as long as its columns are.
    _schemas: dict[int, tuple[ConnectSchema, Node, str]] = field(default_factory=dict)

    @property
    @override
    def kind(self) -> pa.DataType:
        return self.language.kind

    @override
    def parts(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header] = ()) -> Parts:
        """The bytes of each record, of which `topics` are the topics. Raises DecodeError and SinkError."""
        ids = None
        if self.are_nulls(part):
            return [pa.nulls(len(topics), self.kind)]
        if not self.in_headers:
            numbers = self._shown(part, topics)
            texts = str(numbers) if isinstance(numbers, int) else numbers.cast(pa.string())
            ids = Ids(_octets(numbers, self.id_bytes), texts)
        values = self.language.parts(part.values, part.schema, ids)
        if part.values.null_count and not self.language.writes_null:
            whole = joined(values, len(topics))
            values = [pc.if_else(part.values.is_valid(), whole, pa.scalar(None, whole.type))]
        return values

    @override
    def headers(self, part: RecordPart, topics: pa.Array) -> list[Entry]:
        """The headers that name the schemas, by record; none where the ids stand before the datums, and of nulls."""
        if not self.in_headers or self.are_nulls(part):
            return []
        ids, rows = _octets(self._shown(part, topics), _HEADER_BYTES), len(topics)
        column = ids if isinstance(ids, pa.Array) else pa.repeat(pa.scalar(ids, pa.binary()), rows)
        encoding = pa.repeat(pa.scalar(b"BINARY", pa.binary()), rows)
        if part.values.null_count:
            valid, null = part.values.is_valid(), pa.scalar(None, pa.binary())
            column, encoding = (pc.if_else(valid, each, null) for each in (column, encoding))
        return [(f"apicurio.{self.part}.{self.id_name}", column), (f"apicurio.{self.part}.encoding", encoding)]

    def are_nulls(self, part: RecordPart) -> bool:
        """Whether nothing is written: the reference's converters return nulls before they ask a registry."""
        return not self.language.writes_null and part.values.null_count == len(part.values)

    def _shown(self, part: RecordPart, topics: pa.Array) -> int | pa.Array:
        """The ids by record, or the one id of all; without meaning for nulls that are not written."""
        if self.language.writes_null or not part.values.null_count:
            return self.ids(part.schema, topics)
        valid = part.values.is_valid()
        ids = self.ids(part.schema, topics.filter(valid))
        if isinstance(ids, int):
            return ids
        return ids.take(indices(np.maximum(np.cumsum(flags(valid)) - 1, 0)))

    def wanted(self, schema: ConnectSchema, topic: str) -> Wanted:
        """What a registry is asked for the schema of a topic's records."""
        described = self._schemas.get(id(schema))
        if described is None or described[0] is not schema:
            if len(self._schemas) >= _MOST_SCHEMAS:
                self._schemas.clear()
            described = self._schemas[id(schema)] = (schema, *self.language.described(schema))
        return Wanted(topic, self.part, described[1], described[2], self.language.name)

    def ids(self, schema: ConnectSchema, topics: pa.Array) -> int | pa.Array:
        """The ids by record, or the one id of all."""
        codes = topics.slice(0, 1).dictionary_encode() if is_constant(topics) else topics.dictionary_encode()
        ids = [
            known_id(self.settings, lambda: self.registry, self.wanted(schema, topic))
            for topic in codes.dictionary.to_pylist()
        ]
        return ids[0] if len(ids) == 1 else pa.array(ids, pa.int64()).take(codes.indices)


def _octets(ids: int | pa.Array, size: int) -> bytes | pa.Array:
    """The bytes of ids."""
    if isinstance(ids, int):
        return ids.to_bytes(size, "big")
    codes = ids.dictionary_encode()
    octets = [each.to_bytes(size, "big") for each in codes.dictionary.to_pylist()]
    return pa.array(octets, pa.binary()).take(codes.indices)


def registry_form(config: Config, part: str) -> RegistryForm:
    """The form of the `key` or `value` converter, or of the one that BinaryDataConverter calls without headers.

    It is one of a registry. Raises ConfigError.
    """
    name, kind = converter_of(config, part)
    form = registry_form_of(config, part, name, str(kind))
    return form if name == CONVERTER[part].name else replace(form, in_headers=False)


def registry_form_of(config: Config, part: str, prefix: str, kind: str) -> RegistryForm:
    """The form of a converter of that kind, whose properties begin with `prefix`. Raises ConfigError."""
    if kind in APICURIO:
        settings = ApicurioSettings.of(config, prefix)
        meta_data = config.within(prefix)[CONNECT_META_DATA]
        language: Language = Avro(AvroSettings(meta_data), of_values=True)
        if kind not in AVRO:
            # The id is part of the text.
            language, settings = ConnectJson(Converter.json(config, prefix).style), replace(settings, in_headers=False)
        registry = _apicurio(settings)
        return RegistryForm(
            part,
            language,
            settings,
            registry,
            id_name=settings.id_name,
            id_bytes=settings.id_bytes,
            in_headers=settings.in_headers,
        )
    confluent = ConfluentSettings.of(config, part, prefix)
    return RegistryForm(
        part, _confluents(config, prefix, kind), confluent, _confluent(confluent), id_name="id", id_bytes=4
    )


def _confluents(config: Config, prefix: str, kind: str) -> Language:
    own = config.within(prefix)
    null_is_null = own[IGNORE_DEFAULT_FOR_NULLABLES]
    if kind == CONFLUENT_JSON:
        style = replace(Converter.json(config, prefix).style, defaults=not null_is_null, entries=True)
        return JsonSchema(style, not own[OBJECT_ADDITIONAL_PROPERTIES])
    return Avro(
        AvroSettings(
            own[CONNECT_META_DATA],
            own[SCRUB_INVALID_NAMES],
            null_is_null,
            own[ALLOW_OPTIONAL_MAP_KEYS],
        )
    )


# One for a process: it stays connected.
_apicurio = lru_cache(maxsize=None)(ApicurioRegistry)
_confluent = lru_cache(maxsize=None)(ConfluentRegistry)
