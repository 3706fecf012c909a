"""Writes keys and values in Avro with the ids of their schemas, before each datum or in headers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.converter_options import APICURIO_AVRO
from tailrace.events.avro.datums import datums, joined
from tailrace.events.avro.schema import AvroSettings, Node, avro_schema, schema_text
from tailrace.events.parts import Parts, flat
from tailrace.events.records import Part
from tailrace.events.registry.apicurio import ApicurioRegistry, ApicurioSettings
from tailrace.events.registry.confluent import ConfluentRegistry, ConfluentSettings
from tailrace.events.registry.registry import Registry, Wanted, known_id
from tailrace.model.arrow import indices, is_constant
from tailrace.model.schema import ConnectSchema

Entry = tuple[str, pa.Array]

_MAGIC = b"\x00"
_MOST_SCHEMAS = 10_000


@dataclass
class AvroForm:
    """Keys or values as Avro under one configuration. `id_bytes` is 0 where headers have the ids."""

    part: str
    avro: AvroSettings
    settings: Hashable
    registry: Registry
    id_name: str
    id_bytes: int
    kind = pa.binary()
    # By identity: the schemas of a table are the same objects as long as its columns are.
    _schemas: dict[int, tuple[ConnectSchema, Node, str]] = field(default_factory=dict)

    def parts(self, part: Part, topics: pa.Array) -> Parts:
        """The bytes of each record, of which `topics` are the topics. Raises DecodeError and SinkError."""
        values = datums(part.values, part.schema, self.avro)
        if part.values.null_count:  # a null is no datum, but no value
            whole = joined(values, len(topics))
            values = [pc.if_else(part.values.is_valid(), whole, pa.scalar(None, whole.type))]
        if not self.id_bytes:
            return values
        ids = self._ids(part.schema, topics, self.id_bytes)
        return flat(_MAGIC, ids, values)

    def headers(self, part: Part, topics: pa.Array) -> list[Entry]:
        """The headers that name the schemas, by record; none where the ids stand before the datums."""
        if self.id_bytes:
            return []
        ids, rows = self._ids(part.schema, topics, 8), len(topics)
        column = ids if isinstance(ids, pa.Array) else pa.repeat(pa.scalar(ids, pa.binary()), rows)
        encoding = pa.repeat(pa.scalar(b"BINARY", pa.binary()), rows)
        return [(f"apicurio.{self.part}.{self.id_name}", column), (f"apicurio.{self.part}.encoding", encoding)]

    def wanted(self, schema: ConnectSchema, topic: str) -> Wanted:
        """What a registry is asked for the schema of a topic's records."""
        known = self._schemas.get(id(schema))
        if known is None or known[0] is not schema:
            if len(self._schemas) >= _MOST_SCHEMAS:
                self._schemas.clear()
            node = avro_schema(schema, self.avro)
            known = self._schemas[id(schema)] = (schema, node, schema_text(node))
        return Wanted(topic, self.part, known[1], known[2])

    def _ids(self, schema: ConnectSchema, topics: pa.Array, size: int) -> bytes | pa.Array:
        """The ids by record, or the one id of all."""
        codes = topics.slice(0, 1).dictionary_encode() if is_constant(topics) else topics.dictionary_encode()
        found = [
            known_id(self.settings, lambda: self.registry, self.wanted(schema, topic)).to_bytes(size, "big")
            for topic in codes.dictionary.to_pylist()
        ]
        if len(found) == 1:
            return found[0]
        return pa.array(found, pa.binary()).take(indices(codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)))


def avro_form(config: Config, part: str) -> AvroForm:
    """The form of the `key` or `value` converter, which is one of Avro. Raises ConfigError."""
    prefix = f"{part}.converter"
    meta_data = config.flag(f"{prefix}.connect.meta.data")
    if config.text(prefix) == APICURIO_AVRO:
        apicurio = ApicurioSettings.of(config, part)
        return AvroForm(
            part, AvroSettings(meta_data), apicurio, _apicurio(apicurio), apicurio.id_name, apicurio.id_bytes
        )
    avro = AvroSettings(
        meta_data,
        config.flag(f"{prefix}.scrub.invalid.names"),
        config.flag(f"{prefix}.ignore.default.for.nullables"),
        config.flag(f"{prefix}.allow.optional.map.keys"),
    )
    confluent = ConfluentSettings.of(config, part)
    return AvroForm(part, avro, confluent, _confluent(confluent), "id", 4)


# One for a process: it stays connected.
_apicurio = lru_cache(maxsize=None)(ApicurioRegistry)
_confluent = lru_cache(maxsize=None)(ConfluentRegistry)
