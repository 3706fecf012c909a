"""The procedures by which ODBC and JDBC drivers ask for metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..catalogue.literals import quote
from ..datatypes import make
from ..translate.query import OutColumn
from .outcome import Compiled, delivered

if TYPE_CHECKING:
    from .executor import Executor
    from .procedures import Arguments


def view_query(executor: Executor, view: str, conditions: list[str], order: str) -> Compiled:
    """A query over one of the metadata views, in the current database."""
    found = executor.session.server.views["information_schema", view]
    listed = ", ".join(f'v."{name}" AS c{number}' for number, (name, _, _) in enumerate(found.columns, 1))
    database = executor.session.current_database().database_id
    where = " AND ".join([f"v._db = {database}", *conditions])
    columns = [OutColumn(name, kind, nullable) for name, kind, nullable in found.columns]
    return Compiled(
        delivered(f"SELECT {listed} FROM {found.physical} v WHERE {where} ORDER BY {order}", columns), columns
    )


def _like(column: str, pattern: str | None) -> list[str]:
    if pattern is None or pattern == "%":
        return []
    return [f'lower(v."{column}") ~ ms.like_regex(lower({quote(pattern)}), {quote(chr(92))})']


def _equal(column: str, value: str | None) -> list[str]:
    return [] if value is None else [f'lower(v."{column}") = lower({quote(value)})']


def _check_qualifier(executor: Executor, arguments: Arguments, name: str) -> list[str]:
    """These procedures answer for the current database only."""
    wanted = arguments.text(name)
    return [] if wanted is None or wanted.lower() == executor.session.database_name.lower() else ["false"]


def tables(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_tables."""
    conditions = _like("TABLE_NAME", arguments.text("table_name")) + _like("TABLE_OWNER", arguments.text("table_owner"))
    conditions += _check_qualifier(executor, arguments, "table_qualifier")
    wanted = arguments.text("table_type")
    if wanted:
        conditions.append(f"""position(quote_literal(v."TABLE_TYPE") IN {quote(wanted.upper())}) > 0""")
    yield view_query(executor, "sp_tables", conditions, '"TABLE_TYPE", "TABLE_OWNER", "TABLE_NAME"')


def columns(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_columns and sp_columns_100."""
    conditions = _like("TABLE_NAME", arguments.text("table_name")) + _like("TABLE_OWNER", arguments.text("table_owner"))
    conditions += _like("COLUMN_NAME", arguments.text("column_name")) + _check_qualifier(
        executor, arguments, "table_qualifier"
    )
    yield view_query(executor, "sp_columns", conditions, '"TABLE_OWNER", "TABLE_NAME", "ORDINAL_POSITION"')


def primary_keys(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_pkeys."""
    conditions = _equal("TABLE_NAME", arguments.text("table_name")) + _equal(
        "TABLE_OWNER", arguments.text("table_owner")
    )
    conditions += _check_qualifier(executor, arguments, "table_qualifier")
    yield view_query(executor, "sp_pkeys", conditions, '"TABLE_OWNER", "TABLE_NAME", "KEY_SEQ"')


def statistics(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_statistics and sp_statistics_100."""
    conditions = _equal("TABLE_NAME", arguments.text("table_name")) + _equal(
        "TABLE_OWNER", arguments.text("table_owner")
    )
    conditions += _like("INDEX_NAME", arguments.text("index_name")) + _check_qualifier(
        executor, arguments, "table_qualifier"
    )
    if arguments.text("is_unique", "N") == "Y":
        conditions.append('coalesce(v."NON_UNIQUE", 0) = 0')
    yield view_query(
        executor, "sp_statistics", conditions, '"NON_UNIQUE" NULLS FIRST, "TYPE", "INDEX_NAME", "SEQ_IN_INDEX"'
    )


_DATA_TYPES = (
    ("TYPE_NAME", "nvarchar", 128),
    ("DATA_TYPE", "smallint", 0),
    ("PRECISION", "int", 0),
    ("LITERAL_PREFIX", "varchar", 32),
    ("LITERAL_SUFFIX", "varchar", 32),
    ("CREATE_PARAMS", "varchar", 32),
    ("NULLABLE", "smallint", 0),
    ("CASE_SENSITIVE", "smallint", 0),
    ("SEARCHABLE", "smallint", 0),
    ("UNSIGNED_ATTRIBUTE", "smallint", 0),
    ("MONEY", "smallint", 0),
    ("AUTO_INCREMENT", "smallint", 0),
    ("LOCAL_TYPE_NAME", "nvarchar", 128),
    ("MINIMUM_SCALE", "smallint", 0),
    ("MAXIMUM_SCALE", "smallint", 0),
    ("SQL_DATA_TYPE", "smallint", 0),
    ("SQL_DATETIME_SUB", "smallint", 0),
    ("NUM_PREC_RADIX", "int", 0),
    ("INTERVAL_PRECISION", "smallint", 0),
    ("USERTYPE", "smallint", 0),
)


def data_types(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_datatype_info: drivers accept an empty answer."""
    listed = [OutColumn(name, make(kind, size) if size else make(kind)) for name, kind, size in _DATA_TYPES]
    values = ", ".join(f"NULL::{column.kind.storage} AS c{number}" for number, column in enumerate(listed, 1))
    yield Compiled(delivered(f"SELECT {values} WHERE false", listed), listed)


def databases(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_databases."""
    listed = [
        OutColumn("DATABASE_NAME", make("nvarchar", 128)),
        OutColumn("DATABASE_SIZE", make("int")),
        OutColumn("REMARKS", make("varchar", 254)),
    ]
    yield Compiled(
        delivered("SELECT name AS c1, 8192 AS c2, NULL::text AS c3 FROM cat.databases ORDER BY name", listed), listed
    )


_COLUMN_ARGUMENTS = (
    "table_name",
    "table_owner",
    "table_qualifier",
    "column_name",
    "namescope",
    "odbcver",
    "fusepattern",
)
_STATISTICS_ARGUMENTS = ("table_name", "table_owner", "table_qualifier", "index_name", "is_unique", "accuracy")

PROCEDURES = {
    "sp_tables": (("table_name", "table_owner", "table_qualifier", "table_type", "fusepattern"), tables),
    "sp_columns": (("table_name", "table_owner", "table_qualifier", "column_name", "odbcver"), columns),
    "sp_columns_100": (_COLUMN_ARGUMENTS, columns),
    "sp_columns_90": (_COLUMN_ARGUMENTS, columns),
    "sp_pkeys": (("table_name", "table_owner", "table_qualifier"), primary_keys),
    "sp_statistics": (_STATISTICS_ARGUMENTS, statistics),
    "sp_statistics_100": (_STATISTICS_ARGUMENTS, statistics),
    "sp_datatype_info": (("data_type", "odbcver"), data_types),
    "sp_datatype_info_90": (("data_type", "odbcver"), data_types),
    "sp_datatype_info_100": (("data_type", "odbcver"), data_types),
    "sp_databases": ((), databases),
}
