"""The Connect schemas of a table's records: key, row, source block and envelope."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tailrace.errors import ConfigError
from tailrace.events.topics import TopicNaming
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.source import SourceBlock
from tailrace.model.table import Column, TableSchema

_OF_VALUES = re.compile(r"__debezium\.source\.column\.|masked$|truncateLength$")

STRING = ConnectSchema("string")
INT64 = ConnectSchema("int64")
OPTIONAL_STRING = ConnectSchema("string", optional=True)
OPTIONAL_INT64 = ConnectSchema("int64", optional=True)

TRANSACTION_BLOCK = ConnectSchema(
    "struct",
    optional=True,
    name="event.block",
    version=1,
    fields=(Field("id", STRING), Field("total_order", INT64), Field("data_collection_order", INT64)),
)
SNAPSHOT = ConnectSchema(
    "string",
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters=(("allowed", "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"),),
    default="false",
)
OLD_SNAPSHOT = ConnectSchema("boolean", optional=True, default=False)
COMMON_SOURCE = (
    Field("version", STRING),
    Field("connector", STRING),
    Field("name", STRING),
    Field("ts_ms", INT64),
    Field("snapshot", SNAPSHOT),
    Field("db", STRING),
    Field("sequence", OPTIONAL_STRING),
    Field("ts_us", OPTIONAL_INT64),
    Field("ts_ns", OPTIONAL_INT64),
)


@dataclass(frozen=True)
class Envelope:
    """What is constant about a table's records: topic and schemas; `key` is None without key columns.

    `key_extra` is the value of a last key field that tells apart the tables of one topic (regex naming strategies).
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
    topic = naming.table(table.id)
    name = naming.schema_name
    row = ConnectSchema("struct", optional=True, name=name(f"{topic}.Value"), fields=_fields(table, naming))
    clocks = (Field("ts_us", OPTIONAL_INT64), Field("ts_ns", OPTIONAL_INT64))
    value = ConnectSchema(
        "struct",
        name=name(f"{topic}.Envelope"),
        version=None if source.is_old else 2,
        fields=(
            Field("before", row),
            Field("after", row),
            Field("source", source_schema(source)),
            *((Field("transaction", TRANSACTION_BLOCK),) if source.has_transaction else ()),
            Field("op", STRING),
            Field("ts_ms", OPTIONAL_INT64),
            *(() if source.is_old else clocks),
        ),
    )
    extra = naming.key_field(table.id)
    return Envelope(topic, _key(table, naming, name(f"{topic}.Key")), row, value, extra[1] if extra else None)


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
        Field("source", source_schema(source)),
        Field("transaction", TRANSACTION_BLOCK),
        Field("message", row),
    )
    return Envelope(naming.message, named("MessageKey", prefix), row, value)


def source_schema(source: SourceBlock) -> ConnectSchema:
    """The schema of the source block."""
    if source.is_old:
        common = [field for field in COMMON_SOURCE if field.name not in ("ts_us", "ts_ns")]
        old = tuple(Field("snapshot", OLD_SNAPSHOT) if field.name == "snapshot" else field for field in common)
        return ConnectSchema("struct", name=source.schema_name, fields=old + source.fields)
    return ConnectSchema("struct", name=source.schema_name, version=1, fields=COMMON_SOURCE + source.fields)


def _key(table: TableSchema, naming: TopicNaming, name: str) -> ConnectSchema | None:
    if not table.key:
        return None
    fields = tuple(_key_field(table.column(column), naming) for column in table.key)
    extra = naming.key_field(table.id)
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
