"""Defines the key of a table: which columns of which index. No other module decides this.

Columns that an index carries by INCLUDE are no part of its key. The DDL triggers follow the same rule in the database
(see ddl.sql).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import tuple_row

# Whole unique indexes over plain columns. The first one by name is the key of a table without a primary key, as in the
# reference engine; an index over nullable columns is no key.
_INDEXES = """
SELECT i.indrelid::int8, i.indisprimary, i.indisreplident, array_agg(a.attname::text ORDER BY k.place),
  bool_and(a.attnotnull)
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = ANY (%s::oid[]) AND k.place <= i.indnkeyatts
  AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.indrelid, i.indisprimary, i.indisreplident, x.relname ORDER BY x.relname
"""

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Columns of a table's primary key, of its first usable unique index, and of its replica identity's index."""

    primary: Names = ()
    unique: Names = ()
    index: Names = ()

    @property
    def event(self) -> Names:
        """The columns of the key of its events, unless the configuration names others."""
        return self.primary or self.unique

    def identity(self, replica_identity: str, columns: Sequence[str]) -> Names:
        """The columns of an old row image, by pg_class.relreplident."""
        return {"d": self.primary, "f": tuple(columns), "i": self.index, "n": ()}[replica_identity]


def table_keys(connection: psycopg.Connection[Any], tables: Sequence[int]) -> dict[int, TableKeys]:
    """The keys of tables by their number in pg_class. Raises psycopg.Error."""
    primary: dict[int, Names] = {}
    unique: dict[int, Names] = {}
    index: dict[int, Names] = {}
    for table, is_primary, is_identity, names, required in connection.cursor(row_factory=tuple_row).execute(
        _INDEXES, [list(tables)]
    ):
        columns = tuple(names)
        if is_primary:
            primary[table] = columns
        if required:
            unique.setdefault(table, columns)
        if is_identity:
            index[table] = columns
    return {table: TableKeys(primary.get(table, ()), unique.get(table, ()), index.get(table, ())) for table in tables}
