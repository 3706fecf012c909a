"""Makes the writers of keys and values that the converters name: JSON, Avro, CloudEvents, texts or bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.converter_names import APICURIO, BYTES, CLOUD_EVENTS, CONFLUENT, JSON, STRING
from tailrace.errors import DecodeError
from tailrace.events.cloud_events import CloudEvents
from tailrace.events.converter import Converter
from tailrace.events.form import Entry, Form, JsonForm
from tailrace.events.header_texts import header_texts
from tailrace.events.parts import Parts
from tailrace.events.record import KAFKA
from tailrace.events.records import Header, RecordPart
from tailrace.events.registry.form import registry_form
from tailrace.model.arrow import as_type
from tailrace.model.source import SourceBlock
from tailrace.override import override


@dataclass(frozen=True)
class StringForm(Form):
    """The text of a value as Java prints it; a text as it is, such as the payload of an outbox."""

    @property
    @override
    def kind(self) -> pa.DataType:
        return KAFKA.field("value").type

    @override
    def parts(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header] = ()) -> Parts:
        return [header_texts(part.values, part.schema, Converter(False, kind=STRING), "a record")]

    @override
    def headers(self, part: RecordPart, topics: pa.Array) -> list[Entry]:
        return []


@dataclass(frozen=True)
class BytesForm(Form):
    """Bytes as they are."""

    name: str

    @property
    @override
    def kind(self) -> pa.DataType:
        return pa.binary()

    @override
    def parts(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header] = ()) -> Parts:
        """Raises DecodeError for what is no bytes."""
        if part.schema.type != "bytes" or part.schema.name is not None:
            raise DecodeError(
                f"{BYTES} takes bytes, and these are {part.schema.name or part.schema.type}",
                where=f"{self.name}.converter, topic {topics[0]}",
                remedy="take another converter, or a transform that leaves bytes, for example by a predicate",
            )
        return [as_type(part.values, self.kind)]

    @override
    def headers(self, part: RecordPart, topics: pa.Array) -> list[Entry]:
        return []


def form_of(config: Config, part: str, source: SourceBlock) -> Form:
    """The form of the `key` or `value` converter. Raises ConfigError where a property of the registry is missing."""
    converter = Converter.of(config, part)
    if converter.kind in CONFLUENT + APICURIO:
        return registry_form(config, part)
    if converter.kind == CLOUD_EVENTS:
        return CloudEvents.of(config, part, source)
    if converter.kind == STRING:
        return StringForm()
    return BytesForm(part) if converter.kind == BYTES else JsonForm(converter)


def are_json(config: Config) -> bool:
    """Whether both keys and values are JSON."""
    return all(Converter.of(config, part).kind == JSON for part in ("key", "value"))


def record_schema(config: Config, source: SourceBlock) -> pa.Schema:
    """The columns of the `kafka` shape; keys and values are texts, or bytes where a converter writes these."""
    schema = KAFKA
    for part in ("key", "value"):
        schema = schema.set(schema.get_field_index(part), pa.field(part, form_of(config, part, source).kind))
    return schema
