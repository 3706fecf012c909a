"""What scenarios of seeds from FIRST on have besides, by a chance of their own: earlier scenarios stay as they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.compare.postgres.tables import NUMBER, Column, Table, quote
from tests.compare.postgres.types import TEXT, large

FIRST = 2000

_STRATEGIES = ("DefaultTopicNamingStrategy", "SchemaUnicodeTopicNamingStrategy", "DefaultRegexTopicNamingStrategy")
_OPTIONS: dict[str, tuple[float, tuple[str, ...]]] = {
    "unavailable.value.placeholder": (0.4, ("ü€ gone", "hex:ff00ff", "__missing__", "0")),
    "message.prefix.exclude.list": (0.2, ("pre.*",)),
    "topic.transaction": (0.1, ("tx",)),
    "key.converter.schemas.enable": (0.1, ("false",)),
    "value.converter.schemas.enable": (0.1, ("false",)),
    "column.propagate.source.type": (0.3, (r".*\.c[0-4]", r".*\.n,.*_0\..*")),
    "read.only": (0.05, ("true",)),
    "event.converting.failure.handling.mode": (0.2, ("warn", "skip")),
    "binary.handling.mode": (0.3, ("bytes", "base64", "base64-url-safe", "hex")),
    "interval.handling.mode": (0.3, ("string", "numeric")),
    "time.precision.mode": (0.3, ("adaptive", "connect", "isostring", "microseconds", "adaptive_time_microseconds")),
    "skipped.operations": (0.5, ("none",)),
    "provide.transaction.metadata": (0.3, ("true",)),
}


@dataclass
class Further:
    """Adds to the parts of a scenario; call its methods in their order."""

    random: Random
    tables: list[Table]

    def extend_tables(self) -> None:
        """Large columns, and replica identities other than key and whole row."""
        for table in self.random.sample(self.tables, self.random.randrange(1, 3)):
            table.columns.append(Column("big", large(self.random), storage="EXTERNAL"))
        if keyed := [table for table in self.tables if table.key and not table.unique and not table.partitioned]:
            self._identity(self.random.choice(keyed))

    def _identity(self, table: Table) -> None:
        if self.random.random() < 0.5:
            table.identity = "NOTHING"
        else:  # an index that does not have the whole key, or has more than that
            other = [c for c in table.columns[1:] if not c.nullable and c.generated is None and c.type.sql in _INDEXED]
            table.unique = [NUMBER, *(column.name for column in other[:1])]
            table.columns[0].nullable = False
            table.identity = f"USING INDEX {quote(f'{table.name}_unique')}"

    def heirs(self) -> list[str]:
        """Statements that create tables that inherit from others; the tables are added."""
        able = [t for t in self.tables if not t.partitioned and t.identity != "NOTHING" and not _has_own_values(t)]
        if not able or self.random.random() < 0.5:
            return []
        parent = self.random.choice(able)
        columns = [*parent.columns, Column("own", TEXT)]
        parent.is_fixed = True
        heir = Table(parent.schema, f"{parent.name}_heir", columns, [], identity="FULL", is_fixed=True)
        self.tables.append(heir)
        made = f"CREATE TABLE {heir.quoted} (own text) INHERITS ({parent.quoted})"
        return [made, f"ALTER TABLE {heir.quoted} REPLICA IDENTITY FULL"]

    def options(self, options: dict[str, str]) -> list[str]:
        """Adds properties; returns what they need to be created."""
        for name, (chance, values) in _OPTIONS.items():
            if self.random.random() < chance:
                options[name] = self.random.choice(values)
        if "message.prefix.include.list" in options:
            options.pop("message.prefix.exclude.list", None)
        if self.random.random() < 0.3:
            self._naming(options)
        if self.random.random() < 0.5 and (parted := [t for t in self.tables if t.partitioned and t.is_plain]):
            table = self.random.choice(parted)
            part = self.random.choice(("", "_0", "_1"))
            column = self.random.choice([c for c in table.columns if c.name not in (*table.key, NUMBER)])
            if column.name.isalnum() and column.name.isascii():
                options["column.mask.hash.SHA-512.with.salt.s"] = f"{table.schema}.{table.name}{part}.{column.name}"
        return self._publication(options)

    def _naming(self, options: dict[str, str]) -> None:
        strategy = self.random.choice(_STRATEGIES)
        options["topic.naming.strategy"] = f"io.debezium.schema.{strategy}"
        if "Regex" in strategy:
            options |= {"topic.regex": r"srv\.(.*)\.(.*)", "topic.replacement": self.random.choice(("r.$2", "all"))}
            options["topic.key.enforce.uniqueness"] = self.random.choice(("true", "false"))

    def _publication(self, options: dict[str, str]) -> list[str]:
        if self.random.random() > 0.3:
            return []
        options["publication.autocreate.mode"] = "disabled"
        via_root = options.pop("publish.via.partition.root", "false")
        return [f"CREATE PUBLICATION dbz_publication FOR ALL TABLES WITH (publish_via_partition_root = {via_root})"]

    def workload(self, statements: list[str], *, with_more: bool) -> list[str]:
        """The statements, some in savepoints, some transactions rolled back or prepared.

        `with_more` adds some about many rows; the tables must be what they are when the statements run.
        """
        out: list[str] = []
        is_open = False
        for number, statement in enumerate(statements):
            if statement == "COMMIT":
                out += self._end(number)
            elif is_open and self.random.random() < 0.3:
                end = self.random.choice(("RELEASE s{0}", "ROLLBACK TO s{0}", "ROLLBACK TO s{0}")).format(number)
                out += [f"SAVEPOINT s{number}", statement, end]
            else:
                out.append(statement)
            is_open = (is_open or statement == "BEGIN") and statement != "COMMIT"
            if with_more and not is_open and self.random.random() < 0.1:
                out += self._more()
        return self._beside(out) if with_more else out

    def _beside(self, statements: list[str]) -> list[str]:
        """The statements with some inserts in transactions of another session, which commits a few statements later."""
        out: list[str] = []
        at = 0
        while at < len(statements):
            window = statements[at : at + 8]
            is_able = window[0].startswith("INSERT") and not _is_open(out) and not any(map(_LOCKS.match, window))
            if is_able and not _is_open(window) and self.random.random() < 0.2:
                out += ["-- @session two", "BEGIN", window[0], "-- @session main", *window[1:]]
                out += ["-- @session two", "COMMIT", "-- @session main"]
                at += len(window)
            else:
                out.append(statements[at])
                at += 1
        return out

    def _end(self, number: int) -> list[str]:
        kind = self.random.random()
        if kind < 0.15:
            return ["ROLLBACK"]
        if kind < 0.3:
            ends = "COMMIT" if kind < 0.25 else "ROLLBACK"
            return [f"PREPARE TRANSACTION 'p{number}'", f"{ends} PREPARED 'p{number}'"]
        return ["COMMIT"]

    def _more(self) -> list[str]:
        """A statement about many rows, or none."""
        table = self.random.choice(self.tables)
        makers: tuple[Callable[[Table], str], ...] = (_move, _move, _touch, _thin_out, _truncate, _fail, _identify)
        return [self.random.choice(makers)(table)] if table.can_change else []


_LOCKS = re.compile("TRUNCATE|ALTER|CREATE|DROP|--")
_INDEXED = ("integer", "smallint", "bigint", "text", "date", "boolean", "uuid")


def _is_open(statements: list[str]) -> bool:
    """Whether a transaction that begins in the statements does not end there."""
    edges = [each for each in statements if each in ("BEGIN", "COMMIT", "ROLLBACK") or each.startswith("PREPARE")]
    return bool(edges) and edges[-1] == "BEGIN"


def _has_own_values(table: Table) -> bool:
    """Whether a column's values come from an identity or an expression, which heirs do not have."""
    return any(column.generated for column in table.columns)


def _move(table: Table) -> str:
    table.rows = [number + 50_000 for number in table.rows]
    return f"UPDATE {table.quoted} SET {NUMBER} = {NUMBER} + 50000 WHERE {NUMBER} < 2000000"


def _touch(table: Table) -> str:
    return f"UPDATE {table.quoted} SET {NUMBER} = {NUMBER}"


def _thin_out(table: Table) -> str:
    return f"DELETE FROM {table.quoted} WHERE {NUMBER} % 3 = 1"


def _truncate(table: Table) -> str:
    table.rows.clear()
    return f"TRUNCATE {table.quoted} RESTART IDENTITY CASCADE"


def _fail(table: Table) -> str:
    """A change that an aborted subtransaction takes back."""
    change = f"UPDATE {table.quoted} SET {NUMBER} = {NUMBER} + 1000000; RAISE EXCEPTION 'no'"
    return f"DO $$BEGIN {change}; EXCEPTION WHEN OTHERS THEN NULL; END$$"


def _identify(table: Table) -> str:
    """Another replica identity; as it is for partitions, which have one of their own."""
    if table.partitioned:
        return _touch(table)
    table.identity = "FULL"
    return f"ALTER TABLE {table.quoted} REPLICA IDENTITY FULL"
