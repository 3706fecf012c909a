"""The Connect schemas of a table's records: key, row, source block and envelope."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tailrace.config.topics import TopicNaming
from tailrace.errors import ConfigError
from tailrace.model.schema import OPTIONAL_INT64, STRING, ConnectSchema, Field
from tailrace.model.source import AFTER, BEFORE, SOURCE, TRANSACTION_BLOCK, SourceBlock
from tailrace.model.table import Column, TableSchema

_OF_VALUES = re.compile(r"__debezium\.source\.column\.|masked$|truncateLength$")

# The member of a logical message's envelope that its content is in.
MESSAGE = "message"


@dataclass(frozen=True)
class Envelope:
    """What is constant about a table's records: topic and schemas; `key` is None without key columns.

    `row` is the schema of an image: a struct, or a text where images are documents.
    `key_extra` is the value of a last key field that distinguishes the tables of one topic (regex naming strategies).
    """

    topic: str
    key: ConnectSchema | None
    row: ConnectSchema
    value: ConnectSchema
    key_extra: str | None = None


def envelope(table: TableSchema, naming: TopicNaming, source: SourceBlock) -> Envelope:
    """The topic and the schemas of a table. Raises ConfigError when two columns get one field name."""
    if table.id.is_message:
        return _message(table, naming, source)
    topic, layout = naming.table(table.id), source.envelope
    name = naming.schema_name
    if layout.is_document:
        row = _document(table)
    else:
        row = ConnectSchema("struct", optional=True, name=name(f"{topic}.Value"), fields=_fields(table, naming))
    schemas = {BEFORE: row, AFTER: row, SOURCE: source.schema}
    fields = tuple(Field(each, schemas[each]) if isinstance(each, str) else each for each in layout.members)
    value = ConnectSchema("struct", name=name(f"{topic}.Envelope"), version=layout.version, fields=fields)
    extra = naming.key_field(table.id, of_documents=layout.is_document)
    return Envelope(topic, _key(table, naming, name(f"{topic}.Key"), extra), row, value, extra[1] if extra else None)


def _document(table: TableSchema) -> ConnectSchema:
    if len(table.value_columns) != 1:
        raise ConfigError(
            "records have documents as JSON, and columns are declared for these",
            where=str(table.id),
            remedy="remove the declaration, or use it with shape=table or in a replica",
        )
    return table.value_columns[0].schema


def _message(table: TableSchema, naming: TopicNaming, source: SourceBlock) -> Envelope:
    """The topic and the schemas of logical messages, which have no images but a `message`."""
    prefix, content = (Field(column.name, column.schema) for column in table.columns)

    def named(name: str, *fields: Field) -> ConnectSchema:
        return ConnectSchema("struct", name=source.message_schemas + name, version=1, fields=fields)

    row = named("Message", prefix, content)
    value = named(
        "MessageValue",
        Field("op", STRING),
        Field("ts_ms", OPTIONAL_INT64),
        Field(SOURCE, source.schema),
        Field("transaction", TRANSACTION_BLOCK),
        Field(MESSAGE, row),
    )
    return Envelope(naming.message, named("MessageKey", prefix), row, value)


def _key(table: TableSchema, naming: TopicNaming, name: str, extra: tuple[str, str] | None) -> ConnectSchema | None:
    if not table.key and not naming.adds_keys:
        return None
    fields = tuple(_key_field(table.column(column), naming) for column in table.key)
    return ConnectSchema("struct", name=name, fields=fields if extra is None else (*fields, Field(extra[0], STRING)))


def _key_field(column: Column, naming: TopicNaming) -> Field:
    """A key's field: what masks and propagation add to a schema is for values only."""
    kept = tuple(each for each in column.schema.parameters if not _OF_VALUES.match(each[0]))
    return Field(naming.field_name(column.name), column.schema.with_(parameters=kept))


def _field(column: Column, naming: TopicNaming) -> Field:
    return Field(naming.field_name(column.name), column.schema)


def _fields(table: TableSchema, naming: TopicNaming) -> tuple[Field, ...]:
    fields = tuple(_field(column, naming) for column in table.value_columns)
    names: dict[str, str] = {}
    for field, column in zip(fields, table.value_columns, strict=True):
        if field.name in names:
            raise ConfigError(
                f"columns {names[field.name]!r} and {column.name!r} both become the field {field.name!r}",
                where=str(table.id),
                remedy="set field.name.adjustment.mode=avro_unicode, or leave one out with column.exclude.list",
            )
        names[field.name] = column.name
    return fields
