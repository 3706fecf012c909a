"""Which tables and columns are captured, in which order, and which columns make the key."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tailrace.config.resolve import Config
from tailrace.errors import ConfigError
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

Patterns = tuple[re.Pattern[str], ...]

# Where Tailrace keeps objects of its own in a database. What lies there is never data.
OWN_SCHEMA = "tailrace_ddl"

_BUILTIN_SCHEMA = re.compile(r"pg_catalog|information_schema|pg_toast.*|pg_temp.*")
_ESCAPE = re.compile(r"\\(\W)")
_BUILTIN_TABLES = ("spatial_ref_sys",)


@dataclass(frozen=True)
class Rule:
    """An include and an exclude list over one kind of name; no list lets everything in."""

    include: Patterns
    exclude: Patterns

    @staticmethod
    def of(config: Config, kind: str) -> Rule:
        """The rule of `<kind>.include.list` and `<kind>.exclude.list`."""
        return Rule(config.patterns(f"{kind}.include.list"), config.patterns(f"{kind}.exclude.list"))

    def lets(self, name: str) -> bool:
        """Whether the name passes."""
        return (not self.include or _matches(self.include, name)) and not _matches(self.exclude, name)


@dataclass(frozen=True)
class TableFilter:
    """The captured part of a database. Names are as in the catalog; patterns match whole names, in any case."""

    schemas: Rule
    tables: Rule
    column_names: Rule
    snapshot: Patterns
    ignore_builtin: bool
    signals: tuple[str, str] | None = None
    decided: Mapping[str, bool] = field(default_factory=dict)

    @staticmethod
    def from_config(config: Config) -> TableFilter:
        """The filter of the schema, table and column lists, and of snapshot.include.collection.list."""
        database, signals = config.optional("database.dbname") or "", table_of_signals(config)
        return TableFilter(
            Rule.of(config, "schema"),
            Rule.of(config, "table"),
            Rule.of(config, "column"),
            config.patterns("snapshot.include.collection.list"),
            config.flag("table.ignore.builtin"),
            None if signals is None else (signals.schema, signals.table),
            {str(TableId.parse(name, database)): is_in for name, is_in in config.tables},
        )

    def captures(self, schema: str, table: str) -> bool:
        """Whether changes of the table become events. Those of the table of signals do, whatever the lists say.

        Debezium's RelationalTableFilters adds it, as its signals come by the log. Tables of Tailrace's own never do.
        """
        if schema == OWN_SCHEMA:
            return False
        if f"{schema}.{table}" in self.decided:
            return self.decided[f"{schema}.{table}"]
        if (schema, table) == self.signals:
            return True
        if self.ignore_builtin and (_BUILTIN_SCHEMA.fullmatch(schema) or table in _BUILTIN_TABLES):
            return False
        return self.schemas.lets(schema) and self.tables.lets(f"{schema}.{table}")

    def names(self, schema: str, table: str) -> bool:
        """Whether the table was added by a signal, or table.include.list has an entry for it alone."""
        name = f"{schema}.{table}"
        entries = (_ESCAPE.sub(r"\1", pattern.pattern) for pattern in self.tables.include if pattern.fullmatch(name))
        return self.decided.get(name, False) or name in entries

    def snapshots(self, schema: str, table: str) -> bool:
        """Whether the initial snapshot reads the table: signals are no data."""
        return (schema, table) != self.signals and self.lists(schema, table)

    def lists(self, schema: str, table: str) -> bool:
        """Whether snapshot.include.collection.list lets the table in, as far as it is captured."""
        is_listed = not self.snapshot or _matches(self.snapshot, f"{schema}.{table}")
        return is_listed and self.captures(schema, table)

    def columns(self, schema: str, table: str, names: Sequence[str]) -> tuple[str, ...]:
        """Those of a table's columns that values hold, in their order (keys keep theirs in any case)."""
        return tuple(name for name in names if self.column_names.lets(f"{schema}.{table}.{name}"))

    def order(self, tables: Iterable[TableId]) -> list[TableId]:
        """Tables in snapshot order: by the first pattern of table.include.list that matches, then by name."""
        return sorted(tables, key=lambda table: (self._place(str(table)), str(table)))

    def _place(self, name: str) -> int:
        patterns = self.tables.include
        return next((i for i, pattern in enumerate(patterns) if pattern.fullmatch(name)), len(patterns))


def table_of_signals(config: Config) -> TableId | None:
    """The table of signals; without a schema it is in `public`."""
    database = config.optional("database.dbname") or ""
    for name in config.names("signal.data.collection"):
        return TableId.parse(name, database, "public")
    return None


def guard(config: Config, tables: Sequence[TableId]) -> None:
    """Warn of too many captured tables, or raise ConfigError, as guardrail.collections.* say."""
    most = config.number("guardrail.collections.max")
    if not most or len(tables) <= most:
        return
    what = f"{len(tables)} tables are captured, and guardrail.collections.max allows {most}"
    if config.text("guardrail.collections.limit.action") == "fail":
        raise ConfigError(what, remedy="narrow table.include.list, or raise the limit")
    log.warning("%s", what)


def key_columns(
    config: Config, schema: str, table: str, names: Sequence[str], database: str | None = None
) -> tuple[str, ...] | None:
    """The key columns message.key.columns sets for a table, in the property's order; None when it sets none.

    An entry is matched against `schema.table.column` and, when the database is known, `database.schema.table.column`.
    """
    if database is None:
        database = config.optional("database.dbname")
    prefixes = [f"{schema}.{table}", f"{database}.{schema}.{table}"]
    found = [
        name
        for pattern in config.patterns("message.key.columns")
        for name in names
        if any(pattern.fullmatch(f"{prefix}.{name}") for prefix in prefixes)
    ]
    return tuple(dict.fromkeys(found)) or None


def _matches(patterns: Patterns, name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
