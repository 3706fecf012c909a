"""Translates the functions of change data capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from ..catalogue.literals import quote
from ..catalogue.model import Database, Table
from ..datatypes import BIT, INT, LSN, SYSNAME, make
from ..tsql.errors import error, invalid_object
from .bound import Bound
from .convert import convert

if TYPE_CHECKING:
    from .binder import Binder

_TIME = make("datetime")


def cdc_table(binder: Binder, database: Database, name: str) -> Table:
    """A table of the schema cdc, which a database has where capture is on."""
    table = binder.context.reader.object(database.database_id, "cdc", name)
    if table is None:
        raise invalid_object(f"cdc.{name}")
    return table


def _mapping(binder: Binder, database: Database) -> Table:
    return cdc_table(binder, database, "lsn_time_mapping")


def _lsn(binder: Binder, node: exp.Expression) -> Bound:
    return convert(binder.value(node), LSN)


def _max_lsn(binder: Binder, arguments: list[exp.Expression], database: Database) -> Bound:
    return Bound(f"(SELECT max(c1) FROM {_mapping(binder, database).physical})", LSN)


def _min_lsn(binder: Binder, arguments: list[exp.Expression], database: Database) -> Bound:
    """The start of a capture instance; ten zero bytes for one that does not exist."""
    name = convert(binder.value(arguments[0]), SYSNAME)
    table = cdc_table(binder, database, "change_tables")
    instance, start = (table.column(column).physical for column in ("capture_instance", "start_lsn"))  # type: ignore[union-attr]
    found = f"SELECT {start} FROM {table.physical} WHERE lower({instance}) = lower({name.sql})"
    return Bound(f"coalesce(({found}), '\\x00000000000000000000'::bytea)", LSN)


def _step(step: int) -> Callable[[Binder, list[exp.Expression], Database], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression], database: Database) -> Bound:
        return Bound(f"ms.lsn_add({_lsn(binder, arguments[0]).sql}, {step})", LSN)

    return bind


def _lsn_to_time(binder: Binder, arguments: list[exp.Expression], database: Database) -> Bound:
    table = _mapping(binder, database)
    return Bound(f"(SELECT m.c3 FROM {table.physical} m WHERE m.c1 = {_lsn(binder, arguments[0]).sql})", _TIME)


def _time_to_lsn(binder: Binder, arguments: list[exp.Expression], database: Database) -> Bound:
    table = _mapping(binder, database)
    time = convert(binder.value(arguments[1]), _TIME).sql
    choices = {
        "smallest greater than or equal": ("min", ">="),
        "smallest greater than": ("min", ">"),
        "largest less than or equal": ("max", "<="),
        "largest less than": ("max", "<"),
    }
    wanted = arguments[0].name.lower()
    if wanted not in choices:
        raise error(314)
    function, operator = choices[wanted]
    return Bound(f"(SELECT {function}(m.c1) FROM {table.physical} m WHERE m.c3 {operator} {time})", LSN)


def _column_ordinal(binder: Binder, arguments: list[exp.Expression], database: Database) -> Bound:
    instance, column = (convert(value, SYSNAME).sql for value in binder.values(arguments))
    tables, columns = cdc_table(binder, database, "change_tables"), cdc_table(binder, database, "captured_columns")
    return Bound(
        f"(SELECT x.c5 FROM {columns.physical} x JOIN {tables.physical} t ON t.c1 = x.c1"
        f" WHERE lower(t.c4) = lower({instance}) AND lower(x.c2) = lower({column}))",
        INT,
    )


def _is_bit_set(binder: Binder, arguments: list[exp.Expression], database: Database) -> Bound:
    position, mask = binder.values(arguments)
    return Bound(f"ms.is_bit_set({convert(position, INT).sql}, {mask.sql})", BIT)


def _has_column_changed(binder: Binder, arguments: list[exp.Expression], database: Database) -> Bound:
    ordinal = _column_ordinal(binder, arguments[:2], database)
    return Bound(f"ms.is_bit_set({ordinal.sql}, {binder.value(arguments[2]).sql})", BIT)


FUNCTIONS: dict[str, Callable[[Binder, list[exp.Expression], Database], Bound]] = {
    "fn_cdc_get_max_lsn": _max_lsn,
    "fn_cdc_get_min_lsn": _min_lsn,
    "fn_cdc_increment_lsn": _step(1),
    "fn_cdc_decrement_lsn": _step(-1),
    "fn_cdc_map_lsn_to_time": _lsn_to_time,
    "fn_cdc_map_time_to_lsn": _time_to_lsn,
    "fn_cdc_get_column_ordinal": _column_ordinal,
    "fn_cdc_is_bit_set": _is_bit_set,
    "fn_cdc_has_column_changed": _has_column_changed,
}


def all_changes(
    binder: Binder, database: Database, function: str, arguments: list[exp.Expression]
) -> tuple[str, list[tuple[str, object, bool]]] | None:
    """fn_cdc_get_all_changes_<instance> as a query over the change table."""
    kind, _, instance = function[len("fn_cdc_get_") :].partition("_changes_")
    table = binder.context.reader.object(database.database_id, "cdc", f"{instance}_CT")
    if table is None or kind != "all":
        return None
    begin, end = (_lsn(binder, node).sql for node in arguments[:2])
    option = arguments[2].name.lower() if len(arguments) > 2 else "all"
    if option not in ("all", "all update old"):
        raise error(313, function)
    hidden = {"__$end_lsn", "__$command_id"}
    columns = [column for column in table.columns if column.name.lower() not in hidden]
    listed = ", ".join(f"t.{column.physical} AS c{number}" for number, column in enumerate(columns, 1))
    checked = f"ms.lsn_range({begin}, {end}, {database.database_id}, {quote(instance)}, {quote('cdc.' + function)})"
    where = f"{checked} AND t.c1 BETWEEN {begin} AND {end}"
    if option == "all":
        where += " AND t.c4 <> 3"
    return f"SELECT {listed} FROM {table.physical} t WHERE {where}", [
        (column.name, column.kind, True) for column in columns
    ]
