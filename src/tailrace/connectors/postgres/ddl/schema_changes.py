"""Reads what the DDL triggers report in the log, as schema changes of captured tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.log.protocol.pgoutput import Relation
from tailrace.connectors.postgres.position import format_lsn
from tailrace.connectors.postgres.server.connect import connect, is_transient, server_errors
from tailrace.connectors.retry import retrying
from tailrace.model.schema_change import DROP, DescribedColumn, SchemaChange
from tailrace.model.table import TableId
from tailrace.model.text import json_reader as json_text

log = logging.getLogger(__name__)

_TABLE = ".".join(event_triggers.TABLE)

_ARRAY, _STRUCT, _DISTINCT, _VARCHAR, _OTHER = 2003, 2002, 2001, 12, 1111
# java.sql.Types of PostgreSQL's types as its JDBC driver tells them; those missing here are OTHER.
_JDBC = {
    **dict.fromkeys(("bool", "bit"), -7),
    "int2": 5,
    "int4": 4,
    **dict.fromkeys(("int8", "oid"), -5),
    **dict.fromkeys(("float8", "money"), 8),
    "float4": 7,
    "numeric": 2,
    **dict.fromkeys(("char", "bpchar"), 1),
    **dict.fromkeys(("varchar", "text", "name"), _VARCHAR),
    "bytea": -2,
    "date": 91,
    **dict.fromkeys(("time", "timetz"), 92),
    **dict.fromkeys(("timestamp", "timestamptz"), 93),
    "xml": 2009,
}
_CLASSES = {"e": _VARCHAR, "d": _DISTINCT, "c": _STRUCT}
_TEXT_HEADER = 4


@dataclass(frozen=True, slots=True)
class SchemaChangeReader:
    """Reads the triggers' rows; a change of a table that the filters leave out, by both its names, is left out.

    `trusted` holds what the server said of tables, by number.
    """

    config: Config
    filter: TableFilter
    trusted: dict[int, bool] = field(default_factory=dict)

    @staticmethod
    def of(config: Config) -> SchemaChangeReader:
        """For the tables that a configuration captures."""
        return SchemaChangeReader(config, TableFilter.from_config(config))

    @staticmethod
    def is_source(relation: Relation) -> bool:
        """Whether a relation has the name of the triggers' table; whether it is theirs the server says, see trusts."""
        return (relation.schema, relation.table) == event_triggers.TABLE

    def trusts(self, table: int) -> bool:
        """Whether the table of that number is one that only the triggers can write. Raises SourceError.

        Any role that may make a schema can make a table of that name. A table that was dropped since is not trusted
        either, as nothing is known of it.
        """
        if table not in self.trusted:
            with server_errors("the DDL triggers cannot be looked at"):
                triggers = retrying(self.config, self._triggers, is_transient)
            self.trusted[table] = triggers is not None and triggers.is_theirs and triggers.table == table
            if not self.trusted[table]:
                log.warning(
                    "rows of %s are ignored, so schema changes are not reported: the table is not, or no longer, the "
                    "one that only the DDL triggers can write. Make the triggers again: %s",
                    *(_TABLE, event_triggers.install_command(self.config)),
                )
        return self.trusted[table]

    def _triggers(self) -> event_triggers.Triggers | None:
        with connect(self.config, application="tailrace catalog") as connection:
            return event_triggers.triggers(connection)

    def read(self, content: str | None, lsn: int) -> list[tuple[TableId, SchemaChange, str | None]]:
        """The schema changes that a row at that place of the log reports, each with why rows of the table are missing.

        Any other row is logged and passed over; then changes are inferred, as without the triggers.
        """
        where = f"LSN {format_lsn(lsn)}"
        try:
            report = json_text.read(content or "")
            if report["version"] == event_triggers.VERSION:
                return list(self._changes(report, lsn))
            log.warning(
                "%s: schema changes are ignored, as the DDL triggers write version %s of their report, and this "
                "release reads version %s. Make the triggers again with this release: %s",
                *(where, report["version"], event_triggers.VERSION, event_triggers.install_command(self.config)),
            )
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            log.warning("%s: a row of %s is ignored: the triggers did not write it (%r)", where, _TABLE, error)
        return []

    def _changes(self, report: Mapping[str, Any], lsn: int) -> Iterator[tuple[TableId, SchemaChange, str | None]]:
        database = self.config[DATABASE_DBNAME]
        for node in report["tables"]:
            table = TableId(database, node["schema"], node["name"])
            was = node.get("was")
            old = table if was is None or was["outdated"] else TableId(database, was["schema"], was["name"])
            is_ours, was_ours = (self.filter.captures(each) for each in (table, old))
            if is_ours or was_ours:
                is_renamed = is_ours and was_ours and old != table
                change = SchemaChange(node["kind"], report["statement"], lsn, previous=old if is_renamed else None)
                change = change if change.kind == DROP else self._described(change, table, node)
                yield table, change, None if was_ours else f"it was {old} before, whose changes are not captured"

    def _described(self, change: SchemaChange, table: TableId, node: Mapping[str, Any]) -> SchemaChange:
        """The change with what the table is now, and what became of its columns."""
        shown = self.filter.columns(table, [each["name"] for each in node["columns"] or ()])
        described = (each for each in node["columns"] or () if each["name"] in shown)
        columns = tuple(_column(each, place) for place, each in enumerate(described, 1))
        names = {str(each["number"]): each["name"] for each in node["columns"] or ()}
        before = (node.get("was") or {}).get("columns", {})
        renamed = tuple((old, names[at]) for at, old in before.items() if names.get(at, old) != old)
        dropped = tuple(old for at, old in before.items() if at not in names)
        key, comment = tuple(node["key"] or ()), node["comment"]
        return replace(change, key=key, columns=columns, comment=comment, renamed=renamed, dropped=dropped)


def _column(node: Mapping[str, Any], position: int) -> DescribedColumn:
    length, scale = _size(node["type"], node["modifier"])
    default = node["default"]
    return DescribedColumn(
        name=node["name"],
        jdbc_type=_ARRAY if node["array"] else _CLASSES.get(node["class"], _JDBC.get(node["type"], _OTHER)),
        type_name=node["type"],
        position=position,
        native_type=node["oid"] if node["oid"] < 1 << 31 else node["oid"] - (1 << 32),  # as Java has it
        type_expression=node["printed"],
        length=length,
        scale=scale,
        optional=node["nullable"],
        auto_incremented=node["identity"] or (default or "").startswith("nextval("),
        generated=node["generated"],
        comment=node["comment"],
        default=default,
        enum_values=None if node["labels"] is None else tuple(node["labels"]),
    )


def _size(name: str, modifier: int) -> tuple[int | None, int | None]:
    """Length and scale that a type's modifier says."""
    if modifier < 0:
        return None, None
    if name in ("numeric", "_numeric"):
        packed = modifier - _TEXT_HEADER
        scale = packed & 0x7FF
        return packed >> 16, scale - 0x800 if scale & 0x400 else scale
    if name.lstrip("_") in ("varchar", "bpchar"):
        return modifier - _TEXT_HEADER, None
    if name.lstrip("_") in ("bit", "varbit"):
        return modifier, None
    if name.lstrip("_") in ("time", "timetz", "timestamp", "timestamptz"):
        return None, modifier
    return None, None
