"""How keys and values are written, by their converters: as JSON or as Avro."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.events.converter import JSON, Converter
from tailrace.events.parts import Parts, flat, struct_parts
from tailrace.events.record import KAFKA
from tailrace.events.records import Part
from tailrace.events.registry.form import avro_form
from tailrace.model.text.json import fragment

Entry = tuple[str, pa.Array]
"""A header's name, and its value (binary) by record."""


class Form(Protocol):
    """How the keys or the values of records are written."""

    @property
    def kind(self) -> pa.DataType:
        """The Arrow type of what is written."""

    def parts(self, part: Part, topics: pa.Array) -> Parts:
        """What to join for each record, of which `topics` are the topics. Raises DecodeError and SinkError."""

    def headers(self, part: Part, topics: pa.Array) -> list[Entry]:
        """The headers that the converter adds to each record, in order."""


@dataclass(frozen=True)
class JsonForm:
    """JSON, with or without the schema."""

    converter: Converter
    kind: pa.DataType = KAFKA.field("value").type

    def parts(self, part: Part, topics: pa.Array) -> Parts:
        """See Form."""
        left, right = self.converter.wrap(part.schema)
        if part.column is None:
            return [left, part.text, right]
        values = part.values
        if part.schema.type != "struct" or values.null_count:
            return flat(left, fragment(values, part.schema, self.converter.style), right)
        # A struct's fields stay apart until all is joined: one copy of their text less.
        pieces = [fragment(field.values, field.schema, self.converter.style) for _, field in part.fields()]
        return flat(left, struct_parts([field.name for field in part.schema.fields], pieces), right)

    def headers(self, part: Part, topics: pa.Array) -> list[Entry]:
        """See Form."""
        return []


def form_of(config: Config, part: str) -> Form:
    """The form of the `key` or `value` converter. Raises ConfigError where a property of the registry is missing."""
    converter = Converter.of(config, part)
    return JsonForm(converter) if converter.kind == JSON else avro_form(config, part)


def are_json(config: Config) -> bool:
    """Whether both keys and values are JSON."""
    return all(Converter.of(config, part).kind == JSON for part in ("key", "value"))


def record_schema(config: Config) -> pa.Schema:
    """The columns of the `kafka` shape; keys and values are texts, or bytes where a converter does not write JSON."""
    schema = KAFKA
    for part in ("key", "value"):
        if Converter.of(config, part).kind != JSON:
            at = schema.get_field_index(part)
            schema = schema.set(at, pa.field(part, pa.binary()))
    return schema
