"""PostgreSQL's errors as SQL Server's."""

from __future__ import annotations

import re

from ..backend import Backend, EngineError
from ..catalogue.literals import quote
from ..tsql.errors import SqlError, error

# What has one number of SQL Server, whatever the statement.
_NUMBERS = {
    "22012": 8134,
    "55P03": 1222,
    "40P01": 1205,
    "40001": 3960,
    "21000": 512,
    "22003": 8115,
    "22001": 8152,
    "2201W": 1060,
    "57014": 3617,
    "54001": 8631,
}
_TYPES = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "numeric": "numeric",
    "real": "real",
    "double precision": "float",
}


def translate(failure: EngineError, backend: Backend, spid: int) -> SqlError:
    """The error that SQL Server would report; `backend` looks up names and is outside of the failed transaction."""
    if failure.state == "MS000":
        number, severity = (int(part) for part in failure.detail.split(","))
        return SqlError(number, severity, failure.text)
    if failure.state in ("23505", "23502", "23503", "23514"):
        return _constraint(failure, backend)
    if failure.state == "42P01":
        return _dropped(failure, backend)
    number = _NUMBERS.get(failure.state)
    if number is None:
        return SqlError(50001, 16, f"The SQL Server test double failed: {failure}")
    kind = next((name for word, name in _TYPES.items() if word in failure.text), "numeric")
    return error(number, spid if number == 1205 else kind)


def _dropped(failure: EngineError, backend: Backend) -> SqlError:
    """An object that another session has dropped since this statement's names were looked up."""
    object_id = int((re.search(r"\bt(\d+)", failure.text) or ["", "0"])[1])
    rows = backend.run(
        "SELECT s.name, o.name FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id)"
        f" WHERE o.object_id = {object_id}"
    ).rows
    return error(208, ".".join(map(str, rows[0])) if rows else str(object_id))


def _constraint(failure: EngineError, backend: Backend) -> SqlError:
    object_id = int(re.sub(r"\D", "", failure.table) or 0)
    where = (
        "FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id)"
    )
    rows = backend.run(f"SELECT d.name, s.name, o.name {where} WHERE o.object_id = {object_id}").rows
    database, schema, table = rows[0] if rows else ("tempdb", "dbo", failure.table)
    if failure.state == "23505":
        return _duplicate(failure, backend, object_id, f"{schema}.{table}")
    if failure.state == "23502":
        column = backend.scalar(
            f"SELECT name FROM cat.columns WHERE object_id = {object_id} AND column_id ="
            f" {re.sub(r'[^0-9]', '', failure.column) or 0}"
        )
        return error(515, column, database, schema, table)
    kind, _, rest = failure.constraint.partition("_")
    if failure.state == "23514" and kind in ("length", "range"):
        column = backend.scalar(
            f"SELECT name FROM cat.columns WHERE object_id = {object_id} AND column_id = {rest.rpartition('_')[2]}"
        )
        if kind == "range":
            return error(220)
        return error(2628, database, schema, table, column)
    name = (
        backend.scalar(f"SELECT name FROM cat.objects WHERE object_id = {re.sub(r'[^0-9]', '', rest) or 0}")
        or failure.constraint
    )
    word = "FOREIGN KEY" if failure.state == "23503" else "CHECK"
    if failure.state == "23503" and "still referenced" in failure.detail:
        return error("547.reference", name, database, schema, table)
    return error(547, word, name, database, schema, table)


def _duplicate(failure: EngineError, backend: Backend, object_id: int, table: str) -> SqlError:
    """A duplicate key; the index's name ends with its number."""
    number = failure.constraint.rpartition("_")[2]
    rows = (
        backend.run(
            f"SELECT name, is_primary_key, is_unique_constraint FROM cat.indexes WHERE object_id = {object_id} AND"
            f" index_id = {quote(number)}::int"
        ).rows
        if number.isdigit()
        else []
    )
    name, primary, constraint = rows[0] if rows else (failure.constraint, "0", "0")
    found = re.search(r"=\((.*)\) ", failure.detail)
    value = f" The duplicate key value is ({found[1]})." if found else ""
    if primary == "1" or constraint == "1":
        kind = "PRIMARY KEY" if primary == "1" else "UNIQUE KEY"
        return error(2627, kind, name, table, value)
    return error(2601, table, name, value)
