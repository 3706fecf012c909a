"""Tables of PostgreSQL as a replica has to hold them: the server's text of each value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa

from tailrace.model.table import TableId
from tailrace.override import override
from tests.replica.content import ColumnTable, Representation, SourceTable
from tests.replica.lists import Lists
from tests.replica.postgres_types import DEFAULTS, Modes, PostgresType, represent

_SETTINGS = (
    *("SET TimeZone = 'UTC'", "SET DateStyle = 'ISO, MDY'", "SET IntervalStyle = 'iso_8601'"),
    *("SET bytea_output = 'hex'", "SET extra_float_digits = 3", "SET search_path = pg_catalog"),
)
_TABLES = """
SELECT n.nspname, c.relname, c.oid, c.relkind::text, c.relispartition, c.relpersistence::text,
    EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
  AND n.nspname !~ '^(pg_|information_schema$|tailrace_ddl$)'
ORDER BY 1, 2
"""
_COLUMNS = """
SELECT attname, atttypid, atttypmod, attgenerated <> '' FROM pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_TYPES = """
SELECT oid, typname, typtype::text, typbasetype, typtypmod,
    CASE WHEN typcategory = 'A' AND typlen = -1 AND typname NOT IN ('oidvector', 'int2vector') THEN typelem ELSE 0 END
FROM pg_type
"""


@dataclass(frozen=True)
class Captured(Lists):
    """What the properties choose, and how values are represented."""

    @property
    def via_root(self) -> bool:
        """Whether changes of partitions are sent under the name of the partitioned table."""
        return self.properties.get("publish.via.partition.root", "false") == "true"

    @property
    def modes(self) -> Modes:
        """The modes of types."""
        return Modes.of(self.properties)


_NO_DECIMALS = ("NaN", "Infinity")
# A date or time that a lakehouse table has: neither infinite nor outside of the years 1 to 9999.
_IN_YEARS = re.compile(r"(?!.*BC)(\d{4}-.*|\d{2}:.*)")


@dataclass
class PostgresTable(ColumnTable):
    """A table whose columns are PostgresType."""

    modes: Modes = DEFAULTS
    nulls: bool = False

    @override
    def represent(self, name: str, arrow: pa.DataType | None) -> Representation:
        found: PostgresType = self.columns[name]
        return represent(found, arrow, self.modes)

    def is_lost(self, name: str, text: str, arrow: pa.DataType | None) -> bool:
        """With `out_of_range: null` what a column of decimals, dates or times cannot hold."""
        if not self.nulls or arrow is None:
            return False
        if pa.types.is_decimal(arrow):
            return text.lstrip("-") in _NO_DECIMALS
        return pa.types.is_temporal(arrow) and _IN_YEARS.fullmatch(text) is None


def tables(
    connection: psycopg.Connection[Any],
    captured: Captured,
    ignored: frozenset[str] = frozenset(),
    *,
    nulls: bool = False,
) -> Iterator[SourceTable]:
    """The captured tables of a database, as of one moment each."""
    for statement in _SETTINGS:
        connection.execute(statement.encode())
    types = {row[0]: row[1:] for row in connection.execute(_TYPES).fetchall()}
    for schema, table, oid, kind, is_partition, persistence, is_parent in connection.execute(_TABLES).fetchall():
        if not captured.table(schema, table):
            continue
        columns, generated = {}, set()
        for name, type_, modifier, is_generated in connection.execute(_COLUMNS, [oid]).fetchall():
            if captured.column(schema, table, name):
                columns[name] = _type(types, type_, modifier)
                generated |= {name} if is_generated else set()
        if not columns:
            continue
        whole, alone = (
            _rows(connection, f"{only}{_quoted(schema)}.{_quoted(table)}", columns) for only in ("", "ONLY ")
        )
        is_root = kind == "p"
        # What is below a root comes by the root's name, partitions that have partitions as well.
        is_sent = persistence == "p" and (captured.via_root or not is_root) and not (is_partition and captured.via_root)
        heirs = is_parent and not is_root
        yield PostgresTable(
            *(TableId("", schema, table), columns, alone if heirs else whole, is_sent),
            others=[whole] if heirs else [],
            generated=frozenset(generated),
            ignored=ignored,
            modes=captured.modes,
            nulls=nulls,
        )


def _rows(
    connection: psycopg.Connection[Any], source: str, columns: Mapping[str, PostgresType]
) -> Sequence[Sequence[str | None]]:
    """The rows of a table in the texts that the server's output functions make."""
    chosen = ", ".join(f"{_quoted(name)}{type_.cast}" for name, type_ in columns.items())
    result = connection.pgconn.exec_(f"SELECT {chosen} FROM {source}".encode())
    if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
        raise psycopg.errors.DatabaseError(result.error_message.decode())
    values = ([result.get_value(row, place) for place in range(result.nfields)] for row in range(result.ntuples))
    return [[None if value is None else value.decode() for value in row] for row in values]


def _type(types: Mapping[int, Any], oid: int, modifier: int) -> PostgresType:
    """A column's type, without domains."""
    name, kind, base, base_modifier, element = types[oid]
    if kind == "d":
        return _type(types, base, base_modifier if modifier == -1 else modifier)
    return PostgresType(name, modifier, _type(types, element, modifier) if element else None, kind == "e")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
