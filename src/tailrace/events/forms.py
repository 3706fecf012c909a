"""Makes the writers of keys and values that the converters name: JSON, Avro, CloudEvents, texts or bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.converter_checks import converter_of
from tailrace.config.converter_names import (
    APICURIO,
    BYTES,
    BYTES_OR_OTHER,
    CLOUD_EVENTS,
    CONFLUENT,
    JSON,
    STRING,
)
from tailrace.config.options.converters import CONVERTER, DELEGATE_CONVERTER
from tailrace.errors import DecodeError
from tailrace.events.converter import Converter
from tailrace.events.form import Entry, Form, JsonForm
from tailrace.events.header_texts import header_texts
from tailrace.events.parts import Parts, in_bytes
from tailrace.events.record import KAFKA
from tailrace.events.records import Header, RecordPart
from tailrace.events.value_texts import DECIMAL
from tailrace.model.arrow import as_type
from tailrace.model.schema import ConnectSchema
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
    """Bytes as they are, and what another converter makes of all else. That one gets no headers, so it adds none."""

    name: str
    other: Form | None = None

    @property
    @override
    def kind(self) -> pa.DataType:
        return pa.binary()

    @override
    def parts(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header] = ()) -> Parts:
        """Raises DecodeError for what is no bytes where there is no other converter."""
        if are_bytes(part.schema):
            return [as_type(part.values, self.kind)]
        if self.other is None:
            raise DecodeError(
                f"the converter takes bytes, and these are {part.schema.name or part.schema.type}",
                where=f"{self.name}.converter, topic {topics[0]}",
                remedy=f"set it to {BYTES_OR_OTHER} and {self.name}.converter.{DELEGATE_CONVERTER.name} to what writes "
                "other records, or add a transform that leaves bytes",
            )
        written = self.other.parts(part, topics, headers)
        return written if self.other.kind == self.kind else in_bytes(written)

    @override
    def headers(self, part: RecordPart, topics: pa.Array) -> list[Entry]:
        return []


def are_bytes(schema: ConnectSchema) -> bool:
    """Whether values are bytes in Java: all of that type but decimals, which are numbers there."""
    return schema.type == "bytes" and schema.name != DECIMAL


def form_of(config: Config, part: str, source: SourceBlock) -> Form:
    """The form of the `key` or `value` converter. Raises ConfigError where a property of the registry is missing.

    What few configurations have is imported when it is asked for: each start of a worker would take 60 ms longer.
    """
    kind = config[CONVERTER[part]]
    if kind == CLOUD_EVENTS:
        from tailrace.events.cloud_events import CloudEvents

        return CloudEvents.of(config, part, source)
    name, inner = converter_of(config, part)
    if kind == BYTES_OR_OTHER:
        return BytesForm(part, None if inner is None else _form(config, part, name, inner))
    return _form(config, part, name, kind)


def _form(config: Config, part: str, name: str, kind: str) -> Form:
    """The form of a converter of that kind, whose properties begin with `name`."""
    if kind in CONFLUENT + APICURIO:
        from tailrace.events.registry.form import registry_form

        return registry_form(config, part)
    if kind == STRING:
        return StringForm()
    return BytesForm(part) if kind == BYTES else JsonForm(Converter.json(config, name))


def are_json(config: Config) -> bool:
    """Whether both keys and values are JSON."""
    return all(Converter.of(config, part).kind == JSON for part in ("key", "value"))


def record_schema(config: Config, source: SourceBlock) -> pa.Schema:
    """The columns of the `kafka` shape; keys and values are texts, or bytes where a converter writes these."""
    schema = KAFKA
    for part in ("key", "value"):
        schema = schema.set(schema.get_field_index(part), pa.field(part, form_of(config, part, source).kind))
    return schema
