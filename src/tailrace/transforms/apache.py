"""Kafka Connect's own transforms that are common with Debezium: fields of keys and values, and a filter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.kinds import FLAG, NAMES, TEXT, optional
from tailrace.errors import TransformError
from tailrace.events.records import RecordPart, Records, struct
from tailrace.model.arrow import repeat
from tailrace.model.schema import STRING, ConnectSchema, Field
from tailrace.override import override
from tailrace.transforms.fields import rebuilt, with_default
from tailrace.transforms.settings import Given, Options, either, setting
from tailrace.transforms.transform import require

_FILL = setting("replace.null.with.default", FLAG, "true")
_SYNTAX = setting("field.syntax.version", either("V1", "V2"), "V1")
_TIMESTAMP = ConnectSchema("int64", name="org.apache.kafka.connect.data.Timestamp", version=1)


class Sided(ABC):
    """A transform of the key or of the value, which is null or a struct; null stays as it is."""

    def __init__(self, key: bool) -> None:
        self.key = key

    def apply(self, records: Records) -> list[Records]:
        """The records with that side transformed."""
        part = records.key if self.key else records.value
        if part is None:
            return [records]
        present, nulls = records, None
        if part.column is None or part.values.null_count:
            valid = part.values.is_valid().to_numpy(zero_copy_only=False)
            present, nulls = records.split(valid)
        out = [] if nulls is None else [nulls]
        side = present.key if self.key else present.value
        if len(present) and side is not None:
            made = self.of_part(side, present)
            out.append(present.with_(key=made) if self.key else present.with_(value=made))
        return out

    @abstractmethod
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The side, transformed; without nulls unless they pass through."""


class WithNulls(Sided):
    """A transform that a null under a schema passes through, too."""

    @override
    def apply(self, records: Records) -> list[Records]:
        """The records with that side transformed."""
        part = records.key if self.key else records.value
        if part is None:
            return [records]
        made = self.of_part(part, records)
        return [records.with_(key=made) if self.key else records.with_(value=made)]


def fields_of(part: RecordPart, where: str, fill: bool = True) -> list[tuple[str, RecordPart]]:
    """The fields of a struct, with `fill` their defaults in place of null. Raises TransformError for another type."""
    if part.schema.type != "struct":
        raise TransformError(f"a struct is expected, not {part.schema.type}", where=where)
    return [(name, with_default(field) if fill else field) for name, field in part.fields()]


_INCLUDE = setting("include", NAMES)
_EXCLUDE = setting("exclude", NAMES)
_WHITELIST = setting("whitelist", NAMES)
_BLACKLIST = setting("blacklist", NAMES)
_RENAMES = setting("renames", NAMES)
_TOPIC_FIELD = setting("topic.field", optional(TEXT))
_PARTITION_FIELD = setting("partition.field", optional(TEXT))
_TIMESTAMP_FIELD = setting("timestamp.field", optional(TEXT))
_STATIC_FIELD = setting("static.field", optional(TEXT))
_STATIC_VALUE = setting("static.value", optional(TEXT))
_FIELD = setting("field", TEXT, required=True)
_FIELDS = setting("fields", NAMES, required=True)
_HEADERS = setting("headers", NAMES, required=True)


class ReplaceField(Sided):
    """Keeps, drops and renames fields."""

    OPTIONS: Options = (
        _INCLUDE,
        _EXCLUDE,
        _WHITELIST,
        _BLACKLIST,
        _RENAMES,
        _FILL,
    )

    def __init__(self, given: Given, key: bool) -> None:
        super().__init__(key)
        config = given.read(self.OPTIONS)
        self.include = config[_INCLUDE] or config[_WHITELIST]
        self.exclude = config[_EXCLUDE] or config[_BLACKLIST]
        self.fill = config[_FILL]
        pairs = [tuple(text.strip() for text in pair.split(":")) for pair in config[_RENAMES]]
        if any(len(pair) != 2 for pair in pairs):
            raise given.problem("renames", "Invalid rename mapping", "write old:new,other:another")
        self.renames: dict[str, str] = {pair[0]: pair[1] for pair in pairs}

    @override
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The struct with the fields that stay."""
        fields = fields_of(part, "ReplaceField", self.fill)
        kept = [
            (self.renames.get(name, name), field)
            for name, field in fields
            if name not in self.exclude and (not self.include or name in self.include)
        ]
        return rebuilt(part, kept)


class InsertField(Sided):
    """Adds the topic, partition, timestamp or a constant; `name!` makes a required field, `name?` an optional one.

    The timestamp is null unless a transform has set one: Debezium's records have none.
    """

    OPTIONS: Options = (
        _TOPIC_FIELD,
        _PARTITION_FIELD,
        _TIMESTAMP_FIELD,
        _STATIC_FIELD,
        _STATIC_VALUE,
        _FILL,
    )

    def __init__(self, given: Given, key: bool) -> None:
        super().__init__(key)
        config = given.read(self.OPTIONS)
        self.fill = config[_FILL]
        self.value = config[_STATIC_VALUE]
        names = {
            "topic": config[_TOPIC_FIELD],
            "partition": config[_PARTITION_FIELD],
            "timestamp": config[_TIMESTAMP_FIELD],
            "static": config[_STATIC_FIELD],
        }
        self.names = {name: _spec(text) for name, text in names.items() if text}
        if not self.names:
            raise given.problem("topic.field", "No field insertion configured", "name the field for what is wanted")
        if "static" in self.names and self.value is None:
            raise given.problem("static.value", "No value specified for static field: static.field")

    @override
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The struct with the fields at its end."""
        fields = fields_of(part, "InsertField", self.fill)
        for kind, (name, is_optional) in self.names.items():
            schema, values = self._inserted(kind, records)
            fields.append((name, RecordPart(schema.with_(optional=is_optional), values)))
        return rebuilt(part, fields)

    def _inserted(self, kind: str, records: Records) -> tuple[ConnectSchema, pa.Array]:
        if kind == "topic":
            return STRING, records.topic
        if kind == "partition":
            return ConnectSchema("int32"), records.partition
        if kind == "timestamp" and not records.timed:
            return _TIMESTAMP, pa.nulls(len(records), pa.int64())
        if kind == "timestamp":
            millis = pc.floor_temporal(records.timestamp, unit="millisecond").cast(pa.timestamp("ms", "UTC"))
            return _TIMESTAMP, millis.cast(pa.int64())
        return STRING, repeat(self.value or "", len(records))


def _spec(text: str) -> tuple[str, bool]:
    """A field's name and whether it is optional."""
    return (text[:-1], text.endswith("?")) if text.endswith(("!", "?")) else (text, True)


class ExtractField(WithNulls):
    """One field in place of the struct; with `field.syntax.version` V2 also one of a struct within, `a.b`.

    The field of null is null.
    """

    OPTIONS: Options = (_FIELD, _SYNTAX, _FILL)

    def __init__(self, given: Given, key: bool) -> None:
        super().__init__(key)
        config = given.read(self.OPTIONS)
        nested = config[_SYNTAX] == "V2"
        self.path = config[_FIELD].split(".") if nested else [config[_FIELD]]
        self.fill = config[_FILL]

    @override
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The field."""
        for name in self.path:
            part = require(part, name, "ExtractField")
        return with_default(part) if self.fill else part


class HoistField(WithNulls):
    """A struct of one field that holds what was there, a null under a schema, too."""

    OPTIONS: Options = (_FIELD,)

    def __init__(self, given: Given, key: bool) -> None:
        super().__init__(key)
        self.name = given.read(self.OPTIONS)[_FIELD]

    @override
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The struct."""
        return struct(ConnectSchema("struct"), [(self.name, part)], len(records))


@dataclass(frozen=True)
class ValueToKey:
    """A key made of fields of the value; records without a value keep theirs."""

    fields: tuple[str, ...]
    fill: bool

    @staticmethod
    def of(given: Given) -> ValueToKey:
        """From the transform's settings. Raises SettingsError."""
        config = given.read((_FIELDS, _FILL))
        return ValueToKey(config[_FIELDS], config[_FILL])

    def apply(self, records: Records) -> list[Records]:
        """The records under their new keys."""
        events, nulls = records.with_value()
        if not len(events) or events.value is None:
            return [records]
        parts = [(name, require(events.value, name, "ValueToKey")) for name in self.fields]
        parts = [(name, with_default(part) if self.fill else part) for name, part in parts]
        schema = ConnectSchema("struct", fields=tuple(Field(name, part.schema) for name, part in parts))
        return [events.with_(key=struct(schema, parts, len(events))), nulls]


@dataclass(frozen=True)
class Drop:
    """Kafka Connect's Filter: drops every record it is applied to; a predicate says which."""

    @staticmethod
    def of(given: Given) -> Drop:
        """It has no settings. Raises SettingsError."""
        given.read(())
        return Drop()

    def apply(self, records: Records) -> list[Records]:
        """None."""
        return [records.take(np.empty(0, np.int64))]


@dataclass(frozen=True)
class DropHeaders:
    """Drops headers by name."""

    names: tuple[str, ...]

    @staticmethod
    def of(given: Given) -> DropHeaders:
        """From the transform's settings. Raises SettingsError."""
        return DropHeaders(given.read((_HEADERS,))[_HEADERS])

    def apply(self, records: Records) -> list[Records]:
        """The records without them."""
        return [records.with_(headers=tuple(each for each in records.headers if each.name not in self.names))]
