"""The server's catalog: identity of the server, captured tables, their columns, keys and types."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import TableFilter
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.processors import reselect
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.columns import CapturedTable, ColumnRules
from tailrace.connectors.postgres.catalog.defaults import parse_default
from tailrace.connectors.postgres.catalog.enum_labels import Labels
from tailrace.connectors.postgres.catalog.table_keys import table_keys
from tailrace.connectors.postgres.log.protocol.pgoutput import Relation, RelationColumn
from tailrace.connectors.postgres.options import ROWS_FOR_REPLICA
from tailrace.connectors.postgres.server.partition_names import left_out
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.source_type import driver_type, source_type
from tailrace.connectors.postgres.types.values import LOSSY_KEYS, value_type
from tailrace.connectors.value_type import ValueType, text_type
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

# By type, modifier, and whether the log has the value.
Values = dict[tuple[PgType, int, bool], ValueType | None]

_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\\_temp%' AND n.nspname <> 'pg_toast'
"""
_NAMED = "n.nspname = %s AND c.relname = %s"
# A column that was added with a default has the value of older rows, until these are rewritten.
_COLUMNS = """
SELECT a.attrelid::int8, a.attname, a.atttypid, a.atttypmod, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull),
  pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum), to_jsonb(a) ->> 'attgenerated' <> '',
  CASE WHEN a.atthasmissing THEN (a.attmissingval::text::text[])[1] END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY (%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# Of a partitioned table its partitions have it. Those that were made since store the value with each row.
_MISSING = """
WITH RECURSIVE tree AS (
  SELECT oid AS root, oid FROM pg_class WHERE oid = ANY (%s::oid[]) AND relkind = 'p'
  UNION ALL SELECT t.root, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT t.root::int8, a.attname, min((a.attmissingval::text::text[])[1])
FROM tree t JOIN pg_attribute a ON a.attrelid = t.oid AND a.atthasmissing AND a.attnum > 0
GROUP BY 1, 2 HAVING count(DISTINCT a.attmissingval::text) = 1
"""
# A type with its base, labels and element. A type is an array if its element's type names it as such.
_TYPES = """
WITH RECURSIVE base AS (
  SELECT oid AS asked, oid, typname, typtype, typbasetype, typelem, NULL::int AS modifier
  FROM pg_type WHERE oid = ANY (%s)
  UNION ALL
  SELECT b.asked, t.oid, t.typname, t.typtype, t.typbasetype, t.typelem, d.typtypmod
  FROM base b JOIN pg_type d ON d.oid = b.oid JOIN pg_type t ON t.oid = d.typbasetype WHERE b.typtype = 'd'
)
SELECT b.asked::int8, b.typname, format_type(b.asked, NULL), b.modifier, b.asked <> b.oid,
  (SELECT e.oid::int8 FROM pg_type e WHERE e.oid = b.typelem AND e.typarray = b.oid),
  (SELECT o.typoutput::regproc::text FROM pg_type o WHERE o.oid = b.oid), format_type(b.oid, NULL), s.typname,
  CASE WHEN pg_type_is_visible(s.oid) THEN s.typname ELSE format('"%%s"."%%s"', n.nspname, s.typname) END,
  ARRAY(SELECT e.enumlabel FROM pg_enum e WHERE e.enumtypid = b.oid ORDER BY e.enumsortorder)::text[], b.oid::text
FROM base b JOIN pg_type s ON s.oid = b.asked JOIN pg_namespace n ON n.oid = s.typnamespace WHERE b.typtype <> 'd'
"""


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column as the catalog has it; `missing` is the text of the value that rows have which do not store one."""

    name: str
    type_oid: int
    modifier: int
    required: bool
    default: str | None
    comment: str | None = None
    is_generated: bool = False
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table as the catalog has it: columns, key columns (primary key or first usable unique index), identity.

    The rows of a partitioned table are those of others.
    """

    columns: tuple[CatalogColumn, ...]
    key: tuple[str, ...]
    identity: tuple[str, ...]
    is_partitioned: bool = False


class Catalog:
    """Reads the catalog over one connection. Raises psycopg.Error when the server refuses.

    `labels`, if given, are what enums have, by the type's oid, whatever the catalog says by now. Any other enum is
    carried as text, as its labels would depend on when this is read. `values` keeps what types become, so that a type
    is one object in all tables: see Structures.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        config: Config,
        labels: Labels | None = None,
        values: Values | None = None,
    ) -> None:
        self.connection = connection
        self.config = config
        self.filter = TableFilter.from_config(config)
        self.database = config[DATABASE_DBNAME]
        self._faults = config[COMPAT_FAULTS]
        self._keeps_rows = config[ROWS_FOR_REPLICA]
        self._labels = labels
        self._columns = ColumnRules(config)
        self._types: dict[int, tuple[PgType, int | None]] = {}
        self._values: Values = {} if values is None else values
        self._prepared: dict[int, TableInfo | None] = {}

    def tables(self) -> list[TableId]:
        """The captured tables, in snapshot order; of those that have partitions, the half that the log names."""
        rows = self.connection.cursor(row_factory=tuple_row).execute(_TABLES).fetchall()
        tables = [table for table in (TableId(self.database, *row) for row in rows) if self.filter.captures(table)]
        others = left_out(self.connection, self.config, [(table.schema, table.table) for table in tables])
        return self.filter.order(table for table in tables if (table.schema, table.table) not in others)

    def snapshot_tables(self) -> list[TableId]:
        """Those of the captured tables that the first snapshot reads."""
        return [table for table in self.tables() if self.filter.snapshots(table)]

    def table(self, table: TableId) -> CapturedTable | None:
        """A table as it is now, None when there is no such table."""
        info = self._info(_NAMED, table.schema, table.table)
        return None if info is None else self._captured(table, info, in_log=False)

    def names(self, table: TableId) -> list[str]:
        """The names of all columns of a table, captured or not."""
        info = self._info(_NAMED, table.schema, table.table)
        return [] if info is None else [column.name for column in info.columns]

    def prepare(self, relations: Sequence[Relation]) -> None:
        """Read what `relation` needs of many tables, by as many queries as for one; it is what holds from then on."""
        wanted = [relation for relation in relations if self.filter.captures(self._id(relation))]
        oids = [relation.oid for relation in wanted]
        infos = self._infos("c.oid = ANY (%s::oid[])", oids) if oids else {}
        self._load_types({column.type_oid for relation in wanted for column in relation.columns})
        self._prepared = {oid: infos.get(oid) for oid in oids}

    def relation(self, relation: Relation) -> CapturedTable | None:
        """A table as the log describes it, None when it is not captured.

        The log has names and types; nullability, defaults and key are the catalog's of now (as in Debezium's
        connector, which reads them when the description arrives). The table is found by its number, whatever it is
        called by now. Of a table dropped meanwhile only what the log tells is known: identity columns make the key and
        are the required ones. They make it, too, where a key column is called otherwise by now. The reference engine
        looks up nothing about key columns that the filters hide.
        """
        table = self._id(relation)
        if not self.filter.captures(table):
            return None
        info = self._info_of(relation)
        by_name = {column.name: column for column in info.columns} if info else {}
        if Fault.UNDESCRIBED_HIDDEN_KEYS in self._faults:
            by_name = {name: by_name[name] for name in self.filter.columns(table, list(by_name))}
        columns = tuple(
            _described(column, by_name.get(column.name), column.in_identity and info is None)
            for column in relation.columns
        )
        absent = [each for each in info.columns if each.is_generated] if info and self._keeps_rows else []
        absent = [each for each in absent if each.name not in {column.name for column in relation.columns}]
        columns = (*columns, *absent)
        names = {column.name for column in columns}
        marked = tuple(column.name for column in relation.columns if column.in_identity)
        is_as_now = info is not None and names.issuperset(info.key)
        key = info.key if info is not None and is_as_now else marked * (relation.identity != "f")
        identity = _identity(relation, marked)
        if relation.identity == "f":
            identity = (*identity, *(column.name for column in absent))
        captured = self._captured(table, TableInfo(columns, key, identity), in_log=True)
        if captured is None or not absent:
            return captured
        shown = {column.name for column in captured.schema.columns}
        return replace(captured, absent=tuple(column.name for column in absent if column.name in shown))

    def _info_of(self, relation: Relation) -> TableInfo | None:
        """What the catalog has of a table of the log."""
        is_prepared = relation.oid in self._prepared
        return self._prepared[relation.oid] if is_prepared else self._info("c.oid = %s", relation.oid)

    def key_types(self, table: TableId, names: tuple[str, ...] | None) -> tuple[tuple[str, str], ...]:
        """Name and type of the named columns, or of the primary key; none when the table or a column is gone."""
        info = self._info(_NAMED, table.schema, table.table)
        wanted = () if info is None else names or info.key
        rows = self.connection.execute(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a "
            "JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = %s AND a.attname = ANY (%s) AND NOT a.attisdropped",
            [table.schema, table.table, list(wanted)],
        )
        types: dict[str, str] = dict(rows.fetchall())
        return tuple((name, types[name]) for name in wanted) if len(types) == len(wanted) else ()

    def nullable(self, table: TableId, names: tuple[str, ...]) -> frozenset[str]:
        """Which of the named columns may hold null."""
        info = self._info(_NAMED, table.schema, table.table)
        columns = () if info is None else info.columns
        return frozenset(column.name for column in columns if column.name in names and not column.required)

    def _id(self, relation: Relation) -> TableId:
        return TableId(self.database, relation.schema, relation.table)

    def _info(self, condition: str, *parameters: object) -> TableInfo | None:
        return next(iter(self._infos(condition, *parameters).values()), None)

    def _infos(self, condition: str, *parameters: object) -> dict[int, TableInfo]:
        """The tables that fulfil a condition, by their numbers in pg_class."""
        query = (
            "SELECT c.oid::int8, c.relreplident::text, c.relkind = 'p' "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.relkind IN ('r', 'p') AND {condition}"
        )
        relations = self.connection.execute(query.encode(), parameters).fetchall()
        if not relations:
            return {}
        oids = [row[0] for row in relations]
        columns: dict[int, list[CatalogColumn]] = {oid: [] for oid in oids}
        for oid, *column in self.connection.execute(_COLUMNS, [oids]):
            columns[oid].append(CatalogColumn(*column))
        if self._keeps_rows:
            columns = self._with_missing(columns)
        keys = table_keys(self.connection, oids)
        return {
            oid: TableInfo(
                tuple(columns[oid]),
                keys[oid].event(self.config),
                keys[oid].identity(identity, [column.name for column in columns[oid]]),
                is_partitioned,
            )
            for oid, identity, is_partitioned in relations
        }

    def _with_missing(self, columns: dict[int, list[CatalogColumn]]) -> dict[int, list[CatalogColumn]]:
        """The columns of tables, with the values of partitioned ones that their partitions agree on."""
        rows = self.connection.execute(_MISSING, [[*columns]]).fetchall()
        missing: dict[tuple[int, str], str] = {(oid, name): value for oid, name, value in rows}
        return {
            oid: [replace(column, missing=missing.get((oid, column.name), column.missing)) for column in each]
            for oid, each in columns.items()
        }

    def _captured(self, table: TableId, info: TableInfo, *, in_log: bool) -> CapturedTable | None:
        self._load_types({column.type_oid for column in info.columns})
        columns = [self._column(column, in_log) for column in info.columns]
        is_unique = self._is_unique_at_commit(table, info)
        captured = self._columns.captured(table, columns, info.key, info.identity, unique_at_commit=is_unique)
        is_alone = self._keeps_rows and not info.is_partitioned
        return replace(captured, is_alone=True) if captured is not None and is_alone else captured

    def _is_unique_at_commit(self, table: TableId, info: TableInfo) -> bool:
        """Whether rows may change places within a transaction, as far as images can tell.

        The server takes no deferrable constraint as an identity, so such tables have REPLICA IDENTITY FULL. Values
        that are selected again are not those of the moment, so images of one row may differ.
        """
        names = [column.name for column in info.columns]
        again = reselect(self.config)
        return len(info.identity) == len(names) and not (again and any(again.wants(table, name) for name in names))

    def _column(self, column: CatalogColumn, in_log: bool) -> ColumnInfo:
        pg, domain_modifier = self._types[column.type_oid]
        modifier = column.modifier if column.modifier >= 0 or domain_modifier is None else domain_modifier
        if (pg, modifier, in_log) not in self._values:
            self._values[pg, modifier, in_log] = value_type(pg, modifier, self.config, in_log=in_log)
        value = self._values[pg, modifier, in_log]
        return ColumnInfo(
            name=column.name,
            type=source_type(pg, modifier) if in_log else driver_type(pg, modifier, column.default),
            value=None if value is None else replace(value, text=pg.output),
            required=column.required,
            default=parse_default(column.default, pg, None if value is None else value.schema.name, self._faults),
            # The reference engine's PostgreSQL connector accepts include.schema.comments and reads no comments.
            comment=None if Fault.UNREAD_COMMENTS in self._faults else column.comment,
            text=pg.output,
            missing=column.missing if self._keeps_rows else None,
            exact=replace(text_type(), text=pg.output) if pg.name in LOSSY_KEYS else None,
        )

    def _load_types(self, oids: Iterable[int]) -> None:
        """Look up types that are not known yet, and the elements of arrays among them."""
        missing = [oid for oid in oids if oid not in self._types]
        if not missing:
            return
        rows = self.connection.execute(_TYPES, [missing]).fetchall()
        self._load_types({row[5] for row in rows if row[5] is not None})
        for asked, name, printed, modifier, domain, element, function, base, own, qualified, enum_labels, oid in rows:
            inner, inner_modifier = self._types[element] if element else (None, None)
            labels = enum_labels if self._labels is None or not enum_labels else self._labels.get(oid)
            if labels is None:
                continue
            pg = PgType(
                name,
                printed,
                tuple(labels),
                inner,
                domain=domain,
                output=_output(name, function, base, domain),
                own=own,
                qualified=qualified,
            )
            # An array of a domain has no modifier, yet its elements have the domain's.
            self._types[asked] = (pg, inner_modifier if modifier is None else modifier)
        for oid in missing:
            if oid not in self._types:
                log.warning("no captured table has the type with oid %d by now; its values are carried as text", oid)
                self._types[oid] = (PgType("text", f"with oid {oid}"), None)


def _output(name: str, function: str, base: str, domain: bool) -> str:
    """SQL that prints a value by its type's output function; a cast to text is not the same for each type."""
    if name in ("text", "varchar", "bpchar"):
        return "{}"
    value = f"CAST({{}} AS {_escaped(base)})" if domain else "{}"
    return f"pg_catalog.textin({_escaped(function)}({value}))"


def _escaped(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}")


def source_of(table: CapturedTable) -> sql.Composed:
    """A table as it stands behind FROM: with its partitions, and with the tables that inherit from it or without."""
    name = sql.Identifier(table.schema.id.schema, table.schema.id.table)
    return sql.SQL("ONLY {}" if table.is_alone else "{}").format(name)


def system_identifier(connection: psycopg.Connection) -> str:
    """The number that tells one server's data from every other's."""
    row = connection.execute("SELECT system_identifier::text FROM pg_control_system()").fetchone()
    assert row is not None  # a function's result has one row
    return str(row[0])


def _identity(relation: Relation, marked: tuple[str, ...]) -> tuple[str, ...]:
    """Columns of an old row image. Under FULL every column is marked, under NOTHING none comes."""
    return () if relation.identity == "n" else marked


def _described(column: RelationColumn, catalogued: CatalogColumn | None, required: bool) -> CatalogColumn:
    """A column of the log with what the catalog knows of it, else without a default."""
    name, oid, modifier = column.name, column.type_oid, column.type_modifier
    if catalogued is None:
        return CatalogColumn(name, oid, modifier, required, None)
    is_same = (catalogued.type_oid, catalogued.modifier) == (oid, modifier)
    described = CatalogColumn(
        name, oid, modifier, catalogued.required, catalogued.default, catalogued.comment, catalogued.is_generated
    )
    return replace(described, missing=catalogued.missing if is_same else None)
