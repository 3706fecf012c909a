"""Finds the translation of a function by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from ..catalogue.literals import quote
from ..datatypes import SqlType, make
from ..tsql.errors import error, unsupported
from . import clr, functions_cdc, functions_math, functions_system, functions_text, functions_time, windows
from .bound import Bound
from .context import VARIABLE
from .convert import convert

if TYPE_CHECKING:
    from .binder import Binder

Function = Callable[["Binder", list[exp.Expression]], Bound]

FUNCTIONS: dict[str, Function] = {
    **functions_text.FUNCTIONS,
    **functions_time.FUNCTIONS,
    **functions_math.FUNCTIONS,
    **functions_system.FUNCTIONS,
    **windows.FUNCTIONS,
}

# Values of the session, which are put in when a statement runs.
_SESSION_VALUES = {
    "@@trancount": make("int"),
    "@@rowcount": make("int"),
    "@@error": make("int"),
    "@@spid": make("smallint"),
    "@@lock_timeout": make("int"),
    "@@options": make("int"),
    "@@identity": make("numeric", 38),
    "@@nestlevel": make("int"),
    "@@fetch_status": make("int"),
    "@@language": make("nvarchar", 128),
    "@@servername": make("nvarchar", 128),
    "@@servicename": make("nvarchar", 128),
    "@@version": make("nvarchar", 300),
    "@@datefirst": make("tinyint"),
    "@@max_precision": make("tinyint"),
    "@@textsize": make("int"),
    "@@microsoftversion": make("int"),
    "@@dbts": make("varbinary", 8),
    "@@procid": make("int"),
}


def session_value(name: str, kind: SqlType) -> Bound:
    """A value that the session knows when the statement runs."""
    return Bound(f"{VARIABLE}{name}{VARIABLE}", kind)


def call(binder: Binder, name: str, arguments: list[exp.Expression]) -> Bound:
    """A function without a qualifier."""
    lower = name.lower()
    if lower in _SESSION_VALUES:
        return session_value(lower, _SESSION_VALUES[lower])
    found = FUNCTIONS.get(lower)
    if found is None:
        raise error(195, name)
    return found(binder, arguments)


def call_qualified(binder: Binder, qualifier: list[str], name: str, arguments: list[exp.Expression]) -> Bound:
    """A function of a schema: a system function, one that a user has made, or a method of a column."""
    schema = qualifier[-1].lower()
    if schema == "sys" or (schema == "cdc" and name.lower().startswith("fn_cdc")):
        found = functions_cdc.FUNCTIONS.get(name.lower()) or FUNCTIONS.get(name.lower())
        if found is None:
            raise error(4121, schema, f"{schema}.{name}")
        database = binder.context.database_named(qualifier[-2] if len(qualifier) > 1 else "")
        if name.lower() in functions_cdc.FUNCTIONS:
            return functions_cdc.FUNCTIONS[name.lower()](binder, arguments, database)
        return found(binder, arguments)
    from .modules import call_scalar  # such functions hold expressions

    made = call_scalar(binder, (*qualifier, name), arguments)
    if made is not None:
        return made
    if len(qualifier) == 1 and name.lower() == "tostring":
        return convert(binder.scope.find(qualifier[0]), make("nvarchar", 4000))
    raise error(4121, qualifier[0], ".".join((*qualifier, name)))


def static_method(binder: Binder, kind: str, method: str, arguments: list[exp.Expression]) -> Bound:
    """A static method of hierarchyid, geometry or geography that makes a value from literals."""
    if kind == "hierarchyid" and method in ("parse", "getroot"):
        text = arguments[0].name if arguments else "/"
        return Bound(clr.from_literal(kind, quote(text)), make(kind), False)
    if kind in ("geometry", "geography") and method == "point":
        x, y, srid = (_number(argument) for argument in arguments)
        text = f"POINT ({y} {x})" if kind == "geography" else f"POINT ({x} {y})"
        return Bound(clr.from_literal(kind, quote(text), int(srid)), make(kind), False)
    if kind in ("geometry", "geography") and method.startswith("st") and method.endswith("fromtext"):
        return Bound(clr.from_literal(kind, quote(arguments[0].name), int(_number(arguments[1]))), make(kind), False)
    raise unsupported(f"{kind}::{method}")


def _number(node: exp.Expression) -> str:
    return f"-{node.this.name}" if isinstance(node, exp.Neg) else node.name


def at_time_zone(binder: Binder, node: exp.AtTimeZone) -> Bound:
    """AT TIME ZONE, for UTC only."""
    value = binder.value(node.this)
    if node.args["zone"].name.upper() != "UTC":
        raise unsupported("AT TIME ZONE other than 'UTC'")
    if value.kind.name == "datetimeoffset":
        return value.as_(f"ms.moment(ms.moment_utc({value.sql}), 0)")
    return convert(value, make("datetimeoffset", value.kind.scale))


def tried(sql: str, target: SqlType) -> str:
    """A conversion that yields null where it fails."""
    inner = sql.replace("'", "''")
    if VARIABLE in sql or "s1." in sql:
        raise unsupported("TRY_CAST of anything but a literal")
    return f"ms.tried('SELECT ({inner})::text')::{target.storage}"
