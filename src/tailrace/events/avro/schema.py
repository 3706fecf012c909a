"""Avro schemas of Connect schemas, with the text that Kafka Connect's Avro converters register.

The source of the behaviour is AvroData of Confluent's schema registry, of which Apicurio's converter has a copy: names,
properties and their order, unions and defaults. The order of attributes is that of Java's Schema.toString.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

import numpy as np

from tailrace.errors import ConfigError
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.json import dump
from tailrace.model.text.strings import quote_wide

NAMESPACE = "io.confluent.connect.avro"
_PRIMITIVES = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
PRIMITIVES = {"null", *_PRIMITIVES.values()}
# The types that Avro does not tell apart.
_NARROW = ("int8", "int16")
_LOGICAL = "org.apache.kafka.connect.data."
DECIMAL = _LOGICAL + "Decimal"
_LOGICAL_TYPES = {
    DECIMAL: "decimal",
    _LOGICAL + "Time": "time-millis",
    _LOGICAL + "Timestamp": "timestamp-millis",
    _LOGICAL + "Date": "date",
}
_PRECISION, _ANY_PRECISION = "connect.decimal.precision", 64

Node = Any
"""A schema as JSON: a name, a union as a list, or a mapping whose first attributes are in Java's order."""


@dataclass(frozen=True, slots=True)
class AvroSettings:
    """How a converter makes Avro schemas and values.

    `meta_data` adds Connect's names, versions, parameters and defaults; `scrub` makes names legal; with
    `null_is_null` a null of an optional field stays one where the schema has a default; `optional_keys` lets maps
    with optional text keys be Avro's maps.
    """

    meta_data: bool = True
    scrub: bool = False
    null_is_null: bool = False
    optional_keys: bool = False


@dataclass
class _Names:
    """The records that a schema has defined so far, and how many had no name."""

    nodes: dict[str, Node] = field(default_factory=dict)
    unnamed: dict[str, str] = field(default_factory=dict)


def avro_schema(schema: ConnectSchema, settings: AvroSettings) -> Node:
    """The Avro schema of a Connect schema; a record is defined where it comes first and named from then on.

    Raises ConfigError for a name that Avro does not allow.
    """
    return _Builder(settings).node(schema)


def schema_text(node: Node) -> str:
    """The text of a schema as Java writes it: a record's namespace only where it is not that of the record around."""
    return dump(_shortened(node, None), quote_wide)


def records(node: Node) -> Iterator[Mapping[str, Any]]:
    """The records that are defined within a schema, itself included, outer ones first."""
    if isinstance(node, list):
        for member in node:
            yield from records(member)
    elif isinstance(node, Mapping):
        if node["type"] == "record":
            yield node
            for each in node["fields"]:
                yield from records(each["type"])
        for inner in ("items", "values"):
            if inner in node:
                yield from records(node[inner])


def odd_names(node: Node) -> list[str]:
    """The names of records whose namespace Avro's specification does not allow, though Java's converter writes them."""
    return [each["name"] for each in records(node) if not all(map(_is_legal, each["name"].split(".")))]


def has_text_keys(schema: ConnectSchema, settings: AvroSettings) -> bool:
    """Whether a map is one of Avro's, whose keys are texts; others are arrays of entries."""
    keys = schema.keys
    return keys is not None and keys.type == "string" and (not keys.optional or settings.optional_keys)


def value_first(schema: ConnectSchema) -> bool:
    """Whether the union of an optional schema has the value before null, as those have that declare a default."""
    return schema.default is not None and schema.type != "struct"


class _Builder:
    """Makes the nodes of one schema."""

    def __init__(self, settings: AvroSettings) -> None:
        self._settings = settings
        self._names = _Names()

    def node(self, schema: ConnectSchema) -> Node:
        """The node of a schema, a union if it is optional."""
        base = self._base(schema)
        if not schema.optional:
            return base
        return [base, "null"] if value_first(schema) else ["null", base]

    def _base(self, schema: ConnectSchema) -> Node:
        if schema.type == "struct":
            return self._record(schema)
        node: dict[str, Node] = {}
        if schema.items is not None:
            node = {"type": "array", "items": self.node(schema.items)}
        elif schema.keys is not None and schema.values is not None:
            if has_text_keys(schema, self._settings):
                node = {"type": "map", "values": self.node(schema.values)}
            else:
                node = {"type": "array", "items": self._entry(schema)}
        else:
            node = {"type": _PRIMITIVES[schema.type]}
        if schema.name == DECIMAL:
            given = dict(schema.parameters)
            node |= {"scale": int(given["scale"]), "precision": int(given.get(_PRECISION, _ANY_PRECISION))}
        node |= self._properties(schema)
        return node["type"] if len(node) == 1 else node

    def _entry(self, schema: ConnectSchema) -> Node:
        """The record of a map's entry."""
        assert schema.keys is not None
        assert schema.values is not None
        name = f"{NAMESPACE}.MapEntry" if schema.name is None else self._full_name(schema.name)
        fields = [self._field("key", schema.keys), self._field("value", schema.values)]
        node = {"type": "record", "name": name, "fields": fields}
        return self._once(node if schema.name is None else {**node, "connect.internal.type": "MapEntry"})

    def _record(self, schema: ConnectSchema) -> Node:
        name = self._name(schema)
        fields = [self._field(self._scrubbed(each.name), each.schema) for each in schema.fields]
        return self._once({"type": "record", "name": name, "fields": fields, **self._properties(schema)})

    def _once(self, node: dict[str, Node]) -> Node:
        """The record where it comes first, else its name. Raises ConfigError if the name means another one."""
        name = node["name"]
        first = self._names.nodes.setdefault(name, node)
        if first is node:
            return node
        if [_plain(each) for each in first["fields"]] != [_plain(each) for each in node["fields"]]:
            remedy = "give one of the two another name, or leave it out with column.exclude.list"
            raise ConfigError(
                "two different structs have this name, which Avro does not allow", where=name, remedy=remedy
            )
        return name

    def _field(self, name: str, schema: ConnectSchema) -> dict[str, Node]:
        if not _is_legal(name):
            raise ConfigError(
                "Avro does not allow the name of this field",
                where=name,
                remedy="set field.name.adjustment.mode=avro (or avro_unicode), or the converter's scrub.invalid.names",
            )
        node = {"name": name, "type": self.node(schema)}
        if schema.default is None:
            return {**node, "default": None} if schema.optional else node
        # Java drops the default of an optional struct: the first member of its union is null.
        if schema.optional and not value_first(schema):
            return node
        return {**node, "default": self._default(schema, schema.default)}

    def _properties(self, schema: ConnectSchema) -> dict[str, Node]:
        properties: dict[str, Node] = {}
        if self._settings.meta_data:
            properties = {
                "connect.doc": schema.doc,
                "connect.version": schema.version,
                "connect.parameters": dict(schema.parameters) or None,
                "connect.default": None if schema.default is None else self._default(schema, schema.default),
                "connect.name": schema.name,
                "connect.type": schema.type if schema.type in _NARROW else None,
            }
        logical = _LOGICAL_TYPES.get(schema.name or "")
        properties["logicalType"] = logical
        properties |= {name: value for name, value in schema.parameters if name.startswith("avro")}
        return {name: value for name, value in properties.items() if value is not None}

    def _default(self, schema: ConnectSchema, value: Any) -> Node:
        """A default (JSON-ready) as Avro has it: bytes as Latin-1 text."""
        if value is None:
            return None
        if schema.type == "bytes":
            return base64.b64decode(value).decode("latin-1")
        if schema.type == "float":
            return np.float32(value)
        if schema.type == "double":
            return float(value)
        if schema.type == "struct":
            return {self._scrubbed(each.name): self._default(each.schema, value.get(each.name))
                    for each in schema.fields}  # fmt: skip
        if schema.items is not None:
            return [self._default(schema.items, item) for item in value]
        if schema.values is not None and isinstance(value, dict):
            return {name: self._default(schema.values, item) for name, item in value.items()}
        return value

    def _name(self, schema: ConnectSchema) -> str:
        if schema.name is not None:
            return self._full_name(schema.name)
        # Equal structs without a name are one record.
        form, names = dump(schema.with_(optional=False).to_json()), self._names.unnamed
        number = len(names) + 1
        return names.setdefault(form, f"{NAMESPACE}.ConnectDefault{number if number > 1 else ''}")

    def _full_name(self, name: str) -> str:
        parts = [self._scrubbed(part) for part in name.split(".")]
        if not _is_legal(parts[-1]):
            raise ConfigError(
                "Avro does not allow this name of a schema",
                where=name,
                remedy="set schema.name.adjustment.mode=avro (or avro_unicode), or the converter's scrub.invalid.names",
            )
        return ".".join(parts)

    def _scrubbed(self, name: str) -> str:
        """With `scrub.invalid.names` a name as a URL has it, every other character `_`."""
        if not self._settings.scrub or not name or re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            return name
        encoded = quote_plus(name, safe="*-._").replace("~", "%7E")
        return re.sub(r"[^A-Za-z0-9_]", "_", f"x{encoded}" if encoded[0].isdigit() else encoded)


def _is_legal(name: str) -> bool:
    """As Java's Schema.validateName: letters and digits of any script."""
    return bool(name) and (name[0].isalpha() or name[0] == "_") and all(c.isalnum() or c == "_" for c in name)


def _plain(node: Node) -> Node:
    """A schema without what does not change a datum, records as their names."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    if node["type"] == "record":
        return node["name"]
    kept = {name: _plain(node[name]) for name in ("name", "type", "items", "values") if name in node}
    return kept["type"] if len(kept) == 1 else kept


def _shortened(node: Node, space: str | None) -> Node:
    """The schema with records' names split, and those of `space` short."""
    if isinstance(node, list):
        return [_shortened(member, space) for member in node]
    if isinstance(node, str):
        within, _, short = node.rpartition(".")
        return short if within and within == space else node
    if node["type"] != "record":
        return {
            name: _shortened(value, space) if name in ("items", "values") else value for name, value in node.items()
        }
    within, _, short = node["name"].rpartition(".")
    fields = [{**each, "type": _shortened(each["type"], within or None)} for each in node["fields"]]
    named = {"type": "record", "name": short}
    if within and within != space:
        named["namespace"] = within
    elif not within and space:
        named["namespace"] = ""
    rest = {name: value for name, value in node.items() if name not in ("type", "name", "fields")}
    return {**named, "fields": fields, **rest}
