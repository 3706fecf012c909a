"""Describes a replica's table for a catalogue: name, place, columns, key and comments."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from deltalake import Schema

# What an entry's parameters say: the source table, its key, and which description the entry has.
TABLE, KEY, ENTRY = "tailrace.table", "tailrace.key", "tailrace.entry"
# Delta's names of types that SQL names otherwise.
_SQL = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_DIGITS = 16


@dataclass(frozen=True)
class TableDescription:
    """What the source says of a table: comments, and the columns that tell its rows apart (empty: it has no key)."""

    comment: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryColumn:
    """A column; `kind` is its type as Delta's schemas have it in JSON, which is Spark's."""

    name: str
    kind: Any
    comment: str | None = None

    def type_text(self, names: Mapping[str, str] | None = None) -> str:
        """The type in SQL; `names` are further names of simple types."""
        return _text(self.kind, {**_SQL, **(names or {})})


@dataclass(frozen=True)
class CatalogEntry:
    """A table as a catalogue is to show it. `table` is the unique name of its source."""

    name: str
    table: str
    location: str
    columns: tuple[EntryColumn, ...]
    key: tuple[str, ...] = ()
    comment: str | None = None

    @property
    def digest(self) -> str:
        """Equal for equal entries: what a catalogue stores to tell whether it has this one."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]

    @property
    def parameters(self) -> dict[str, str]:
        """What the entry says of itself in each catalogue."""
        key = {KEY: ",".join(self.key)} if self.key else {}
        return {TABLE: self.table, **key, ENTRY: self.digest}


@dataclass(frozen=True)
class CatalogTable:
    """What a catalogue has under a name: its place, and what its parameters say (None: somebody else made it)."""

    location: str
    table: str | None
    digest: str | None

    @staticmethod
    def of(location: str | None, parameters: Mapping[str, str]) -> CatalogTable:
        """What the parameters of a table say."""
        return CatalogTable(location or "", parameters.get(TABLE), parameters.get(ENTRY))

    def is_at(self, location: str) -> bool:
        """Whether the table lies there; catalogues write a local place with one slash or with three."""
        return _plain(self.location) == _plain(location)


def entry(name: str, table: str, location: str, schema: pa.Schema, source: TableDescription) -> CatalogEntry:
    """The entry of a Delta table of these columns; `source` has the replica's names of columns."""
    fields = json.loads(Schema.from_arrow(schema).to_json())["fields"]
    columns = tuple(EntryColumn(each["name"], each["type"], source.columns.get(each["name"])) for each in fields)
    names = {column.name for column in columns}
    key = source.key if names.issuperset(source.key) else ()
    return CatalogEntry(name, table, location, columns, key, source.comment)


def shortened(comment: str | None, size: int) -> str | None:
    """A comment that fits into so many bytes of UTF-8, an ellipsis at its end where it was cut."""
    if comment is None or len(comment.encode()) <= size:
        return comment
    return comment.encode()[: size - 3].decode(errors="ignore") + "…"


def _plain(location: str) -> str:
    return re.sub("^file:/+", "/", location).rstrip("/")


def _text(kind: Any, names: Mapping[str, str]) -> str:
    if isinstance(kind, str):
        return names.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{_text(kind['elementType'], names)}>"
    if kind["type"] == "map":
        return f"map<{_text(kind['keyType'], names)},{_text(kind['valueType'], names)}>"
    fields = [f"{each['name']}:{_text(each['type'], names)}" for each in kind["fields"]]
    return f"struct<{','.join(fields)}>"
