"""Tables of SQL Server and Db2 as a replica has to hold them: the server's text of each value, or its driver's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE
from tailrace.override import override
from tests.golden.databases.db2 import GoldenDb2
from tests.golden.databases.sqlserver import GoldenSqlServer
from tests.replica import postgres_types
from tests.replica.content import ColumnTable, Representation, SourceTable
from tests.replica.lists import Lists
from tests.replica.postgres_types import DEFAULTS, Modes, PostgresType

_TABLES = """
SELECT s.name, t.name, t.is_tracked_by_cdc FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id
WHERE t.is_ms_shipped = 0 AND s.name <> 'cdc' AND t.name <> 'systranschemas' ORDER BY s.name, t.name
"""
_COLUMNS = """
SELECT c.name, t.name, c.is_computed FROM sys.columns c JOIN sys.types t ON t.user_type_id = c.user_type_id
WHERE c.object_id = OBJECT_ID('{}') ORDER BY c.column_id
"""
_CAPTURED = "SELECT SOURCE_OWNER, SOURCE_TABLE FROM ASNCDC.IBMSNAP_REGISTER WHERE SOURCE_OWNER <> ''"
_DB2_COLUMNS = """
SELECT TABSCHEMA, TABNAME, COLNAME, TYPENAME, CODEPAGE FROM SYSCAT.COLUMNS
WHERE TABSCHEMA NOT LIKE 'SYS%' AND TABSCHEMA NOT IN ('ASNCDC', 'ASNCDCLOG', 'DB2CAT')
ORDER BY TABSCHEMA, TABNAME, COLNO
"""
# The SQL that prints a value of SQL Server exactly, where the usual one does not.
_EXACT = {
    **dict.fromkeys(("real", "float"), "CONVERT(nvarchar(100), {}, 3)"),
    **dict.fromkeys(("money", "smallmoney"), "CONVERT(nvarchar(100), CONVERT(decimal(19, 4), {}))"),
    **dict.fromkeys(
        ("date", "time", "datetime", "smalldatetime", "datetime2", "datetimeoffset"), "CONVERT(nvarchar(100), {}, 121)"
    ),
    **dict.fromkeys(("binary", "varbinary", "image"), "CONVERT(varchar(max), {}, 1)"),
    **dict.fromkeys(("timestamp", "rowversion"), "CONVERT(varchar(100), CONVERT(varbinary(8), {}), 1)"),
}
# The type of PostgreSQL whose text and representation are the same.
_ALIKE = {
    "bit": "bool",
    "boolean": "bool",
    "real": "float4",
    **dict.fromkeys(("float", "double"), "float8"),
    **dict.fromkeys(("decimal", "numeric", "money", "smallmoney", "decfloat"), "numeric"),
    **dict.fromkeys(("datetime", "smalldatetime", "datetime2", "datetimeoffset", "timestmp"), "timestamp"),
    **dict.fromkeys(("date", "time"), ""),
    **dict.fromkeys(("binary", "varbinary", "image", "timestamp", "rowversion", "blob", "bit data"), "bytea"),
}


@dataclass
class ChangeTable(ColumnTable):
    """A table whose columns are names of types, in lower case."""

    modes: Modes = DEFAULTS

    @override
    def represent(self, name: str, arrow: pa.DataType | None) -> Representation:
        type_ = self.columns[name]
        return postgres_types.represent(PostgresType(_ALIKE.get(type_, "text") or type_), arrow, self.modes)


def of_sqlserver(
    server: GoldenSqlServer, properties: Mapping[str, str], ignored: frozenset[str]
) -> Iterator[SourceTable]:
    """The captured tables of the databases. Raises ValueError for properties that change values."""
    lists, modes = Lists(properties), Modes.of(properties)
    for database in server.databases:
        with closing(server.server.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute(_TABLES)
            for schema, table, is_captured in cursor.fetchall():
                if lists.table(schema, table):
                    columns, computed = _columns(cursor, lists, schema, table)
                    id_ = TableId(database, schema, table, DATABASE_SCHEMA_TABLE)
                    rows = _rows(cursor, f"[{schema}].[{table}]", columns)
                    yield ChangeTable(
                        id_, columns, rows, bool(is_captured), generated=computed, ignored=ignored, modes=modes
                    )


def _columns(cursor: Any, lists: Lists, schema: str, table: str) -> tuple[dict[str, str], frozenset[str]]:
    """The columns of a table with their types, and those that are computed."""
    cursor.execute(_COLUMNS.format(f"[{schema}].[{table}]".replace("'", "''")))
    found = [(name, type_.lower(), bool(is_computed)) for name, type_, is_computed in cursor.fetchall()]
    kept = [each for each in found if lists.column(schema, table, each[0]) and each[1] != "sql_variant"]
    return {name: type_ for name, type_, _ in kept}, frozenset(name for name, _, is_computed in kept if is_computed)


def _rows(cursor: Any, source: str, columns: Mapping[str, str]) -> Sequence[Sequence[str | None]]:
    printed = [_EXACT.get(type_, "CONVERT(nvarchar(max), {})").format(f"[{name}]") for name, type_ in columns.items()]
    cursor.execute(f"SELECT {', '.join(printed)} FROM {source}")
    return [
        [_normal(text, type_) for text, type_ in zip(row, columns.values(), strict=True)] for row in cursor.fetchall()
    ]


def _normal(text: str | None, type_: str) -> str | None:
    """SQL Server's text as PostgreSQL prints the value."""
    if text is None:
        return None
    if type_ == "uniqueidentifier":
        return text.upper()
    if type_ == "bit":
        return "t" if text == "1" else "f"
    return "\\x" + text.removeprefix("0x").lower() if _ALIKE.get(type_) == "bytea" else text


def of_db2(server: GoldenDb2, properties: Mapping[str, str], ignored: frozenset[str]) -> Iterator[SourceTable]:
    """The captured tables of the database, by the values that IBM's driver gives."""
    lists, modes = Lists(properties), Modes.of(properties)
    captured = {tuple(row) for row in server.server.execute(_CAPTURED)}
    tables: dict[tuple[str, str], dict[str, str]] = {}
    for schema, table, column, type_, page in server.server.execute(_DB2_COLUMNS):
        if lists.table(schema, table) and lists.column(schema, table, column):
            is_bits = page == 0 and re.fullmatch("CHARACTER|VARCHAR|LONG VARCHAR", type_.strip())
            # `timestamp` is bytes in SQL Server.
            name = "bit data" if is_bits else type_.strip().lower().replace("timestamp", "timestmp")
            tables.setdefault((schema, table), {})[column] = name
    for (schema, table), columns in tables.items():
        listed = ", ".join(f'"{name}"' for name in columns)
        found = server.server.execute(f'SELECT {listed} FROM "{schema}"."{table}"')
        types = [*columns.values()]
        rows = [[_text(value, type_) for value, type_ in zip(row, types, strict=True)] for row in found]
        yield ChangeTable(
            TableId("", schema, table), columns, rows, (schema, table) in captured, ignored=ignored, modes=modes
        )


def _text(value: Any, type_: str) -> str | None:
    """A value of the driver as PostgreSQL prints it."""
    if value is None:
        return None
    if type_ == "boolean":
        return "t" if value else "f"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return value.isoformat() if isinstance(value, date | datetime | time) else str(value)
