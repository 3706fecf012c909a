"""Reads Db2's catalog: tables, columns, keys, and registrations for capture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import TableFilter
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.change_tables import tables
from tailrace.connectors.change_tables.tables import Instance, TableKey
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.columns import ColumnRules
from tailrace.connectors.db2.defaults import parse_default
from tailrace.connectors.db2.options import CDC_CHANGE_TABLES_SCHEMA, DB2_PLATFORM, ZOS
from tailrace.connectors.db2.statements import control_schema, folded, name, qualified, text
from tailrace.connectors.db2.types.values import Db2Type, source_type, value_type
from tailrace.connectors.sql_tables.tables import Connection, Described, SqlColumn
from tailrace.model.table import TableId
from tailrace.model.table_id import SCHEMA_TABLE
from tailrace.override import override

# A table's number is made of those of its table space and of its place there (z/OS: of the database).
_TABLES = """
SELECT t.TABSCHEMA, t.TABNAME, CAST(t.TBSPACEID AS BIGINT) * 65536 + t.TABLEID, t.COLCOUNT
FROM SYSCAT.TABLES t WHERE t.TYPE = 'T'
"""
_TABLES_ZOS = """
SELECT t.CREATOR, t.NAME, CAST(t.DBID AS BIGINT) * 65536 + t.OBID, t.COLCOUNT
FROM SYSIBM.SYSTABLES t WHERE t.TYPE = 'T' FOR READ ONLY WITH UR
"""
_COLUMNS = """
SELECT c.COLNAME, c.TYPENAME, c.LENGTH, c.SCALE, c.CODEPAGE, c.NULLS, c."IDENTITY", c.GENERATED, c."DEFAULT"
FROM SYSCAT.COLUMNS c WHERE c.TABSCHEMA = {schema} AND c.TABNAME = {table} ORDER BY c.COLNO
"""
_COLUMNS_ZOS = """
SELECT c.NAME, c.COLTYPE, c.LENGTH, c.SCALE, CASE c.FOREIGNKEY WHEN 'B' THEN 0 ELSE 1208 END, c.NULLS,
  CASE WHEN c."DEFAULT" IN ('I', 'J') THEN 'Y' ELSE 'N' END, CASE WHEN c."DEFAULT" IN ('A', 'I') THEN 'A' ELSE '' END,
  c.DEFAULTVALUE
FROM SYSIBM.SYSCOLUMNS c WHERE c.TBCREATOR = {schema} AND c.TBNAME = {table} ORDER BY c.COLNO
"""
# Unique indexes: the primary key's first, then by name.
_KEYS = """
SELECT i.INDSCHEMA, i.INDNAME, i.UNIQUERULE, k.COLNAME FROM SYSCAT.INDEXES i
JOIN SYSCAT.INDEXCOLUSE k ON k.INDSCHEMA = i.INDSCHEMA AND k.INDNAME = i.INDNAME
WHERE i.TABSCHEMA = {schema} AND i.TABNAME = {table} AND i.UNIQUERULE IN ('P', 'U')
ORDER BY CASE i.UNIQUERULE WHEN 'P' THEN 0 ELSE 1 END, i.INDNAME, k.COLSEQ
"""
_KEYS_ZOS = """
SELECT i.CREATOR, i.NAME, i.UNIQUERULE, k.COLNAME FROM SYSIBM.SYSINDEXES i
JOIN SYSIBM.SYSKEYS k ON k.IXCREATOR = i.CREATOR AND k.IXNAME = i.NAME
WHERE i.TBCREATOR = {schema} AND i.TBNAME = {table} AND i.UNIQUERULE IN ('P', 'U')
ORDER BY CASE i.UNIQUERULE WHEN 'P' THEN 0 ELSE 1 END, i.NAME, k.COLSEQ
"""
# The same of all tables of some schemas, with the time when an index was made.
_ALL_KEYS = """
SELECT i.TABSCHEMA, i.TABNAME, i.INDSCHEMA, i.INDNAME, i.UNIQUERULE, VARCHAR(i.CREATE_TIME), k.COLNAME
FROM SYSCAT.INDEXES i JOIN SYSCAT.INDEXCOLUSE k ON k.INDSCHEMA = i.INDSCHEMA AND k.INDNAME = i.INDNAME
WHERE i.TABSCHEMA IN ({schemas}) AND i.UNIQUERULE IN ('P', 'U')
ORDER BY i.TABSCHEMA, i.TABNAME, CASE i.UNIQUERULE WHEN 'P' THEN 0 ELSE 1 END, i.INDNAME, k.COLSEQ
"""
_ALL_KEYS_ZOS = """
SELECT i.TBCREATOR, i.TBNAME, i.CREATOR, i.NAME, i.UNIQUERULE, VARCHAR(i.CREATEDTS), k.COLNAME
FROM SYSIBM.SYSINDEXES i JOIN SYSIBM.SYSKEYS k ON k.IXCREATOR = i.CREATOR AND k.IXNAME = i.NAME
WHERE i.TBCREATOR IN ({schemas}) AND i.UNIQUERULE IN ('P', 'U')
ORDER BY i.TBCREATOR, i.TBNAME, CASE i.UNIQUERULE WHEN 'P' THEN 0 ELSE 1 END, i.NAME, k.COLSEQ
"""
# By the statistics of RUNSTATS: rows, -1 without them, and bytes of a row.
_SIZE = "SELECT CARD, AVGROWSIZE FROM SYSCAT.TABLES WHERE TABSCHEMA = {schema} AND TABNAME = {table}"
_SIZE_ZOS = "SELECT CARDF, AVGROWLEN FROM SYSIBM.SYSTABLES WHERE CREATOR = {schema} AND NAME = {table} AND TYPE = 'T'"
_REGISTERED = """
SELECT r.SOURCE_OWNER, r.SOURCE_TABLE, r.CD_OWNER, r.CD_TABLE, r.STATE
FROM {control}.IBMSNAP_REGISTER r WHERE r.SOURCE_OWNER <> '' AND r.CD_TABLE IS NOT NULL
"""
_SINGLE = """
SELECT SOURCE_OWNER, SOURCE_TABLE FROM {control}.IBMSNAP_REGISTER
WHERE SOURCE_OWNER <> '' AND COALESCE(CHG_UPD_TO_DEL_INS, 'N') <> 'Y'
"""
_SYSTEM = "IBMSNAP_"
# Control tables may be in any schema.
_CONTROL_TABLES = ("IBMSNAP_", "IBMQREP_")


class Catalog(tables.Catalog):
    """Implements Catalog. Results are cached: a catalog serves one request to the server."""

    def __init__(self, connection: Connection, config: Config) -> None:
        self.connection, self.config = connection, config
        self.filter = TableFilter.from_config(config)
        self.columns = ColumnRules(config)
        self.database = config[DATABASE_DBNAME]
        self._is_zos = config[DB2_PLATFORM] == ZOS

    @override
    def databases(self) -> list[str]:
        """The one that the connection is to, as it was given."""
        return [self.database]

    @override
    def tables(self) -> dict[TableId, int]:
        """Control tables and change tables are none, whatever schema they are in."""
        return {
            id_: number
            for id_, (number, _) in self._tables.items()
            if not self.filter.naming.is_system(id_)
            and not id_.table.upper().startswith(_CONTROL_TABLES)
            and id_ not in self._change_tables
        }

    @cached_property
    def _change_tables(self) -> set[TableId]:
        return {self._id(owner, table) for _, _, owner, table, _ in self.registered()}

    @cached_property
    def _tables(self) -> dict[TableId, tuple[int, int]]:
        """All tables, with number and number of columns."""
        rows = self.connection.rows(_TABLES_ZOS if self._is_zos else _TABLES)
        return {self._id(schema, table): (int(number), int(columns)) for schema, table, number, columns in rows}

    def _id(self, schema: str, table: str) -> TableId:
        return TableId(self.database, schema.rstrip(), table, SCHEMA_TABLE)

    @override
    def instances(self, database: str) -> list[Instance]:
        """The registrations. Nothing tells since when a change table has changes."""
        return self._instances

    @cached_property
    def _instances(self) -> list[Instance]:
        instances = []
        for owner, table, cd_owner, cd_table, _ in self.registered():
            source, changes = self._id(owner, table), self._id(cd_owner, cd_table)
            if changes in self._tables:
                number, columns = self._tables[changes]
                own = self._tables.get(source, (0, 0))[0]
                name = qualified(changes.schema, changes.table)
                instances.append(Instance(cd_table, source, number, own, start="", changes=name, version=columns))
        return sorted(instances, key=lambda each: each.name)

    def registered(self) -> list[tuple[Any, ...]]:
        """The rows of IBMSNAP_REGISTER: source schema and table, change table's schema and name, state."""
        rows = self.connection.rows(_REGISTERED.format(control=name(control_schema(self.config))))
        schema = folded(self.config[CDC_CHANGE_TABLES_SCHEMA])
        return [(owner, table, cd_owner or schema, cd_table, state) for owner, table, cd_owner, cd_table, state in rows]

    @cached_property
    def single(self) -> set[TableId]:
        """The tables whose updates are captured without their old rows."""
        rows = self.connection.rows(_SINGLE.format(control=name(control_schema(self.config))))
        return {self._id(owner, table) for owner, table in rows}

    @override
    def is_unique_at_commit(self, table: TableId) -> bool:
        """Whether keys are verified when a statement ends.

        Which row has a key then is not known without old rows, which updates may lack on z/OS.
        """
        return not (self._is_zos and table in self.single)

    @override
    def described(self, table: TableId, number: int) -> Described:
        return Described(table, self._columns(table.schema, table.table), self.key(table))

    @override
    def at(self, instance: Instance) -> Described:
        """Columns are found by their names, whatever their order is.

        Without a key nothing finds the rows whose large objects have changed, so these columns are left out.
        """
        own = self._captured(instance)
        source = {each.name: each for each in self._columns(instance.table.schema, instance.table.table)}
        # A change table may have old images, too, whose columns the source table does not have.
        columns = tuple(source[each.name] for each in own if each.name in source) if source else own
        key = self.key(instance.table, self._streamed) if instance.key is None else instance.key.columns
        if not set(key) <= {each.name for each in columns}:
            key = ()
        if not key:
            left_out = self._indicated(own, source)
            columns = tuple(each for each in columns if each.name not in left_out)
        return Described(instance.table, columns, key)

    def indicated(self, instance: Instance) -> set[str]:
        """The large objects of which a change table has an indicator, and no values."""
        source = {each.name: each for each in self._columns(instance.table.schema, instance.table.table)}
        return self._indicated(self._captured(instance), source)

    def _indicated(self, own: Iterable[SqlColumn], source: Mapping[str, SqlColumn]) -> set[str]:
        return {
            each.name
            for each in own
            if each.name in source and source[each.name].type.is_large and not each.type.is_large
        }

    def _captured(self, instance: Instance) -> tuple[SqlColumn, ...]:
        """The columns of a change table that are no columns of its own."""
        schema = next(each.schema for each, (number, _) in self._tables.items() if number == instance.number)
        return tuple(each for each in self._columns(schema, instance.name) if not each.name.startswith(_SYSTEM))

    @override
    def info(self, column: SqlColumn) -> ColumnInfo:
        return ColumnInfo(
            name=column.name,
            type=source_type(column.type),
            value=value_type(column.type, self.config),
            required=column.required,
            default=parse_default(
                column.default, column.type, is_plain=Fault.DOUBLED_QUOTES in self.config[COMPAT_FAULTS]
            ),
        )

    def _columns(self, schema: str, table: str) -> tuple[SqlColumn, ...]:
        query = (_COLUMNS_ZOS if self._is_zos else _COLUMNS).format(schema=text(schema), table=text(table))
        return tuple(_column(row) for row in self.connection.rows(query))

    @property
    def _streamed(self) -> str:
        """The rules of indexes that may be the key of a change table. The fault: the primary key's alone."""
        return "P" if Fault.KEYS_OF_PRIMARY_ALONE in self.config[COMPAT_FAULTS] else "PU"

    def key(self, table: TableId, rules: str = "PU") -> tuple[str, ...]:
        """The columns of the primary key, or of the first unique index, as the reference engine takes it."""
        return next(iter(self._unique(table, rules)), ())

    @override
    def keys(self, database: str) -> dict[int, TableKey]:
        numbers = {each.table: each.source for each in self._instances}
        listed = ", ".join(map(text, sorted({table.schema for table in numbers})))
        if not listed:
            return {}
        keys_of: dict[TableId, dict[str, TableKey]] = {}
        query = (_ALL_KEYS_ZOS if self._is_zos else _ALL_KEYS).format(schemas=listed)
        for schema, table, owner, index, rule, made, column in self.connection.rows(query):
            if rule in self._streamed:
                mine = keys_of.setdefault(self._id(schema, table), {})
                key = mine.get(f"{owner} {index}") or TableKey((), str(made))
                mine[f"{owner} {index}"] = replace(key, columns=(*key.columns, str(column)))
        return {numbers[table]: next(iter(mine.values())) for table, mine in keys_of.items() if table in numbers}

    @override
    def unique(self, table: TableId, number: int) -> list[tuple[str, ...]]:
        return self._unique(table, "PU")

    def _unique(self, table: TableId, rules: str) -> list[tuple[str, ...]]:
        query = (_KEYS_ZOS if self._is_zos else _KEYS).format(schema=text(table.schema), table=text(table.table))
        indexes: dict[tuple[str, str], list[str]] = {}
        for schema, index, rule, column in self.connection.rows(query):
            if rule in rules:
                indexes.setdefault((schema, index), []).append(column)
        return [tuple(columns) for columns in indexes.values()]


def statistics(connection: Connection, table: TableId, *, is_zos: bool) -> tuple[int, int]:
    """About the rows of a table and the bytes of one, -1 where they are not known; zeros for a table that is gone."""
    query = (_SIZE_ZOS if is_zos else _SIZE).format(schema=text(table.schema), table=text(table.table))
    rows = connection.rows(query)
    return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)


def _column(row: tuple[Any, ...]) -> SqlColumn:
    name, kind, length, scale, code_page, nulls, identity, generated, default = row
    is_identity = identity == "Y"
    return SqlColumn(
        name=name,
        type=Db2Type.of(kind.strip(), int(length), int(scale), int(code_page or 0)),
        required=nulls == "N",
        is_identity=is_identity,
        is_computed=bool((generated or "").strip()) and not is_identity,
        default=default,
    )
