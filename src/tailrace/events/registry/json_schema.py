"""JSON Schemas of Connect schemas, with the text that Confluent's JsonSchemaConverter registers.

The source of the behaviour is JsonSchemaData of Confluent's schema registry: types, titles and Connect's own
properties. Objects of a schema are Java's hash maps there, so their members stand in the order of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tailrace.events.payload import array, from_json
from tailrace.javalike.hashes import copied_map_order, map_order, sized_map_order
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.text.json import Style, dump, fragment
from tailrace.model.text.strings import quote_wide

Node = dict[str, Any]

_INTEGER, _NUMBER = "integer", "number"
_TYPES = {
    "int8": (_INTEGER, "int8"),
    "int16": (_INTEGER, "int16"),
    "int32": (_INTEGER, "int32"),
    "int64": (_INTEGER, "int64"),
    "float": (_NUMBER, "float32"),
    "double": (_NUMBER, "float64"),
    "boolean": ("boolean", None),
    "string": ("string", None),
    "bytes": ("string", "bytes"),
}
_OWN = "io.confluent"
_NULL: Node = {"type": "null"}


def json_schema(schema: ConnectSchema, style: Style, closed: bool = False) -> Node:
    """The JSON Schema of a Connect schema; with `closed` objects have no further properties.

    Decimals are numbers if `style` writes them so.
    """
    return _Builder(style, closed).node(schema, None)


def json_schema_text(node: Any) -> str:
    """The text of a schema, members in the order of Java's hash maps."""
    return dump(_ordered(node), quote_wide)


def json_changes(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The properties that are added, dropped and changed, by their paths."""
    old, new = _without_null(old), _without_null(new)
    before, after = old.get("properties"), new.get("properties")
    if before is None or after is None:
        shown = [{name: each for name, each in node.items() if name in ("type", "items", "additionalProperties")}
                 for node in (old, new)]  # fmt: skip
        if shown[0] != shown[1]:
            yield f"{path or 'the schema'} was {shown[0].get('type')} and is {shown[1].get('type')}"
        return
    for name in dict.fromkeys([*before, *after]):
        where = f"{path}.{name}" if path else name
        if name not in after:
            yield f"{where} is dropped"
        elif name not in before:
            yield f"{where} is added"
        else:
            yield from json_changes(before[name], after[name], where)


class _Builder:
    def __init__(self, style: Style, closed: bool) -> None:
        self._style, self._closed = style, closed

    def node(self, schema: ConnectSchema, index: int | None) -> Node:
        """The node of a schema; `index` is the place of a field in its struct."""
        place = {} if index is None else {"connect.index": index}
        if schema.optional:
            return {"oneOf": [_NULL, self.node(schema.with_(optional=False), None)], **place}
        return {**self._base(schema), **self._properties(schema), **place}

    def _base(self, schema: ConnectSchema) -> Node:
        if schema.type == "struct":
            return self._object(schema.fields, self._closed)
        if schema.items is not None:
            return {"type": "array", "items": self.node(schema.items, None)}
        if schema.keys is not None and schema.values is not None:
            if schema.keys.type == "string" and not schema.keys.optional:
                return {
                    "type": "object",
                    "additionalProperties": self.node(schema.values, None),
                    "connect.type": "map",
                }
            entry = self._object((Field("key", schema.keys), Field("value", schema.values)), False)
            return {"type": "array", "items": entry, "connect.type": "map"}
        kind, own = _TYPES[schema.type]
        if self._style.decimals.applies(schema):
            kind = _NUMBER
        return {"type": kind, **({} if own is None else {"connect.type": own})}

    def _object(self, fields: tuple[Field, ...], closed: bool) -> Node:
        node: Node = {"type": "object"}
        if fields:
            node["properties"] = {each.name: self.node(each.schema, index) for index, each in enumerate(fields)}
        return {**node, "additionalProperties": False} if closed else node

    def _properties(self, schema: ConnectSchema) -> Node:
        parameters = {name: value for name, value in schema.parameters if not name.startswith(_OWN)}
        properties = {
            "title": schema.name,
            "description": schema.doc,
            "connect.version": schema.version,
            "connect.parameters": parameters or None,
        }
        if schema.default is not None:
            properties["default"] = self._default(schema)
        return {name: value for name, value in properties.items() if value is not None}

    def _default(self, schema: ConnectSchema) -> Any:
        text = fragment(array([from_json(schema.default, schema)], schema), schema, self._style)
        whole = text.left + ("" if text.text is None else text.text[0].as_py()) + text.right
        return json.loads(whole, parse_float=_decimal)


_BEFORE, _BEHIND = ("type", "title", "description", "default"), ("properties", "items", "oneOf", "additionalProperties")


def _decimal(text: str) -> Decimal | int:
    """A number as Java has it there: BigDecimal, which prints itself as ours does, but a plain 0 for zero."""
    return Decimal(text) or 0


def _ordered(node: Any) -> Any:
    """A schema's attributes in their order; those of Connect are a hash map of Java."""
    if isinstance(node, list):
        return [_ordered(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    own = copied_map_order(map_order([name for name in node if name not in (*_BEFORE, *_BEHIND)]))
    # An object without further properties says so at once.
    closed = ("additionalProperties",) if node.get("additionalProperties") is False else ()
    names = [name for name in dict.fromkeys(("type", *closed, *_BEFORE, *own, *_BEHIND)) if name in node]
    if node.get("type") == "boolean":
        names = [*(name for name in names if name != "type"), "type"]
    return {name: _value(name, node[name]) for name in names}


def _value(name: str, value: Any) -> Any:
    if name == "properties":
        return {each: _ordered(value[each]) for each in map_order(list(value))}
    if name == "connect.parameters":
        return {each: value[each] for each in sized_map_order(map_order(list(value)))}
    return value if name == "default" else _ordered(value)


def _without_null(node: Any) -> Any:
    """What an optional value is if it is not null."""
    members = [each for each in node.get("oneOf", ()) if each != _NULL]
    return members[0] if len(members) == 1 else node
