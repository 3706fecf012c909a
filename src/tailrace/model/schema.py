"""Kafka Connect schemas as values: the `schema` half of a key or a value."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class ConnectSchema:
    """One Connect schema node.

    `type` is one of boolean int8 int16 int32 int64 float double string bytes array map struct (the names the JSON
    converter writes). `default` is JSON-ready: what the converter would print for it; None is no default. `empty`,
    which is not printed, is the text (of a struct its JSON) that replaces null in a required field if it differs from
    its type's.
    """

    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    _: KW_ONLY
    doc: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    default: Any = None
    fields: tuple[Field, ...] = ()
    items: ConnectSchema | None = None
    keys: ConnectSchema | None = None
    values: ConnectSchema | None = None
    empty: str | None = None

    def with_(self, **changes: Any) -> ConnectSchema:
        """A copy with some attributes changed."""
        return replace(self, **changes)

    def to_json(self, field: str | None = None) -> dict[str, Any]:
        """The schema as the JSON converter prints it, attributes in its order; absent ones are left out."""
        out: dict[str, Any] = {"type": self.type}
        if self.type == "struct":
            out["fields"] = [member.schema.to_json(member.name) for member in self.fields]
        if self.items is not None:
            out["items"] = self.items.to_json()
        if self.keys is not None and self.values is not None:
            out["keys"] = self.keys.to_json()
            out["values"] = self.values.to_json()
        out["optional"] = self.optional
        for name in ("name", "version", "doc"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value
        if self.parameters:
            out["parameters"] = dict(self.parameters)
        if self.default is not None:
            out["default"] = self.default
        if field is not None:
            out["field"] = field
        return out

    @staticmethod
    def from_json(node: dict[str, Any]) -> ConnectSchema:
        """The inverse of `to_json`."""
        return ConnectSchema(
            type=node["type"],
            optional=node["optional"],
            name=node.get("name"),
            version=node.get("version"),
            doc=node.get("doc"),
            parameters=tuple(node.get("parameters", {}).items()),
            default=node.get("default"),
            fields=tuple(Field(member["field"], ConnectSchema.from_json(member)) for member in node.get("fields", ())),
            items=ConnectSchema.from_json(node["items"]) if "items" in node else None,
            keys=ConnectSchema.from_json(node["keys"]) if "keys" in node else None,
            values=ConnectSchema.from_json(node["values"]) if "values" in node else None,
        )


@dataclass(frozen=True, slots=True)
class Field:
    """A named member of a struct schema."""

    name: str
    schema: ConnectSchema


STRING, OPTIONAL_STRING = ConnectSchema("string"), ConnectSchema("string", optional=True)
INT64, OPTIONAL_INT64 = ConnectSchema("int64"), ConnectSchema("int64", optional=True)
