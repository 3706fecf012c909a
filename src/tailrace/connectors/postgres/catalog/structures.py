"""Reads what the catalogue has of the captured tables, so that what happens outside the log is noticed.

Few queries for all tables, of the catalogue alone: they need no right on the tables, and wait for no lock. What has not
changed since the last look is not read or made again: 10,000 tables of 10 columns take a look of 0.4 s.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.config.filters import TableFilter, key_columns
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.postgres.catalog.capturing import NEXT, Capturing
from tailrace.connectors.postgres.catalog.description import Around, DescribedColumns, Description, Row
from tailrace.connectors.postgres.catalog.members import FULL, Families, PartitionFamily
from tailrace.connectors.postgres.catalog.table_keys import table_keys
from tailrace.connectors.postgres.catalog.type_parts import FIRST_OWN, TypeFacts, type_facts
from tailrace.connectors.postgres.ddl.event_triggers import reporting_since
from tailrace.connectors.postgres.server.partition_names import Name, left_out
from tailrace.connectors.postgres.server.sending import Sending
from tailrace.model.structure import ColumnType, Structure
from tailrace.model.table import TableId

# A table's own type has its name, and another version once that or its schema changes, or its owner, who is noted by a
# version of another row. Columns of the system never change.
_TABLES = f"""
SELECT n.nspname::text, c.relname::text, c.oid::text, c.relkind = 'p', c.relispartition, c.relpersistence::text,
  c.relfilenode::text, c.reltoastrelid::text, c.relnatts, {FULL.format("born.xmin")}, {FULL.format("t.xmin")},
  t.xmin = born.xmin AND t.cmin = born.cmin, coalesce(owner.xmin = t.xmin, false), identity.oid IS NOT NULL,
  columns.versions, c.relreplident = 'f'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute born ON born.attrelid = c.oid AND born.attnum = -1 JOIN pg_type t ON t.oid = c.reltype
JOIN (SELECT attrelid AS oid, sum(hashint8extended(xmin::text::int8 << 16 | attnum, 0))::text AS versions
      FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped GROUP BY 1) AS columns ON columns.oid = c.oid
LEFT JOIN (SELECT DISTINCT i.indrelid AS oid FROM pg_attribute g JOIN pg_index i ON i.indrelid = g.attrelid
           JOIN pg_class of ON of.oid = i.indrelid WHERE g.attgenerated <> '' AND g.attnum = ANY (i.indkey::int2[])
             AND (of.relreplident = 'i' AND i.indisreplident OR of.relreplident = 'd' AND i.indisprimary)
          ) AS identity ON identity.oid = c.oid
LEFT JOIN pg_shdepend owner ON owner.classid = 'pg_class'::regclass AND owner.objid = c.oid AND owner.deptype = 'o'
  AND owner.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%'
  AND n.nspname <> 'information_schema'
"""
# Types that show the same stored value alike have a kind in common.
_COLUMNS = f"""
SELECT a.attrelid::text, a.attname::text, a.attnum::text, a.atttypid::text || ':' || a.atttypmod,
  CASE WHEN b.typcategory IN ('S', 'V') THEN b.typcategory::text WHEN b.oid IN (1114, 1184) THEN 'timestamp'
    ELSE b.oid::text END,
  md5(d.adbin::text), {FULL.format("a.xmin")}, CASE WHEN t.oid >= {FIRST_OWN} THEN t.oid::text END,
  a.xmin = born.xmin AND a.cmin = born.cmin
FROM pg_attribute a JOIN pg_attribute born ON born.attrelid = a.attrelid AND born.attnum = -1
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
LEFT JOIN pg_attrdef d ON a.attgenerated <> '' AND d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY (%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
"""


class Structures:
    """For one process; see Connector.structures."""

    def __init__(self) -> None:
        self._families = Families()
        self._config: Config | None = None
        self._captured: dict[Name, bool] = {}
        self._columns: dict[str, tuple[str, DescribedColumns]] = {}
        self._around: Around | None = None
        self._made: dict[str, tuple[TableId, Row, PartitionFamily, str | None, Structure]] = {}

    def read(self, connection: psycopg.Connection, config: Config, log: Mapping[str, Any]) -> dict[TableId, Structure]:
        """The captured tables; `log` is what the offset has of the log. Raises psycopg.Error."""
        row = connection.execute(f"SELECT {NEXT}".encode()).fetchone()
        assert row is not None
        now, stored = int(row[0]), Capturing.of(log)
        tables = self._tables(connection, config)
        columns = self._columns_of(connection, tables.values())
        types = type_facts(
            connection, {each for described in columns.values() for each in described.own_types.values()}
        )
        capturing, oids = Capturing.at(config, log, now), [each.oid for each in tables.values()]
        around = self._look_around(connection, config, capturing, oids, types)
        roots = [each.oid for each in tables.values() if each.is_root]
        before = around.capturing.since if stored is None else stored.next
        families = self._families.of(connection, roots, before, now)
        if around != self._around:
            self._around, self._made = around, {}
        lists, keys = TableFilter.from_config(config), _keys(connection, config, tables, columns)
        made = {}
        for id_, table in tables.items():
            family = families.get(table.oid, PartitionFamily())
            last = self._made.get(table.oid)
            key = keys.get(table.oid)
            if last is None or last[:4] != (id_, table, family, key):
                visible = _visible(lists, id_, columns[table.oid])
                seen = Description(id_, table, columns[table.oid], visible, family=family, around=around, key=key)
                structure = seen.structure
                last = id_, table, family, key, structure
            made[table.oid] = last
        self._made = made
        return {each[0]: each[-1] for each in made.values()}

    def _tables(self, connection: psycopg.Connection, config: Config) -> dict[TableId, Row]:
        """The tables whose changes come by their own names."""
        if config != self._config:
            self._config, self._captured, self._made = config, {}, {}
        lists, database = TableFilter.from_config(config), config[DATABASE_DBNAME]
        rows = {tuple(row[:2]): row[2:] for row in connection.execute(_TABLES.encode())}
        for name in rows.keys() - self._captured.keys():
            table = TableId(database, *name)
            self._captured[name] = lists.captures(table) and table.unique not in lists.signals
        names = {name for name in rows if self._captured[name]}
        others = left_out(connection, config, names)
        return {TableId(database, *name): Row(*rows[name]) for name in sorted(names - others)}

    def _look_around(
        self,
        connection: psycopg.Connection,
        config: Config,
        capturing: Capturing,
        oids: Sequence[str],
        types: TypeFacts,
    ) -> Around:
        reporting = reporting_since(connection, FULL)
        triggers = None if reporting is None else str(reporting[0])
        sending = Sending.of(connection, config, [*oids, *([] if triggers is None else [triggers])])
        reported = None if reporting is None or not sending.has(str(triggers)) else reporting[1]
        # What is newest changes at each look, and describes no table.
        return Around(replace(capturing, next=0), types, sending, reported)

    def _columns_of(self, connection: psycopg.Connection, tables: Collection[Row]) -> dict[str, DescribedColumns]:
        """The columns of each table, of which those are read that have another version than at the last look."""
        earlier = {each.oid: self._columns.get(each.oid) for each in tables}
        new = {each.oid: each for each in tables if (cached := earlier[each.oid]) is None or cached[0] != each.columns}
        read = _columns(connection, [*new]) if new else {}
        self._columns = {each.oid: (each.columns, read[each.oid]) for each in new.values()} | {
            oid: cached for oid, cached in earlier.items() if cached is not None and oid not in new
        }
        return {oid: columns for oid, (_, columns) in self._columns.items()}


def _visible(lists: TableFilter, table: TableId, columns: DescribedColumns) -> set[str]:
    """The numbers of the captured columns."""
    return {columns.numbers[name] for name in lists.columns(table, list(columns.numbers))}


def _keys(
    connection: psycopg.Connection,
    config: Config,
    tables: Mapping[TableId, Row],
    columns: Mapping[str, DescribedColumns],
) -> dict[str, str]:
    """By the oids of tables what tells their key from another one, where nothing but the catalogue tells the key.

    Other tables than those with REPLICA IDENTITY FULL are followed by their identity, which the log tells.
    """
    wanted = [
        table.oid
        for id_, table in tables.items()
        if table.is_identity_full and not key_columns(config, id_, [*columns[table.oid].numbers])
    ]
    of_tables = table_keys(connection, [*map(int, wanted)]) if wanted else {}
    return {str(oid): each.made(config) for oid, each in of_tables.items()}


def _columns(connection: psycopg.Connection, oids: Sequence[str]) -> dict[str, DescribedColumns]:
    described: dict[str, DescribedColumns] = {oid: DescribedColumns() for oid in oids}
    rows = connection.execute(_COLUMNS.encode(), [oids])
    for oid, name, number, exact, kind, generated, changed, own, is_as_made in rows:
        columns = described[oid]
        if not is_as_made:
            columns.later.add(int(number))
        columns.numbers[name] = number
        columns.types[number] = ColumnType(exact, kind)
        columns.changed.add(changed)
        if own is not None:
            columns.own_types[number] = own
        if generated is not None:
            columns.generated[number] = generated
    return described
