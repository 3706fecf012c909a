"""Defines the key of a table: the index and its columns. No other module decides this.

Columns that an index carries by INCLUDE are no part of its key, except for the reference engine. The DDL triggers
follow the same rule in the database (see ddl.sql).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.options.spark import COMPAT_FAULTS

# Unique indexes over plain columns, in the order of the reference engine's driver.
_INDEXES = """
SELECT i.indrelid::int8, i.indisprimary, i.indisreplident,
  array_agg(a.attname::text ORDER BY k.place) FILTER (WHERE k.place <= i.indnkeyatts),
  array_agg(a.attname::text ORDER BY k.place),
  i.indpred IS NULL, bool_and(a.attnotnull OR k.place > i.indnkeyatts), max(c.oid::text)
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.conrelid = i.indrelid AND c.contype IN ('p', 'u')
WHERE i.indrelid = ANY (%s::oid[]) AND i.indisunique AND i.indisvalid AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.indrelid, i.indisprimary, i.indisreplident, x.relname
ORDER BY i.indisclustered DESC, x.relname
"""

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Columns of a table's primary key, of the unique indexes that can be the key, and of its replica identity's index.

    `unique` are the whole unique indexes over required columns, the primary key's too. `first` is the first unique
    index with all of its columns, which the reference engine takes: rows that are outside a partial index, or null in
    it, share a key. `constraints` has the numbers of those that keep columns unique.
    """

    primary: Names = ()
    unique: tuple[Names, ...] = ()
    index: Names = ()
    first: Names = ()
    constraints: Mapping[Names, str] = field(default_factory=dict)

    def made(self, config: Config) -> str:
        """A text that changes with the key of events, and when its constraint is made again.

        An index without a constraint that is made again over the same columns leaves it as it is. REINDEX CONCURRENTLY
        makes another index, and keeps the constraint.
        """
        key = self.event(config)
        return json.dumps([self.constraints.get(key, ""), *key])

    def event(self, config: Config) -> Names:
        """The columns of the key of its events, unless the configuration names others."""
        return self.primary or (
            self.first if Fault.KEYS_OF_ANY_INDEX in config[COMPAT_FAULTS] else next(iter(self.unique), ())
        )

    def identity(self, replica_identity: str, columns: Sequence[str]) -> Names:
        """The columns of an old row image, by pg_class.relreplident."""
        return {"d": self.primary, "f": tuple(columns), "i": self.index, "n": ()}[replica_identity]


def table_keys(connection: psycopg.Connection[Any], tables: Sequence[int]) -> dict[int, TableKeys]:
    """The keys of tables by their number in pg_class. Raises psycopg.Error."""
    primary: dict[int, Names] = {}
    unique: dict[int, tuple[Names, ...]] = {}
    index: dict[int, Names] = {}
    first: dict[int, Names] = {}
    constraints: dict[int, dict[Names, str]] = {}
    for table, is_primary, is_identity, names, all_names, is_whole, required, constraint in connection.cursor(
        row_factory=tuple_row
    ).execute(_INDEXES, [list(tables)]):
        columns = tuple(names)
        if constraint is not None and (is_primary or columns not in constraints.get(table, {})):
            constraints.setdefault(table, {})[columns] = constraint
        if is_primary:
            primary[table] = columns
        if is_whole and required:
            unique[table] = (*unique.get(table, ()), columns)
        if is_identity:
            index[table] = columns
        first.setdefault(table, tuple(all_names))
    return {
        table: TableKeys(
            *(primary.get(table, ()), unique.get(table, ()), index.get(table, ()), first.get(table, ())),
            constraints.get(table, {}),
        )
        for table in tables
    }
