"""Table names: their parts, and how each printed form is written and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.override import override

# Which parts of a TableId name a table, by what a database calls unique.
SCHEMA_TABLE = ("schema", "table")
DATABASE_TABLE = ("database", "table")
DATABASE_SCHEMA_TABLE = ("database", "schema", "table")


@dataclass(frozen=True, slots=True)
class TableNaming:
    """How the tables of one database are named: which parts name them, and what is the system's own.

    `default_schema` holds a table that is named without one, `default_database` one that is named without a database.
    `system_schemas` is an expression. `has_brackets`: a part of a written name may be in brackets.
    """

    shown: tuple[str, ...] = SCHEMA_TABLE
    default_schema: str = ""
    system_schemas: str = ""
    system_tables: tuple[str, ...] = ()
    default_database: str = ""
    has_brackets: bool = False

    def is_system(self, table: TableId) -> bool:
        """Whether the table belongs to the database's own."""
        in_schema = bool(self.system_schemas) and re.fullmatch(self.system_schemas, table.schema) is not None
        return in_schema or table.table in self.system_tables


# A part of a table's written name, in double quotes or not, up to a dot or the end.
_PART = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^.]*))(?:\.|$)')


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table's full name, and the only place that joins its parts.

    `shown` are the parts that distinguish the tables of one connector. They make up topics, transaction metadata,
    signals, notifications and replica folders. A collection's name is its `table`. `str()` gives the shown parts joined
    by dots, which is not always unique: `unique` is.
    """

    database: str
    schema: str
    table: str
    shown: tuple[str, ...] = SCHEMA_TABLE

    @override
    def __str__(self) -> str:
        return ".".join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """The values of the shown parts, the table's own name last."""
        return tuple([getattr(self, part) for part in self.shown])

    @property
    def filtered(self) -> str:
        """The text that include and exclude lists match: the last two shown parts."""
        return ".".join(self.parts[-2:])

    @property
    def full(self) -> str:
        """All parts that have a value, joined by dots: what masks and key columns may name as well."""
        return ".".join(part for part in (self.database, self.schema, self.table) if part)

    def column(self, name: str) -> tuple[str, ...]:
        """The texts that name a column in masks: with the table's name in include lists, and with its shown parts."""
        return tuple(dict.fromkeys(f"{table}.{name}" for table in (self.filtered, str(self))))

    @staticmethod
    def parse(text: str, database: str, schema: str = "", shown: tuple[str, ...] = SCHEMA_TABLE) -> TableId:
        """The table of a written name, as `str()` prints it; a part with a dot is in double quotes.

        `database` and `schema` fill in for leading parts that it lacks. Without quotes the first dots end the leading
        parts. Debezium's TableId.parse likewise accepts the database in front of a name that does not need it.
        """
        parts = [quoted.replace('""', '"') or plain.strip() for quoted, plain in _PART.findall(text.strip())]
        parts = parts[:-1] if parts[-1:] == [""] else parts
        if "database" not in shown and len(parts) > len(shown) and parts[0] == database:
            parts = parts[1:]
        leading = shown[:-1]
        given = parts[:-1][: len(leading)]
        own = ".".join(parts[len(given) :])
        part_by_name = {"database": database, "schema": schema}
        part_by_name |= dict(zip(leading[len(leading) - len(given) :], given, strict=True))
        return TableId(part_by_name["database"], part_by_name["schema"], own, shown)

    @property
    def written(self) -> str:
        """The name as `parse` reads it: the shown parts, in quotes what could be misread."""
        return ".".join(part if re.fullmatch(r"[^\s\".]+", part) else _quoted(part) for part in self.parts)

    def quoted(self, names: tuple[str, ...]) -> str:
        """The parts of these names that have a value, each in double quotes: the id in schema changes."""
        return ".".join(_quoted(part) for part in (getattr(self, name) for name in names) if part)

    @property
    def unique(self) -> str:
        """A text no other table of the connector has: the shown parts, `!21` for `!`, `!2E` for a dot before the last.

        Replicas are stored under it.
        """
        *leading, own = (part.replace("!", "!21") for part in self.parts)
        return ".".join([*(part.replace(".", "!2E") for part in leading), own])

    @property
    def is_message(self) -> bool:
        """Whether this is the name for logical messages, which are changes of a table without a name."""
        return not self.table

    @staticmethod
    def of_unique(text: str, shown: tuple[str, ...] = SCHEMA_TABLE, database: str = "") -> TableId:
        """The inverse of `unique`; `database` is that of a table whose name does not show it."""
        parts = [part.replace("!2E", ".").replace("!21", "!") for part in text.split(".", len(shown) - 1)]
        part_by_name = {"database": database, "schema": "", "table": ""} | dict(zip(shown, parts, strict=False))
        return TableId(part_by_name["database"], part_by_name["schema"], part_by_name["table"], shown)

    def to_json(self) -> list[Any]:
        """A JSON form; `shown` is left out where it is SCHEMA_TABLE."""
        parts = [self.database, self.schema, self.table]
        return parts if self.shown == SCHEMA_TABLE else [*parts, list(self.shown)]

    @staticmethod
    def from_json(node: list[Any] | Mapping[str, Any]) -> TableId:
        """The inverse of `to_json`, and of `dataclasses.asdict`."""
        database, schema, table, *shown = node.values() if isinstance(node, Mapping) else node
        return TableId(database, schema, table, tuple(shown[0]) if shown else SCHEMA_TABLE)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'
