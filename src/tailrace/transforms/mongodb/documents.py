"""Converts documents to Connect structs: infers the schema of each, and its value under that schema.

Works document by document, in Python, as each may have a schema of its own. As Debezium's MongoDataConverter does it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import DatetimeMS, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp, json_util
from bson.binary import Binary
from bson.code import Code
from bson.codec_options import DatetimeConversion

from tailrace.config.topics import adjusted
from tailrace.errors import TransformError
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.text.json_reader import make_room

STRING = ConnectSchema("string", optional=True)
BOOLEAN = ConnectSchema("boolean", optional=True)
TIMESTAMP = ConnectSchema("int64", optional=True, name="org.apache.kafka.connect.data.Timestamp", version=1)
_REGEX = ConnectSchema(
    "struct", optional=True, name="io.debezium.mongodb.regex", fields=(Field("regex", STRING), Field("options", STRING))
)
# Of an empty array, whose items may be anything.
_NOTHING = ConnectSchema("array", optional=True, items=STRING)
_TYPED = json_util.JSONOptions(
    json_mode=json_util.JSONMode.CANONICAL, datetime_conversion=DatetimeConversion.DATETIME_MS
)
_REMEDY = "set array.encoding to document, which gives each element a field of its own"
Document = dict[str, Any]


@dataclass(frozen=True)
class _Undefined:
    """The value of BSON's undefined, which Python's driver makes null."""


def parse(text: str) -> Any:
    """A document, or a value, from the JSON text of an event, with the types that the text tells."""
    make_room(text)
    return json.loads(text, object_hook=_typed)


def _typed(members: Document) -> Any:
    """The value of an object of JSON. A reference (`$ref`) is a document, which Python's driver has a class for."""
    if "$ref" in members:
        return members
    is_undefined = "$undefined" in members or "$dbPointer" in members
    return _Undefined() if is_undefined else json_util.object_hook(members, _TYPED)


@dataclass(frozen=True)
class DocumentConverter:
    """Makes schemas and values. `as_documents`: arrays become structs with the fields `_0`, `_1`, ..."""

    as_documents: bool = False
    adjustment: str = "none"

    def struct(self, document: Document, name: str | None) -> ConnectSchema:
        """The schema of a document under that name; without one, the names of its parts begin with null.

        Raises TransformError.
        """
        return ConnectSchema(
            "struct", name=name, fields=tuple(self._fields(document, "null" if name is None else name))
        )

    def value(self, node: Any, schema: ConnectSchema) -> Any:
        """A node as Arrow takes it under its schema."""
        if isinstance(node, dict):
            return self._members({self._name(name): value for name, value in node.items()}, schema)
        if isinstance(node, list) and schema.type == "struct":
            return self._members({f"_{place}": value for place, value in enumerate(node)}, schema)
        if isinstance(node, list):
            assert schema.items is not None
            return [self.value(item, schema.items) for item in node]
        return None if node is None else _scalar(node)

    def _members(self, own: Document, schema: ConnectSchema) -> Document:
        return {field.name: self.value(own.get(field.name), field.schema) for field in schema.fields}

    def _fields(self, document: Document, parent: str, *, is_item: bool = False) -> Iterator[Field]:
        seen = set()
        for raw, value in document.items():
            name = self._name(raw)
            is_nothing = is_item and value in ({}, [])
            schema = self._of_nothing(name, parent) if is_nothing else self._schema(name, value, parent)
            if schema is not None and name not in seen:
                seen.add(name)
                yield Field(name, schema)

    def _schema(self, name: str, value: Any, parent: str) -> ConnectSchema | None:
        if isinstance(value, dict):
            if not value:
                return ConnectSchema("struct", optional=True)
            return self.struct(value, f"{parent}.{name}").with_(optional=True)
        if isinstance(value, list):
            return self._of_indexes(name, value, parent) if self.as_documents else self._of_items(name, value, parent)
        return _type(value)

    def _of_indexes(self, name: str, items: list[Any], parent: str) -> ConnectSchema:
        if not items:
            return ConnectSchema("struct", optional=True, name=f"{parent}.{name}")
        own = parent if parent.endswith(name) else f"{parent}.{name}"
        fields = tuple(self._of_index(f"_{place}", item, own) for place, item in enumerate(items))
        return ConnectSchema(
            "struct", optional=True, name=own, fields=tuple(field for field in fields if field is not None)
        )

    def _of_index(self, index: str, item: Any, parent: str) -> Field | None:
        name = self._name(index)
        if isinstance(item, dict) and item:
            own = f"{parent}.{name}"
            fields = tuple(self._fields(item, own, is_item=True))
            return Field(name, ConnectSchema("struct", optional=True, name=own, fields=fields))
        schema = self._schema(name, item, parent)
        return None if schema is None else Field(name, schema)

    def _of_nothing(self, name: str, parent: str) -> ConnectSchema:
        """An empty array or document of a document that is an item: its schema has a name that is adjusted whole."""
        return ConnectSchema("struct", optional=True, name=self._name(f"{parent}.{name}"))

    def _of_items(self, name: str, items: list[Any], parent: str, *, is_inner: bool = False) -> ConnectSchema:
        """The schema of an array; of one in another one the documents have no name."""
        if not items:
            return _NOTHING
        some = [item for item in items if item != []]
        if some and all(isinstance(item, list) or item is None for item in some):
            items = some
        documents = [item for item in items if isinstance(item, dict)]
        if documents and all(isinstance(item, dict) or item is None for item in items):
            own = None if is_inner else f"{parent}.{name}"
            merged = _merged(self.struct(item, own) for item in documents)
            return ConnectSchema("array", optional=True, items=merged.with_(optional=True))
        arrays = [item for item in items if isinstance(item, list)]
        if arrays and all(isinstance(item, list) or item is None for item in items):
            kinds = [self._of_items(name, item, parent, is_inner=True) for item in arrays]
        else:
            kinds = [kind for item in items if (kind := self._schema(name, item, parent)) is not None]
        schemas = list(dict.fromkeys(kinds))
        if len(schemas) != 1:
            raise TransformError(f"the items of the array {name} are of several types", where=parent, remedy=_REMEDY)
        return ConnectSchema("array", optional=True, items=schemas[0])

    def _name(self, name: str) -> str:
        return adjusted(name, self.adjustment, dots=False)


def _merged(schemas: Iterable[ConnectSchema]) -> ConnectSchema:
    """One schema of the structs in an array. Raises TransformError for a field of several types."""
    first, *others = schemas
    fields = {field.name: field.schema for field in first.fields}
    for field in (field for other in others for field in other.fields):
        earlier = fields.setdefault(field.name, field.schema)
        fields[field.name] = _later(earlier, field.schema, f"{first.name}.{field.name}")
    return first.with_(fields=tuple(Field(name, schema) for name, schema in fields.items()))


def _later(earlier: ConnectSchema, schema: ConnectSchema, where: str) -> ConnectSchema:
    """Merges the schemas of a field of two documents in an array: fields of the later one, then those of the other.

    Raises TransformError where they differ in type.
    """
    if earlier.type != schema.type or (earlier.type != "struct" and earlier.name != schema.name):
        raise TransformError("a field has several types in the documents of one array", where=where, remedy=_REMEDY)
    if earlier is _NOTHING or schema is _NOTHING:
        return earlier if schema is _NOTHING else schema
    if schema.items is not None and earlier.items is not None:
        return schema.with_(items=_later(earlier.items, schema.items, where))
    if not schema.fields:
        return earlier
    former = {field.name: field.schema for field in earlier.fields}
    fields = {field.name: field.schema for field in schema.fields}
    both = {name: _later(former[name], of, f"{where}.{name}") for name, of in fields.items() if name in former}
    return schema.with_(fields=tuple(Field(name, of) for name, of in {**fields, **former, **both}.items()))


def _type(value: Any) -> ConnectSchema | None:
    """The schema of a value that holds no others; None for types that are left out."""
    if isinstance(value, MinKey | MaxKey | _Undefined):
        return None
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, Int64) or (isinstance(value, int) and not -(2**31) <= value < 2**31):
        return ConnectSchema("int64", optional=True)
    if isinstance(value, int):
        return ConnectSchema("int32", optional=True)
    if isinstance(value, float):
        return ConnectSchema("double", optional=True)
    if isinstance(value, bytes):
        return ConnectSchema("bytes", optional=True)
    if isinstance(value, datetime | DatetimeMS | Timestamp):
        return TIMESTAMP
    return _REGEX if isinstance(value, Regex) else STRING


def _scalar(value: Any) -> Any:
    """A value without others in it."""
    if isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Binary | bytes):
        return bytes(value)
    if isinstance(value, Timestamp):
        return value.time * 1000
    if isinstance(value, DatetimeMS):
        return int(value)
    if isinstance(value, datetime):
        return int(DatetimeMS(value))
    if isinstance(value, Regex):
        return {"regex": value.pattern, "options": _options(value)}
    if isinstance(value, ObjectId | Decimal128 | Code):
        return str(value)
    return None if isinstance(value, _Undefined | MinKey | MaxKey) else value


def _options(value: Regex[Any]) -> str:
    """The letters of an expression's flags, in order."""
    letters = {"i": re.IGNORECASE, "l": re.LOCALE, "m": re.MULTILINE, "s": re.DOTALL, "u": re.UNICODE, "x": re.VERBOSE}
    return "".join(letter for letter, flag in letters.items() if value.flags & flag)
