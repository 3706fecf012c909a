"""Converts JSON text to a Connect struct whose schema is inferred, as Debezium's outbox and message decoding do.

Works document by document, in Python: every document may have a schema of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailrace.config.topics import adjusted
from tailrace.model.schema import OPTIONAL_STRING, ConnectSchema, Field
from tailrace.model.text import json_reader as json_text

_BYTES = ConnectSchema("bytes", optional=True)


def read(text: str) -> Any:
    """The document in a text that begins with `{` or `[`; what follows it is ignored. Raises ValueError.

    So it does for what cannot be a record's value: half a pair of surrogates, or more levels than the reference takes.
    """
    if not text.startswith(("{", "[")):
        raise ValueError(f"Unable to parse payload starting with '{text[:1]}'")
    # Readers of JSON as strict as Jackson take no NaN.
    return json_text.read(text, lambda given: _DECODER.raw_decode(given)[0])


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refused)


@dataclass(frozen=True)
class Expander:
    """Schema and value of documents. `nulls` keeps fields that are null, as optional bytes, and `empty` empty arrays,
    as arrays of texts; they are left out else.
    """

    nulls: bool = False
    adjustment: str = "none"
    empty: bool = False

    def schema(self, key: str | None, node: Any) -> ConnectSchema | None:
        """The schema of a node under the name `key`; None if the node does not show one. Raises ValueError."""
        if isinstance(node, dict):
            return self._struct(key, node)
        if isinstance(node, list):
            if not node and not self.empty:
                return None
            return ConnectSchema("array", optional=True, items=self._items(key, node) if node else OPTIONAL_STRING)
        if node is None:
            return _BYTES if self.nulls else None
        return ConnectSchema(_type(node), optional=True)

    def value(self, node: Any, schema: ConnectSchema) -> Any:
        """The node as Arrow takes it under its schema."""
        if isinstance(node, dict):
            return {field.name: self.value(node.get(field.name), field.schema) for field in schema.fields}
        if isinstance(node, list) and schema.items is not None:
            return [self.value(item, schema.items) for item in node]
        if isinstance(node, int) and schema.type == "double":
            raise ValueError(f"{node} is too large for a number of the schema")
        return node

    def _struct(self, key: str | None, node: dict[str, Any]) -> ConnectSchema:
        fields: dict[str, Field] = {}
        for raw, value in node.items():
            name = adjusted(raw, self.adjustment, dots=False)
            schema = self.schema(f"{key}.{name}" if key and key.strip() else name, value)
            if schema is not None and not name:
                raise ValueError("a field has no name")
            if schema is not None and name not in fields:
                fields[name] = Field(name, schema)
        return ConnectSchema("struct", optional=True, name=key, fields=tuple(fields.values()))

    def _items(self, key: str | None, nodes: list[Any]) -> ConnectSchema:
        sample = self._sample(nodes)
        if isinstance(sample, dict):
            # The reference merges them in the order of Java's hashes; here it is that of the document.
            return _merged(dict.fromkeys(self._struct(key, node) for node in nodes if isinstance(node, dict)))
        schema = self.schema(None, sample)
        if schema is None:
            raise ValueError(f"Array '{nodes}' has unrecognized member schema.")
        return schema

    def _sample(self, nodes: list[Any]) -> Any:
        """The first item that is not null. Raises ValueError for items of different types."""
        sample = None
        for node in nodes:
            if node is None:
                continue
            if sample is None:
                sample = node
            if _kind(node) != _kind(sample):
                raise ValueError(f"Field is not a homogenous array ({sample} x {node}).")
        return sample


def _type(node: Any) -> str:
    if isinstance(node, bool):
        return "boolean"
    if isinstance(node, str):
        return "string"
    if isinstance(node, float):
        return "double"
    size = int(node).bit_length()
    if -(2**31) <= node < 2**31:
        return "int32"
    return "int64" if size < 64 or node == -(2**63) else "double"


def _kind(node: Any) -> str:
    """The kind of a node that the items of an array must share; numbers share their type, too."""
    return type(node).__name__ if isinstance(node, dict | list) else _type(node)


def _merged(schemas: Iterable[ConnectSchema]) -> ConnectSchema:
    """One schema of several structs; bytes, which stand for null, give way to another type."""
    first, *others = schemas
    if not others:
        return first
    fields = {field.name: field for field in first.fields}
    for other in others:
        for field in other.fields:
            earlier = fields.get(field.name)
            if earlier is None or (earlier.schema.type == "bytes" and field.schema.type != "bytes"):
                fields[field.name] = field
    return first.with_(optional=False, fields=tuple(fields.values()))
