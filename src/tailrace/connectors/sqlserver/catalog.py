"""Reads a database's catalog: tables, columns, keys and capture instances."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache
from itertools import pairwise

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import TableFilter
from tailrace.config.options.databases import DATABASE_NAMES
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.change_tables import tables
from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.change_tables.tables import Instance, TableKey
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.columns import CapturedTable, ColumnRules
from tailrace.connectors.sql_tables.tables import Described, SqlColumn
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.defaults import parse_default
from tailrace.connectors.sqlserver.failures import ONE_DATABASE
from tailrace.connectors.sqlserver.guard import guard
from tailrace.connectors.sqlserver.options import (
    COMPUTED_COLUMNS,
    INTERNAL_CAPTURE_INSTANCE_EXCLUDE_LIST,
    INTERNAL_CAPTURE_INSTANCE_INCLUDE_LIST,
)
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.connectors.sqlserver.types.values import SqlType, source_type, value_type
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE
from tailrace.override import override

log = logging.getLogger(__name__)

_TABLES = """
SELECT s.name, t.name, t.object_id FROM {db}.sys.tables t JOIN {db}.sys.schemas s ON s.schema_id = t.schema_id
WHERE t.is_ms_shipped = 0
"""
_INSTANCES = """
SELECT s.name, t.name, c.capture_instance, c.object_id, c.source_object_id, c.start_lsn,
  (SELECT SUM(CONVERT(bigint, x.column_id) * (x.system_type_id * 101 + x.max_length * 31 + x.precision * 7 + x.scale))
    FROM {db}.sys.columns x WHERE x.object_id = c.object_id),
  (SELECT SUM(y.column_id * CONVERT(bigint, y.default_object_id + y.is_nullable))
    FROM {db}.sys.columns x JOIN {db}.sys.columns y ON y.object_id = c.source_object_id AND y.name = x.name
    WHERE x.object_id = c.object_id)
FROM {db}.cdc.change_tables c JOIN {db}.sys.tables t ON t.object_id = c.source_object_id
JOIN {db}.sys.schemas s ON s.schema_id = t.schema_id ORDER BY c.create_date, c.object_id
"""
_COLUMNS = """
SELECT c.name, COALESCE(CASE WHEN t.user_type_id = 255 THEN t.name END, b.name, t.name), c.max_length,
  c.precision, c.scale, c.is_nullable, c.is_identity,
  c.is_computed, d.definition, CONVERT(nvarchar(4000), e.value),
  CASE WHEN t.user_type_id > 255 AND b.name IS NOT NULL THEN t.name END, t.is_assembly_type, c.collation_name,
  c.encryption_type
FROM {db}.sys.columns c JOIN {db}.sys.types t ON t.user_type_id = c.user_type_id
LEFT JOIN {db}.sys.types b ON b.user_type_id = c.system_type_id AND b.system_type_id = c.system_type_id
LEFT JOIN {db}.sys.default_constraints d ON d.object_id = c.default_object_id
LEFT JOIN {db}.sys.extended_properties e
  ON e.class = 1 AND e.major_id = c.object_id AND e.minor_id = c.column_id AND e.name = N'MS_Description'
WHERE c.object_id = {id} ORDER BY c.column_id
"""
# Unique indexes over whole tables: the primary key first, then the clustered one, then by name, as sp_statistics has
# them, from which JdbcConnection.readTableUniqueIndices takes the first.
_KEYS = """
SELECT i.index_id, i.is_primary_key, c.name FROM {db}.sys.indexes i
JOIN {db}.sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id
JOIN {db}.sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE i.object_id = {id} AND i.is_unique = 1 AND i.has_filter = 0 AND k.is_included_column = 0
ORDER BY i.is_primary_key DESC, CASE i.type WHEN 1 THEN 0 ELSE 1 END, i.name, k.key_ordinal
"""
# The same of all tables with a capture instance. A constraint that is made again has another number. Nothing tells that
# of an index without one. A disabled index keeps no row out.
_ALL_KEYS = """
SELECT i.object_id, i.index_id, c.name, COALESCE(o.object_id, 0), i.name FROM {db}.sys.indexes i
JOIN {db}.sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id
JOIN {db}.sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
LEFT JOIN {db}.sys.key_constraints o ON o.parent_object_id = i.object_id AND o.unique_index_id = i.index_id
WHERE i.object_id IN (SELECT source_object_id FROM {db}.cdc.change_tables)
  AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0 AND k.is_included_column = 0
ORDER BY i.object_id, i.is_primary_key DESC, CASE i.type WHEN 1 THEN 0 ELSE 1 END, i.name, k.key_ordinal
"""
_SYSTEM = "__$"
_AZURE = 5
_COMMAND = "__$command_id"


class Catalog(tables.Catalog):
    """Implements Catalog."""

    def __init__(self, connection: Connection, config: Config) -> None:
        self.connection, self.config = connection, config
        self.filter = TableFilter.from_config(config)
        self.columns = ColumnRules(config)
        # A fault of SqlServerConnection.getTableSchemaFromTable: such a key does not distinguish rows.
        self.part_of_key = Fault.PARTS_OF_KEYS in config[COMPAT_FAULTS]
        self._has_computed = config[COMPUTED_COLUMNS] == "include"

    @override
    def databases(self) -> list[str]:
        """The names of the databases, as the server writes them. Raises SourceError for one that is not there."""
        return [self._database(given) for given in self.config[DATABASE_NAMES]]

    def _database(self, given: str) -> str:
        databases = self.connection.databases
        if given not in databases:
            rows = self.connection.rows(f"SELECT name FROM sys.databases WHERE name = {text(given)}")
            if len(rows) != 1:
                what = f"there is no database {given}, or the login may not see it"
                # Of Azure SQL Database a connection sees its own database alone.
                is_alone = self.connection.value("SELECT CONVERT(int, SERVERPROPERTY('EngineEdition'))") == _AZURE
                remedy = ONE_DATABASE if is_alone else "correct the name, or grant the login access"
                raise SourceError(what, where="database.names", remedy=remedy)
            databases[given] = str(rows[0][0])
        return databases[given]

    @override
    def tables(self) -> dict[TableId, int]:
        """All tables of the databases, with their numbers."""
        numbers = {}
        for database in self.databases():
            for schema, table, number in self.connection.rows(_TABLES.format(db=name(database))):
                id_ = TableId(database, schema, table, DATABASE_SCHEMA_TABLE)
                if not self.filter.naming.is_system(id_):
                    numbers[id_] = int(number)
        return numbers

    def all_instances(self, table: TableId) -> list[Instance]:
        """The instances of a table, also those that the configuration leaves out."""
        return [each for each in self._instances_of(table.database, is_filtered=False) if each.table == table]

    @override
    def instances(self, database: str) -> list[Instance]:
        """Clean-up moves starts, so that these tell nothing of the order of instances."""
        return self._instances_of(database, is_filtered=True)

    def _instances_of(self, database: str, *, is_filtered: bool) -> list[Instance]:
        includes = self.config[INTERNAL_CAPTURE_INSTANCE_INCLUDE_LIST]
        excludes = self.config[INTERNAL_CAPTURE_INSTANCE_EXCLUDE_LIST]
        by_table: dict[TableId, list[Instance]] = {}
        for schema, table, instance, number, source, start, types, rest in self.connection.rows(
            _INSTANCES.format(db=name(database))
        ):
            id_ = TableId(database, schema, table, DATABASE_SCHEMA_TABLE)
            is_in = not includes or any(pattern.fullmatch(instance) for pattern in includes)
            is_in = is_in and not any(pattern.fullmatch(instance) for pattern in excludes)
            if is_in or not is_filtered:
                changes = f"{name(database)}.cdc.{name(instance + '_CT')}"
                lsn = text_of(start)
                new = Instance(instance, id_, int(number), int(source), start=lsn, changes=changes)
                new = replace(new, types=int(types or 0), rest=int(rest or 0))
                of_table = by_table.setdefault(id_, [])
                of_table.append(replace(new, is_first=not of_table, has_begun=start is not None))
        for of_table in by_table.values():
            begun = [place for place, each in enumerate(of_table) if each.has_begun]
            for first, second in pairwise(begun):
                of_table[first] = replace(of_table[first], stop=of_table[second].start)
        return [each for of_table in by_table.values() for each in of_table]

    @override
    def described(self, table: TableId, number: int) -> Described:
        """A table with all of its columns."""
        database = name(table.database)
        rows = self.connection.rows(_COLUMNS.format(db=database, id=number))
        # The reference engine reads no comments.
        is_commented = Fault.UNREAD_COMMENTS not in self.config[COMPAT_FAULTS]
        columns = tuple(_column(row, is_commented=is_commented) for row in rows)
        return Described(table, columns, self._key(database, number))

    @override
    def at(self, instance: Instance) -> Described:
        """The table as a capture instance has it: its columns and types, the rest as the source table still has it."""
        own = self.described(instance.table, instance.number)
        source = {column.name: column for column in self.described(instance.table, instance.source).columns}
        columns = tuple(
            _retyped(source[column.name], column.type) if column.name in source else replace(column, required=False)
            for column in own.columns
            if not column.name.startswith(_SYSTEM)
        )
        names = {column.name for column in columns}
        given = instance.key
        key = self._key(name(instance.table.database), instance.source) if given is None else given.columns
        return Described(instance.table, columns, key).only(names, part_of_key=self.part_of_key)

    @override
    def keys(self, database: str) -> dict[int, TableKey]:
        keys_of: dict[int, dict[int, TableKey]] = {}
        for table, index, column, constraint, named in self.connection.rows(_ALL_KEYS.format(db=name(database))):
            mine = keys_of.setdefault(int(table), {})
            key = mine.get(int(index)) or TableKey((), str(constraint or named))
            mine[int(index)] = replace(key, columns=(*key.columns, str(column)))
        return {table: next(iter(mine.values())) for table, mine in keys_of.items()}

    def has_commands(self, instance: Instance) -> bool:
        """Whether the change table numbers the commands of a transaction; those of old servers do not."""
        columns = self.described(instance.table, instance.number).columns
        return any(column.name == _COMMAND for column in columns)

    @override
    def info(self, column: SqlColumn) -> ColumnInfo:
        return ColumnInfo(
            name=column.name,
            type=source_type(column.type, is_identity=column.is_identity),
            value=value_type(column.type, self.config),
            required=column.required,
            default=parse_default(
                column.default, column.type, is_cut=Fault.DEFAULTS_CUT_AT_PLACES in self.config[COMPAT_FAULTS]
            ),
            comment=column.comment,
        )

    @override
    def capture(self, described: Described) -> CapturedTable | None:
        """Of computed columns change tables have null alone."""
        computed = () if self._has_computed else tuple(each.name for each in described.columns if each.is_computed)
        if computed:
            _tell(str(described.id), computed)
            described = described.only([each.name for each in described.columns if not each.is_computed])
        return super().capture(described)

    @override
    def guard(self, captured: CapturedTable, number: int) -> None:
        """Masks, and security policies that hide rows."""
        guard(self.connection, captured.schema.id, number, {column.name for column in captured.schema.columns})

    def _key(self, database: str, number: int) -> tuple[str, ...]:
        """The columns of the primary key, or of the first unique index, as the reference engine takes it."""
        return next(iter(self._unique(database, number)), ())

    @override
    def unique(self, table: TableId, number: int) -> list[tuple[str, ...]]:
        return self._unique(name(table.database), number)

    def _unique(self, database: str, number: int) -> list[tuple[str, ...]]:
        indexes: dict[int, list[str]] = {}
        for index, _, column in self.connection.rows(_KEYS.format(db=database, id=number)):
            indexes.setdefault(index, []).append(column)
        return [tuple(columns) for columns in indexes.values()]


@cache
def _tell(table: str, columns: tuple[str, ...]) -> None:
    """Say once in a process which columns are left out."""
    log.warning(
        "%s: the columns %s are computed and left out, as the log has no values of them", table, ", ".join(columns)
    )


def _retyped(column: SqlColumn, kind: SqlType) -> SqlColumn:
    """A column of a source table with the type that a change table has, which has no alias types and no ROWVERSION."""
    if column.type.name == "timestamp":
        return column
    return replace(column, type=replace(kind, alias=column.type.alias))


def _column(row: tuple[object, ...], *, is_commented: bool) -> SqlColumn:
    given, kind, size, precision, scale, nullable, identity, computed, default, comment, *rest = row
    alias, clr, collation, hidden = rest
    type_ = SqlType(
        name=str(kind),
        bytes=int(str(size)),
        precision=int(str(precision)),
        scale=int(str(scale)),
        alias=None if alias is None else str(alias),
        is_clr=bool(clr),
        collation=None if collation is None else str(collation),
        is_encrypted=hidden is not None,
    )
    return SqlColumn(
        name=str(given),
        type=type_,
        required=not nullable,
        is_identity=bool(identity),
        is_computed=bool(computed),
        default=None if default is None else str(default),
        comment=str(comment) if is_commented and comment is not None else None,
    )
