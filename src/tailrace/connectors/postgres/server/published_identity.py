"""Finds tables whose UPDATE and DELETE the server refuses because of a publication, to everybody.

The server refuses them where the publication does not send a column of the table's replica identity. PostgreSQL 18
counts generated columns among these: stored ones are sent with publish_generated_columns = stored, virtual ones never.
Before 18 only a column list leaves columns out, and with REPLICA IDENTITY FULL none is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row
from psycopg.types.json import Jsonb

from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.server.partition_names import Name
from tailrace.connectors.postgres.server.published import Publication, shown

GENERATED_SINCE, LISTS_SINCE = 180_000, 150_000

# Tables with rows that have a generated column or a column list, which may be that of a table they are part of.
_TABLES = """
SELECT n.nspname::text, c.relname::text, c.relreplident::text,
  (SELECT jsonb_object_agg(a.attnum, jsonb_build_array(a.attname, a.attgenerated::text)) FROM pg_attribute a
   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  (SELECT jsonb_object_agg(x.relname, jsonb_build_array(i.indisprimary, i.indisreplident,
     (SELECT jsonb_agg(k.number) FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
      WHERE k.place <= i.indnkeyatts)))
   FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid),
  listed.columns
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (
  SELECT to_jsonb(array_agg(a.attname)) AS columns
  FROM (SELECT r.prattrs, r.prrelid FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
        WHERE p.pubname = %(name)s AND r.prattrs IS NOT NULL
          AND (r.prrelid = c.oid OR r.prrelid IN (SELECT pg_partition_ancestors(c.oid))) LIMIT 1) AS list
  JOIN pg_attribute a ON a.attrelid = list.prrelid AND a.attnum = ANY (list.prattrs::int2[])
) AS listed ON true
WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND (listed.columns IS NOT NULL OR EXISTS (
  SELECT FROM pg_attribute g WHERE g.attrelid = c.oid AND g.attgenerated <> '' AND NOT g.attisdropped))
ORDER BY 1, 2
"""
_SENT_WITH = """
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relispartition AND EXISTS (
  SELECT FROM pg_partition_ancestors(c.oid) AS a (oid) JOIN pg_class p ON p.oid = a.oid
  JOIN pg_namespace m ON m.oid = p.relnamespace
  JOIN jsonb_array_elements(%(names)s::jsonb) AS sent (name) ON sent.name = jsonb_build_array(m.nspname, p.relname))
"""
_STORED, _VIRTUAL, _LISTED = "stored", "virtual", "listed"


@dataclass(frozen=True)
class _Table:
    """A table with its identity ('f', 'd', 'i', 'n', or the name of an index), and the column list that it has."""

    name: Name
    identity: str
    columns: Mapping[str, tuple[str, str]]
    indexes: Mapping[str, tuple[bool, bool, Sequence[int]]]
    listed: Collection[str] | None

    @property
    def quoted(self) -> str:
        return sql.Identifier(*self.name).as_string()

    @property
    def primary_key(self) -> list[str]:
        """The names of its columns."""
        return next((self._names(numbers) for is_primary, _, numbers in self.indexes.values() if is_primary), [])

    def identity_of(self, wished: str | None) -> list[str]:
        """The columns of the identity that it has, or is to get (FULL, DEFAULT, NOTHING or INDEX with a name)."""
        kind = {"FULL": "f", "DEFAULT": "d", "NOTHING": "n"}.get(wished or "", "i") if wished else self.identity
        if kind == "f":
            return [name for name, _ in self.columns.values()]
        if kind == "d":
            return self.primary_key
        chosen = (wished or "").removeprefix("INDEX ")
        numbers = (each[2] for name, each in self.indexes.items() if (name == chosen if wished else each[1]))
        return [] if kind == "n" else self._names(next(numbers, ()))

    def _names(self, numbers: Sequence[int]) -> list[str]:
        return [self.columns[str(number)][0] for number in numbers if str(number) in self.columns]

    def generated(self, kind: str) -> set[str]:
        """Its generated columns, `s` for stored and `v` for virtual ones."""
        return {name for name, each in self.columns.values() if each == kind}


def refused(
    connection: psycopg.Connection[Any],
    publication: Publication,
    tables: Collection[Name] | None,
    wished: Mapping[Name, str],
    *,
    is_there: bool = True,
) -> Iterator[Finding]:
    """One finding a kind of remedy, each a problem.

    `tables` are those that are, or will be, in the publication (None: all of the database). `wished` are the replica
    identities that they will get, as replica_identity.plan has them. `is_there`: whether the publication is made.
    """
    version = connection.info.server_version
    if version < LISTS_SINCE or not publication.operations & {"update", "delete"}:
        return
    cursor = connection.cursor(row_factory=tuple_row)
    refused_tables = [
        _Table(tuple(row[:2]), row[2], row[3], row[4] or {}, row[5]) for row in _rows(cursor, publication)
    ]
    if tables is not None:
        names = [list(name) for name in tables]
        parts = cursor.execute(_SENT_WITH, {"names": Jsonb(names)}).fetchall() if refused_tables else []
        refused_tables = [table for table in refused_tables if table.name in {*tables, *parts}]
    kinds: dict[str, list[tuple[_Table, set[str]]]] = {}
    for table in refused_tables:
        wish = wished.get(table.name)
        lacking = _lacking(table, table.identity_of(wish), publication, version, is_full=_is_full(table, wish))
        for kind, columns in lacking.items():
            kinds.setdefault(kind, []).append((table, columns))
    for kind, lacks in kinds.items():
        yield _finding(publication.name, kind, lacks, wished, is_there=is_there)


def _rows(cursor: psycopg.Cursor[Any], publication: Publication) -> list[Any]:
    return list(cursor.execute(_TABLES, {"name": publication.name}).fetchall())


def _is_full(table: _Table, wish: str | None) -> bool:
    return (wish or {"f": "FULL"}.get(table.identity)) == "FULL"


def _lacking(
    table: _Table, identity: Sequence[str], publication: Publication, version: int, *, is_full: bool
) -> dict[str, set[str]]:
    """The columns of the identity that the publication does not send, by what keeps them from it."""
    if table.listed is not None:
        lacking = set(identity) - set(table.listed)
        if version < GENERATED_SINCE and is_full:
            lacking = set(identity)
        return {_LISTED: lacking} if lacking else {}
    if version < GENERATED_SINCE:
        return {}
    virtual = table.generated("v").intersection(identity)
    if virtual:
        return {_VIRTUAL: virtual}
    stored = set() if publication.sends_generated else table.generated("s").intersection(identity)
    return {_STORED: stored} if stored else {}


def _finding(
    publication: str,
    kind: str,
    lacks: Sequence[tuple[_Table, set[str]]],
    wished: Mapping[Name, str],
    *,
    is_there: bool,
) -> Finding:
    columns = [".".join((*table.name, name)) for table, names in lacks for name in sorted(names)]
    what = (
        f"{publication} does not send {shown(columns)}, which the replica identity contains: the server would refuse "
        "every UPDATE and DELETE of the table, to all its users"
    )
    if kind == _STORED and is_there:
        name = sql.Identifier(publication).as_string()
        return Finding("identity", False, what, f"ALTER PUBLICATION {name} SET (publish_generated_columns = stored)")
    return Finding("identity", False, what, "; ".join(_remedy(table, kind, wished) for table, _ in lacks))


def _remedy(table: _Table, kind: str, wished: Mapping[Name, str]) -> str:
    if table.name in wished:
        return f"leave {'.'.join(table.name)} out of replica.identity.autoset.values"
    sent = {name for name, each in table.columns.values() if not each} if table.listed is None else {*table.listed}
    if table.primary_key and sent.issuperset(table.primary_key):
        return f"ALTER TABLE {table.quoted} REPLICA IDENTITY DEFAULT"
    if kind == _LISTED:
        return f"add the columns to the column list of {'.'.join(table.name)} in the publication"
    another = "a primary key or REPLICA IDENTITY USING INDEX without these columns"
    return f"give {'.'.join(table.name)} {another}; or leave it out of the publication"
