"""Chooses the labels of enums that an offset stores, so that a log range has the same schemas whenever it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import psycopg

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.model.table import TableId

Labels = Mapping[str, Sequence[str]]

_LABELS = "SELECT enumtypid::text, array_agg(enumlabel::text ORDER BY enumsortorder) FROM pg_enum GROUP BY enumtypid"
# The tables with a column of the enum, of its arrays, or of a domain over it, however deep: by the server's list of
# what depends on a type, which has an index for that. The other catalogs would be read whole.
_USES = """
WITH RECURSIVE made_of AS (
  SELECT enumtypid AS enum, enumtypid AS type FROM pg_enum
  UNION
  SELECT m.enum, d.objid FROM made_of m JOIN pg_depend d ON d.refobjid = m.type
  WHERE d.refclassid = 'pg_type'::regclass AND d.classid = 'pg_type'::regclass
)
SELECT DISTINCT m.enum::text, n.nspname, c.relname
FROM made_of m JOIN pg_depend d ON d.refobjid = m.type AND d.refclassid = 'pg_type'::regclass
JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
"""


class EnumLabels:
    """The labels for the log ranges that one process plans.

    Left out are enums that only columns of other tables have, now and whenever this process planned before. The first
    range has all: what its tables had at the range before, which another process planned, is not known.
    """

    def __init__(self) -> None:
        self._used: set[str] | None = None
        self._at_start: Labels = {}

    def keep(self, connection: psycopg.Connection) -> None:
        """Show no label that is added later, as the reference engine, which reads the types once, at its start."""
        self._at_start = _all(connection)

    def read(self, connection: psycopg.Connection, config: Config) -> dict[str, Sequence[str]]:
        """The labels, in their order, by the enum's oid. The end of the range must be known before."""
        labels_of = _all(connection)
        needed = labels_of.keys() - _of_others(connection, config) if labels_of else set()
        shown = labels_of.keys() if self._used is None else needed | self._used
        self._used = (self._used or set()) | needed
        return {oid: self._at_start.get(oid, labels) for oid, labels in labels_of.items() if oid in shown}


def _all(connection: psycopg.Connection) -> dict[str, list[str]]:
    return dict(connection.execute(_LABELS).fetchall())


def _of_others(connection: psycopg.Connection, config: Config) -> set[str]:
    """Enums of tables that are not captured. One that no table has may be of a table or column dropped meanwhile."""
    captures, database = TableFilter.from_config(config).captures, config[DATABASE_DBNAME]
    captured: dict[tuple[str, str], bool] = {}
    sides: dict[bool, set[str]] = {True: set(), False: set()}
    for oid, *name in connection.execute(_USES):
        is_captured = captured.setdefault(tuple(name), captures(TableId(database, *name)))
        sides[is_captured].add(oid)
    return sides[False] - sides[True]
