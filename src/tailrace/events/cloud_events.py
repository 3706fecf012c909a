"""Writes change events as CloudEvents 1.0 in structured form: attributes beside `data`, which has the row images.

The source of the behaviour is the reference's CloudEventsConverter with the CloudEventsMaker of each connector: names,
order and types of attributes, what is no event (its value is null), and where metadata come from. Values are columns:
an event is a struct of Connect, which JsonForm or RegistryForm writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.cloud_events import GENERATE, HEADER, VALUE, metadata_sources, registry_of
from tailrace.config.options.cloud_events import (
    DATA_SERIALIZER_TYPE,
    EXTENSION_ATTRIBUTES_ENABLE,
    OPENTELEMETRY_TRACING_ATTRIBUTES_ENABLE,
    SCHEMA_CLOUDEVENTS_NAME,
    SCHEMA_NAME_ADJUSTMENT_MODE,
    SERIALIZER_TYPE,
)
from tailrace.config.options.converters import CONVERTER
from tailrace.config.topics import adjusted
from tailrace.errors import DecodeError
from tailrace.events.converter import Converter
from tailrace.events.form import Entry, Form, JsonForm
from tailrace.events.parts import Parts, flat, text_of
from tailrace.events.payload import filled
from tailrace.events.record import KAFKA
from tailrace.events.records import Bools, Header, RecordPart, struct
from tailrace.events.registry.form import RegistryForm, registry_form_of
from tailrace.model.arrow import flags, indices, is_constant, join, literal, repeat
from tailrace.model.schema import OPTIONAL_STRING, STRING, ConnectSchema, Field
from tailrace.model.source import SOURCE, TRANSACTION_BLOCK, SourceBlock
from tailrace.override import override

_EXTENSION, _TRANSACTION = "iodebezium", "transaction"
# An int64 is no type of an attribute of CloudEvents.
_TYPES = {"boolean": "boolean", "int8": "int32", "int16": "int32", "int32": "int32", "int64": "string"}
_METADATA = (SOURCE, _TRANSACTION, "op", "ts_ms", "ts_us", "ts_ns")
_BYTES = ConnectSchema("bytes")
_MOST_SCHEMAS = 10_000

Attribute = tuple[str, RecordPart]


@dataclass
class CloudEvents(Form):
    """Values as CloudEvents. `avro` writes what is Avro: `data`, and with `is_avro` the event itself.

    `sources` says where the metadata are: in the value, in headers, or generated.
    """

    source: SourceBlock
    sources: dict[str, str]
    is_avro: bool
    avro: RegistryForm | None
    _: KW_ONLY
    json: JsonForm
    json_data: JsonForm
    addresses: str
    schema_name: str | None
    adjustment: str
    extensions: bool
    tracing: bool
    # Equal schemas are one object, as what is made of a schema is remembered by it.
    _schemas: dict[ConnectSchema, ConnectSchema] = field(default_factory=dict)

    @staticmethod
    def of(config: Config, part: str, source: SourceBlock) -> CloudEvents:
        """As the properties of the `value` converter say. Raises ConfigError."""
        name = CONVERTER[part].name
        own = config.within(name)
        kind, url = registry_of(config, name)
        uses_avro = "avro" in (own[SERIALIZER_TYPE], own[DATA_SERIALIZER_TYPE])
        # Without the record's headers, so the ids always stand before the datums.
        avro = replace(registry_form_of(config, part, f"{name}.avro", kind), in_headers=False) if uses_avro else None
        data = Converter.json(config, f"{name}.json")
        return CloudEvents(
            source,
            metadata_sources(config, name),
            own[SERIALIZER_TYPE] == "avro",
            avro if own[DATA_SERIALIZER_TYPE] == "avro" else None,
            json=JsonForm(replace(data, schemas=False)),
            json_data=JsonForm(data),
            addresses=url,
            schema_name=own[SCHEMA_CLOUDEVENTS_NAME],
            adjustment=own[SCHEMA_NAME_ADJUSTMENT_MODE],
            extensions=own[EXTENSION_ATTRIBUTES_ENABLE],
            tracing=own[OPENTELEMETRY_TRACING_ATTRIBUTES_ENABLE],
        )

    @property
    @override
    def kind(self) -> pa.DataType:
        return pa.binary() if self.is_avro else KAFKA.field("value").type

    @override
    def headers(self, part: RecordPart, topics: pa.Array) -> list[Entry]:
        return []

    @override
    def parts(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header] = ()) -> Parts:
        """Raises DecodeError for metadata that headers do not have."""
        events, rows = self._events(part, headers, len(topics)), len(topics)
        if not events.any():
            return [pa.nulls(rows, self.kind)]
        if events.all():
            return self._written(part, topics, headers)
        places = np.flatnonzero(events)
        at = indices(places)
        written = self._written(part.take(at), topics.take(at), [header.take(places) for header in headers])
        some = text_of(written, 0, len(places), "a value")
        return [some.take(indices(np.cumsum(events) - 1, ~events))]

    def _events(self, part: RecordPart, headers: Sequence[Header], rows: int) -> Bools:
        """Which records are change events: the others' values are null."""
        valid = flags(part.values.is_valid())
        if self.sources[VALUE] == VALUE:
            if part.schema.name is None and valid.any():
                raise DecodeError(
                    "a value is no change event, its schema has no name",
                    where="value.converter",
                    remedy="for values that transforms make, such as those of an outbox, let HeaderFrom or add.headers "
                    "add op, source and transaction before, and set value.converter.metadata.source=header",
                )
            return valid if part.is_envelope else np.zeros(rows, np.bool_)
        for name in (SOURCE, "op"):
            header = _last(headers, name)
            valid = valid & (np.zeros(rows, np.bool_) if header is None else header.where(rows))
        if valid.any() and part.schema.type != "struct":
            raise DecodeError(
                f"a CloudEvent is made of a struct, and this is {part.schema.type}",
                where="value.converter",
                remedy="leave a struct, for example without ExtractField, or take another converter",
            )
        return valid

    def _written(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header]) -> Parts:
        """The events of records: together of those whose schemas have one name."""
        names = _Event(self, part, headers, len(topics)).schema_names()
        if is_constant(names):
            return self._alike(part, topics, headers)
        encoded = names.dictionary_encode()
        places = [np.flatnonzero(flags(pc.equal(encoded.indices, code))) for code in range(len(encoded.dictionary))]
        written = []
        for each in places:
            at = indices(each)
            alike = self._alike(part.take(at), topics.take(at), [header.take(each) for header in headers])
            written.append(text_of(alike, 0, len(each), "a value"))
        return [pa.concat_arrays(written).take(indices(np.argsort(np.concatenate(places))))]

    def _alike(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header]) -> Parts:
        event = _Event(self, part, headers, len(topics))
        data = event.data()
        if self.avro is None:
            attributes = self._struct(None, event.attributes("application/json"))
            parts = self.json.parts(attributes, topics)
            inner = self.json_data.parts(data, topics)
        else:
            about = join(topics, "-data") if self.is_avro else topics
            raw = text_of(self.avro.parts(data, about), 0, len(topics), "the data of a CloudEvent")
            uri = self._uri(data.schema, about)
            content = ("data", RecordPart(_BYTES, raw))
            if self.is_avro:
                made = [*event.attributes("application/avro", uri), content]
                name = adjusted(event.own_names()[0].as_py(), self.adjustment, dots=True)
                return self.avro.parts(self._struct(name, made), topics)
            parts = self.json.parts(self._struct(None, event.attributes("application/avro", uri)), topics)
            inner = self.json.parts(content[1], topics)
        last = parts[-1]
        assert isinstance(last, str)  # a struct without nulls ends with its bracket
        return flat(parts[:-1], last[:-1] + ',"data":', inner, "}")

    def _struct(self, name: str | None, attributes: Sequence[Attribute]) -> RecordPart:
        rows = len(attributes[0][1].values)
        fields = tuple(Field(each, part.schema) for each, part in attributes)
        return struct(self.kept(ConnectSchema("struct", name=name, fields=fields)), attributes, rows)

    def _uri(self, schema: ConnectSchema, topics: pa.Array) -> RecordPart:
        """Where the schema of the data is. As in the reference, an id of eight bytes is read by its first four."""
        assert self.avro is not None
        ids, base = self.avro.ids(schema, topics), f"{self.addresses}/schemas/ids/"
        cut = 8 * (self.avro.id_bytes - 4)
        if isinstance(ids, int):
            return RecordPart(STRING, repeat(f"{base}{ids >> cut}", len(topics)))
        return RecordPart(STRING, join(base, pc.shift_right(ids, pa.scalar(cut, pa.int64())).cast(pa.string())))

    def kept(self, schema: ConnectSchema) -> ConnectSchema:
        """The schema, as the same object each time."""
        if len(self._schemas) >= _MOST_SCHEMAS:
            self._schemas.clear()
        return self._schemas.setdefault(schema, schema)


_SUFFIX = ".CloudEvents.Envelope"


class _Event:
    """The attributes and the data of records, all of which are change events."""

    def __init__(self, how: CloudEvents, part: RecordPart, headers: Sequence[Header], rows: int) -> None:
        self._how, self._part, self._headers, self._rows = how, part, headers, rows
        self._by_header = how.sources[VALUE] == HEADER
        self._source = self._metadata(SOURCE)
        if self._source.schema.type != "struct":
            raise _unfit("the header source is no struct", "let HeaderFrom or add.headers add it")

    def of_source(self, name: str) -> pa.Array:
        """A field of `source` as texts; null where it is. Raises DecodeError."""
        return self._in_source(name).values.cast(pa.string())

    def schema_names(self) -> pa.Array:
        """The names of the schemas under which events are written, by record; alike where these are."""
        return join(self._data_names(), " ", self.own_names()) if self._how.is_avro else self._data_names()

    def own_names(self) -> pa.Array:
        """The names of the schemas of the events themselves, by record."""
        if self._how.schema_name:
            return repeat(self._how.schema_name, self._rows)
        server, database = (self.of_source(each).fill_null(literal("null")) for each in ("name", "db"))
        return join(server, ".", database, _SUFFIX)

    def _data_names(self) -> pa.Array:
        if self._how.sources["dataSchemaName"] == HEADER:
            return self._text("dataSchemaName")
        return join("io.debezium.connector.", self.of_source("connector"), ".Data")

    def _in_source(self, name: str) -> RecordPart:
        if not self._source.has(name):
            raise _unfit(f"source has no field {name}", "leave source as the connector makes it")
        return self._source.field(name)

    def attributes(self, content_type: str, data_schema: RecordPart | None = None) -> list[Attribute]:
        """The attributes in order, without the data."""
        connector = self.of_source("connector")
        texts = {
            "id": self._generated_id() if self._how.sources["id"] == GENERATE else self._text("id"),
            "source": join("/debezium/", connector, "/", self.of_source("name")),
            "specversion": repeat("1.0", self._rows),
            "type": join("io.debezium.connector.", connector, ".DataChangeEvent")
            if self._how.sources["type"] == GENERATE
            else self._text("type"),
            "time": _times(self._in_source("ts_ms").values),
            "datacontenttype": repeat(content_type, self._rows),
        }
        attributes = [(name, RecordPart(STRING, values)) for name, values in texts.items()]
        if data_schema is not None:
            attributes.append(("dataschema", data_schema))
        if self._how.tracing:
            attributes.append(("traceparent", RecordPart(STRING, self._text("traceparent"))))
        return [*attributes, *(self._extensions() if self._how.extensions else ())]

    def data(self) -> RecordPart:
        """The data: the images of an envelope, or with metadata in headers the value as it is."""
        fields = self._part.fields()
        if not self._by_header:
            members = self._how.source.envelope.members
            names = [each if isinstance(each, str) else each.name for each in members]
            fields = [(name, self._of_value(name)) for name in names if name not in _METADATA]
        name = self._data_names()[0].as_py()
        own = tuple(Field(each, part.schema) for each, part in fields)
        return struct(self._how.kept(ConnectSchema("struct", name=name, fields=own)), fields, self._rows)

    def _generated_id(self) -> pa.Array:
        parts: list[str | pa.Array] = ["name:", self.of_source("name")]
        for label, name in self._how.source.event_id:
            parts += [f";{label}:", self.of_source(name).fill_null(literal("null"))]
        return join(*parts)

    def _extensions(self) -> Iterator[Attribute]:
        yield _extension("op"), RecordPart(STRING, self._text("op") if self._by_header else self._of_value("op").values)
        for field_, part in zip(self._source.schema.fields, self._source.fields(), strict=True):
            yield _extension(field_.name), _converted(part[1], part[1].schema.optional)
        block = self._metadata(_TRANSACTION, optional=True)
        for each in TRANSACTION_BLOCK.fields:
            name = _extension(f"tx{each.name}")
            if block.schema.type != "struct":
                yield name, RecordPart(OPTIONAL_STRING, pa.nulls(self._rows, pa.string()))
            else:
                yield name, _converted(block.field(each.name), True)

    def _metadata(self, name: str, optional: bool = False) -> RecordPart:
        if not self._by_header and (self._part.has(name) or not optional):
            return self._of_value(name)
        header = _last(self._headers, name) if self._by_header else None
        if header is None:
            return RecordPart(OPTIONAL_STRING, pa.nulls(self._rows, pa.string()))
        return header.on(self._rows)

    def _of_value(self, name: str) -> RecordPart:
        if not self._part.has(name):
            remedy = "let no transform drop or rename it"
            raise DecodeError(f"a change event has no field {name}", where="value.converter", remedy=remedy)
        return self._part.field(name)

    def _text(self, name: str) -> pa.Array:
        """The text of a header that every event must have. Raises DecodeError."""
        header = _last(self._headers, name)
        if header is None or not header.where(self._rows).all():
            remedy = "let a transform add it, for example HeaderFrom or InsertHeader"
            raise _unfit(f"a record has no header {name} for its CloudEvent", remedy)
        values = header.on(self._rows).values
        if not pa.types.is_string(values.type):
            raise _unfit(f"the header {name} of a record is no text", "add a text, for example by Cast before")
        if values.null_count:
            raise _unfit(f"the header {name} of a record is null", "add it from a field that is never null")
        return values


_STAMP = pa.timestamp("ms", "UTC")


def _times(millis: pa.Array) -> pa.Array:
    """Instants as texts, each of the few that a batch has once."""
    codes = millis.dictionary_encode()
    texts = join(pc.strftime(codes.dictionary.cast(_STAMP), "%Y-%m-%dT%H:%M:%S"), "Z")
    return texts.take(codes.indices)


def _unfit(what: str, remedy: str) -> DecodeError:
    return DecodeError(what, where="value.converter.metadata.source", remedy=remedy)


def _last(headers: Sequence[Header], name: str) -> Header | None:
    return next((header for header in reversed(headers) if header.name == name), None)


def _extension(name: str) -> str:
    return _EXTENSION + "".join(char for char in name if char.isascii() and char.isalnum())


def _converted(part: RecordPart, optional: bool) -> RecordPart:
    """A field of `source` as an extension attribute: flags, small numbers and texts. Raises DecodeError."""
    kind = "string" if part.schema.type == "string" else _TYPES.get(part.schema.type)
    if kind is None:
        raise DecodeError(
            f"a field of type {part.schema.type} cannot be an attribute of a CloudEvent",
            where="value.converter",
            remedy="set extension.attributes.enable=false",
        )
    values = filled(part.values, part.schema)
    arrow = {"boolean": pa.bool_(), "int32": pa.int32(), "string": pa.string()}[kind]
    return RecordPart(ConnectSchema(kind, optional=optional), values.cast(arrow))
