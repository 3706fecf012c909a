"""How keys and values are written, by their converters: as JSON, Avro, texts or bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.converter_options import AVRO, BYTES
from tailrace.errors import DecodeError
from tailrace.events.converter import JSON, STRING, Converter
from tailrace.events.header_texts import header_texts
from tailrace.events.parts import Parts, flat, struct_parts
from tailrace.events.record import KAFKA
from tailrace.events.records import Part
from tailrace.events.registry.form import avro_form
from tailrace.model.arrow import as_type
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


@dataclass(frozen=True)
class StringForm:
    """The text of a value as Java prints it; a text as it is, such as the payload of an outbox."""

    kind: pa.DataType = KAFKA.field("value").type

    def parts(self, part: Part, topics: pa.Array) -> Parts:
        """See Form."""
        return [header_texts(part.values, part.schema, Converter(False, kind=STRING), "a record")]

    def headers(self, part: Part, topics: pa.Array) -> list[Entry]:
        """See Form."""
        return []


@dataclass(frozen=True)
class BytesForm:
    """Bytes as they are."""

    name: str
    kind: pa.DataType = field(default_factory=pa.binary)

    def parts(self, part: Part, topics: pa.Array) -> Parts:
        """See Form. Raises DecodeError for what is no bytes."""
        if part.schema.type != "bytes" or part.schema.name is not None:
            raise DecodeError(
                f"{BYTES} takes bytes, and these are {part.schema.name or part.schema.type}",
                where=f"{self.name}.converter, topic {topics[0]}",
                remedy="take another converter, or a transform that leaves bytes, for example by a predicate",
            )
        return [as_type(part.values, self.kind)]

    def headers(self, part: Part, topics: pa.Array) -> list[Entry]:
        """See Form."""
        return []


def form_of(config: Config, part: str) -> Form:
    """The form of the `key` or `value` converter. Raises ConfigError where a property of the registry is missing."""
    converter = Converter.of(config, part)
    if converter.kind in AVRO:
        return avro_form(config, part)
    if converter.kind == STRING:
        return StringForm()
    return BytesForm(part) if converter.kind == BYTES else JsonForm(converter)


def are_json(config: Config) -> bool:
    """Whether both keys and values are JSON."""
    return all(Converter.of(config, part).kind == JSON for part in ("key", "value"))


def record_schema(config: Config) -> pa.Schema:
    """The columns of the `kafka` shape; keys and values are texts, or bytes where a converter writes these."""
    schema = KAFKA
    for part in ("key", "value"):
        schema = schema.set(schema.get_field_index(part), pa.field(part, form_of(config, part).kind))
    return schema
