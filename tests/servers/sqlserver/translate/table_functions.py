"""Translates functions that stand in FROM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ..datatypes import INT, MAX, make
from ..tsql.statements import Name
from .convert import convert
from .describe import COLUMNS, described
from .functions_cdc import all_changes

if TYPE_CHECKING:
    from .binder import Binder

Columns = list[tuple[str, object, bool]]


def bind_table_function(binder: Binder, name: Name, arguments: list[exp.Expression]) -> tuple[str, Columns] | None:
    """The query of a function and its columns; None if there is no such function."""
    lower = name[-1].lower()
    if lower.startswith("fn_cdc_get_") and len(name) > 1 and name[-2].lower() == "cdc":
        database = binder.context.database_named(name[-3] if len(name) > 2 else "")
        binder.context.rights.check_changes(database, lower.partition("_changes_")[2])
        return all_changes(binder, database, lower, arguments)
    if lower == "dm_db_log_stats" and binder.context.platform.has_log_stats:
        number = binder.value(arguments[0]).sql
        return f"SELECT ms.lsn_text(ms.log_position({number})) AS c1", [("log_end_lsn", make("nvarchar", 24), False)]
    if lower == "string_split":
        text, separator = (convert(value, make("nvarchar", MAX)).sql for value in binder.values(arguments[:2]))
        return f"SELECT string_to_table({text}, {separator}) AS c1", [("value", make("nvarchar", MAX), False)]
    if lower == "generate_series":
        first, last = (convert(value, INT).sql for value in binder.values(arguments[:2]))
        step = convert(binder.value(arguments[2]), INT).sql if len(arguments) > 2 else "1"
        return f"SELECT generate_series({first}, {last}, {step}) AS c1", [("value", INT, False)]
    if lower == "fn_my_permissions":
        return "SELECT 'server'::text AS c1, ''::text AS c2, 'CONTROL'::text AS c3", [
            (column, make("nvarchar", 128), False) for column in ("entity_name", "subentity_name", "permission_name")
        ]
    if lower == "dm_exec_describe_first_result_set":
        return described(binder, arguments[0].this), COLUMNS
    if lower == "fn_listextendedproperty":
        return None
    from .modules import bind_table_valued  # such functions hold queries

    return bind_table_valued(binder, name, arguments)
