"""What a captured table is: its identity, its columns and its key, as of one moment of the log."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from tailrace.model.schema import ConnectSchema

# A part of a table's written name, in double quotes or not, up to a dot or the end.
_PART = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^.]*))(?:\.|$)')


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table's full name. `str()` gives `schema.table`, the form of include lists and transaction metadata."""

    database: str
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @staticmethod
    def parse(text: str, database: str, schema: str = "") -> TableId:
        """The table of a written name: `schema.table`, a part with a dot in double quotes; `schema` where it has none.

        Without quotes the first dot ends the schema. Debezium's TableId.parse likewise lets the database stand first.
        """
        parts = [quoted.replace('""', '"') or plain.strip() for quoted, plain in _PART.findall(text.strip())]
        parts = parts[:-1] if parts[-1:] == [""] else parts
        parts = parts[1:] if len(parts) > 2 and parts[0] == database else parts
        return TableId(database, *(parts[0], ".".join(parts[1:])) if len(parts) > 1 else (schema, "".join(parts)))

    @property
    def written(self) -> str:
        """The name as `parse` reads it: `schema.table`, in quotes what could be misread."""
        return ".".join(
            part if re.fullmatch(r"[^\s\".]+", part) else '"' + part.replace('"', '""') + '"'
            for part in (self.schema, self.table)
        )

    @property
    def unique(self) -> str:
        """A text no other table of the database has: `schema.table`, `!2E` for a dot in the schema, `!21` for `!`."""
        schema, table = (part.replace("!", "!21") for part in (self.schema, self.table))
        return f"{schema.replace('.', '!2E')}.{table}"

    @property
    def is_message(self) -> bool:
        """Whether this stands for logical messages, which are changes of a table without a name."""
        return not self.table


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its Connect schema and the Arrow type a ChangeBatch holds it in.

    The Arrow values are in Connect representation: days as int32, times and timestamps as int64 of the schema's unit,
    zoned ones as text, NUMERIC(p,s) as decimal128/256(p,s), everything else as one would expect.
    `in_value` is false for a key column that is excluded from event values.
    """

    name: str
    schema: ConnectSchema
    arrow: pa.DataType
    in_value: bool = True


@dataclass(frozen=True)
class TableSchema:
    """A table's columns under one schema version, those outside event values last.

    `key` names the columns of the event key, in order (empty: no key). `identity` names the columns an old row image
    holds: all of them under REPLICA IDENTITY FULL, the identity's otherwise (empty: no old image ever comes).
    """

    id: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    identity: tuple[str, ...]

    @cached_property
    def row_type(self) -> pa.StructType:
        """The Arrow struct of a row image."""
        return pa.struct([pa.field(column.name, column.arrow) for column in self.columns])

    @property
    def value_columns(self) -> tuple[Column, ...]:
        """The columns that event values hold: the first ones of `columns`."""
        return tuple(column for column in self.columns if column.in_value)

    def column(self, name: str) -> Column:
        """The column of that name. Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """A JSON form, for the header of a ChangeBatch's IPC bytes."""
        arrow = pa.schema([pa.field(column.name, column.arrow) for column in self.columns]).serialize().to_pybytes()
        return {
            "id": [self.id.database, self.id.schema, self.id.table],
            "columns": [column.schema.to_json(column.name) for column in self.columns],
            "empty": {column.name: column.schema.empty for column in self.columns if column.schema.empty is not None},
            "hidden": [column.name for column in self.columns if not column.in_value],
            "arrow": base64.b64encode(arrow).decode(),
            "key": list(self.key),
            "identity": list(self.identity),
        }

    @staticmethod
    def from_json(node: dict[str, Any]) -> TableSchema:
        """The inverse of `to_json`."""
        arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(node["arrow"])))
        columns = tuple(
            Column(
                member["field"],
                ConnectSchema.from_json(member).with_(empty=node["empty"].get(member["field"])),
                arrow.field(index).type,
                member["field"] not in node["hidden"],
            )
            for index, member in enumerate(node["columns"])
        )
        return TableSchema(TableId(*node["id"]), columns, tuple(node["key"]), tuple(node["identity"]))
