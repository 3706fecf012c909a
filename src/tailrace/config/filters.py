"""Decides which tables and columns are captured, in which order, and which columns form the key."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from tailrace.config.faults import Fault
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.options.filters import (
    COLLECTIONS,
    COLUMNS,
    DATABASES,
    GUARDRAIL_COLLECTIONS_LIMIT_ACTION,
    GUARDRAIL_COLLECTIONS_MAX,
    MESSAGE_KEY_COLUMNS,
    SCHEMAS,
    TABLE_IGNORE_BUILTIN,
    TABLES,
    Lists,
)
from tailrace.config.options.snapshot import SIGNAL_DATA_COLLECTION, SNAPSHOT_INCLUDE_COLLECTION_LIST
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.resolve import Config, Problem
from tailrace.errors import ConfigError
from tailrace.model.table_id import TableId, TableNaming

log = logging.getLogger(__name__)

Patterns = tuple[re.Pattern[str], ...]

# Where Tailrace keeps objects of its own in a database. What lies there is never data.
OWN_SCHEMA = "tailrace_ddl"

_ESCAPE = re.compile(r"\\(\W)")


@dataclass(frozen=True)
class Rule:
    """An include and an exclude list over one kind of name; no list lets everything in."""

    include: Patterns
    exclude: Patterns

    @staticmethod
    def of(config: Config, lists: Lists) -> Rule:
        """The rule of two lists; no rule where a connector has no such lists."""
        return Rule(config.get(lists.include, ()), config.get(lists.exclude, ()))

    def includes(self, name: str) -> bool:
        """Whether the name passes."""
        return (not self.include or _matches(self.include, name)) and not _matches(self.exclude, name)


@dataclass(frozen=True)
class TableFilter:
    """The captured part of a source. Names are as in the catalog; patterns match whole names, in any case.

    `signals` and `decided` hold tables by their unique names.
    """

    naming: TableNaming
    databases: Rule
    schemas: Rule
    tables: Rule
    _: KW_ONLY
    column_names: Rule
    snapshot: Patterns
    ignore_system: bool
    signals: frozenset[str] = frozenset()
    decided: Mapping[str, bool] = field(default_factory=dict)

    @staticmethod
    def from_config(config: Config) -> TableFilter:
        """The filter of the schema, table and column lists, and of snapshot.include.collection.list."""
        return TableFilter(
            config.naming,
            Rule.of(config, DATABASES),
            Rule.of(config, SCHEMAS),
            Rule.of(config, COLLECTIONS if COLLECTIONS.include in config else TABLES),
            column_names=Rule.of(config, COLUMNS),
            snapshot=config[SNAPSHOT_INCLUDE_COLLECTION_LIST],
            ignore_system=config.get(TABLE_IGNORE_BUILTIN, True),
            signals=frozenset(table.unique for table in tables_of_signals(config)),
            decided={table_named(config, name).unique: is_in for name, is_in in config.tables},
        )

    def captures(self, table: TableId) -> bool:
        """Whether changes of the table become events. Those of the table of signals do, whatever the lists say.

        Debezium's RelationalTableFilters adds it, as its signals come by the log. Tables of Tailrace's own never do.
        """
        if table.schema == OWN_SCHEMA:
            return False
        if table.unique in self.decided:
            return self.decided[table.unique]
        if table.unique in self.signals:
            return True
        if self.ignore_system and self.naming.is_system(table):
            return False
        return self.is_in_place(table) and self.tables.includes(table.filtered)

    def is_in_place(self, table: TableId) -> bool:
        """Whether the lists of databases and schemas let the table in."""
        return self.databases.includes(table.database) and self.schemas.includes(table.schema)

    def names(self, table: TableId) -> bool:
        """Whether the table was added by a signal, or table.include.list has an entry for it alone."""
        name = table.filtered
        entries = (_ESCAPE.sub(r"\1", pattern.pattern) for pattern in self.tables.include if pattern.fullmatch(name))
        return self.decided.get(table.unique, False) or name in entries

    def snapshots(self, table: TableId) -> bool:
        """Whether the initial snapshot reads the table: signals are no data."""
        return table.unique not in self.signals and self.lists(table)

    def lists(self, table: TableId) -> bool:
        """Whether snapshot.include.collection.list lets the table in, as far as it is captured."""
        is_listed = not self.snapshot or _matches(self.snapshot, str(table))
        return is_listed and self.captures(table)

    def columns(self, table: TableId, names: Sequence[str]) -> tuple[str, ...]:
        """Those of a table's columns that values hold, in their order (keys keep theirs in any case)."""
        return tuple(name for name in names if self.column_names.includes(f"{table.filtered}.{name}"))

    def order(self, tables: Iterable[TableId]) -> list[TableId]:
        """Tables in snapshot order: by the first pattern of table.include.list that matches, then by name."""
        return sorted(tables, key=lambda table: (self._place(table.filtered), str(table)))

    def _place(self, name: str) -> int:
        patterns = self.tables.include
        return next((i for i, pattern in enumerate(patterns) if pattern.fullmatch(name)), len(patterns))


def table_named(config: Config, text: str, schema: str = "") -> TableId:
    """The table of a written name; the database is the configured one where the name has none."""
    database = config.naming.default_database or config.get(DATABASE_DBNAME, "")
    return TableId.parse(text, database, schema, config.naming.shown)


def tables_of_signals(config: Config) -> tuple[TableId, ...]:
    """The tables of signals, one a database; each is in the default schema if its name has none."""
    listed = config[SIGNAL_DATA_COLLECTION]
    return tuple(table_named(config, name, config.naming.default_schema) for name in listed)


def check_signal_table(config: Config) -> Iterator[Problem]:
    """More than one table of signals where a pipeline has one database."""
    if len(config[SIGNAL_DATA_COLLECTION]) > 1:
        message = "For single task connector only one signal data collection is permitted."
        yield Problem("signal.data.collection", message, "name one table")


def table_of_signals(config: Config) -> TableId | None:
    """The first table of signals."""
    return next(iter(tables_of_signals(config)), None)


def guard(config: Config, tables: Sequence[TableId]) -> None:
    """Warn of too many captured tables, or raise ConfigError, as guardrail.collections.* say."""
    most = config[GUARDRAIL_COLLECTIONS_MAX]
    if not most or len(tables) <= most:
        return
    what = f"{len(tables)} tables are captured, and guardrail.collections.max allows {most}"
    if config[GUARDRAIL_COLLECTIONS_LIMIT_ACTION] == "fail":
        raise ConfigError(what, remedy="narrow table.include.list, or raise the limit")
    log.warning("%s", what)


def key_columns(config: Config, table: TableId, names: Sequence[str]) -> tuple[str, ...] | None:
    """The key columns message.key.columns sets for a table, in the property's order; None when it sets none.

    An entry is matched against the column's name below the table's name in lists, and below its full name.
    """
    prefixes = (table.filtered, str(table) if Fault.KEYS_BY_SHOWN_NAMES in config[COMPAT_FAULTS] else table.full)
    columns = [
        name
        for pattern in config[MESSAGE_KEY_COLUMNS]
        for name in names
        if any(pattern.fullmatch(f"{prefix}.{name}") for prefix in prefixes)
    ]
    return tuple(dict.fromkeys(columns)) or None


def _matches(patterns: Patterns, name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
