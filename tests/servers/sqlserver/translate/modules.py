"""Views and functions that users have made: their text is translated where they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ..catalogue.model import Table
from ..datatypes import SqlType
from ..tsql import statements as s
from ..tsql.cursor import STARTS, Cursor
from ..tsql.dialect import tokenize
from ..tsql.errors import unsupported
from ..tsql.parser import parse
from ..tsql.statements import Name
from .bound import NULL, Bound, Scope
from .context import VARIABLE, Context
from .convert import convert
from .query import BoundQuery, bind_query

if TYPE_CHECKING:
    from .binder import Binder


def _database_of(context: Context, module: Table) -> Context:
    return context.inside(context.database_named(module.database))


def bind_view(context: Context, view: Table) -> tuple[BoundQuery, list[str]]:
    """A view's query and the names of its columns."""
    cursor = Cursor(tokenize(view.definition or ""), view.definition or "")
    names = cursor.names() if cursor.word() == "(" else []
    cursor.until(lambda word: word == "AS")
    cursor.expect("AS")
    query = bind_query(_database_of(context, view), cursor.parse(cursor.query()))
    return query, names or [column.name for column in query.columns]


def parameters(cursor: Cursor) -> list[tuple[str, str, exp.Expression | None, bool]]:
    """The parameters of a function or procedure: name, type, default, output."""
    found = []
    bracketed = cursor.accept("(")
    while cursor.word() == "@":
        cursor.next()
        name = "@" + cursor.next().text
        cursor.accept("AS")
        declared = cursor.type_text()
        default = cursor.expression(",", "AS", "OUTPUT", "OUT", "READONLY") if cursor.accept("=") else None
        output = bool(cursor.accept_any("OUTPUT", "OUT"))
        cursor.accept("READONLY")
        found.append((name, declared, default, output))
        if not cursor.accept(","):
            break
    if bracketed:
        cursor.expect(")")
    return found


def call_scalar(binder: Binder, name: Name, arguments: list[exp.Expression]) -> Bound | None:
    """A scalar function of a single RETURN, put in as an expression."""
    module = binder.context.find_module(name, ("FN",))
    if module is None:
        return None
    text = module.definition or ""
    cursor = Cursor(tokenize(text), text)
    declared = parameters(cursor)
    cursor.expect("RETURNS")
    kind = binder.context.type(cursor.type_text())
    cursor.until(lambda word: word == "AS" or word == "BEGIN")
    cursor.accept("AS")
    body = parse(cursor.rest())
    statement = body[0].body[0] if len(body) == 1 and isinstance(body[0], s.Block) and len(body[0].body) == 1 else None
    if not isinstance(statement, s.Simple) or statement.word != "RETURN":
        raise unsupported(f"the function {module.name}: only functions of one RETURN statement")
    inner = _database_of(binder.context, module)
    values = _given(binder, declared, arguments)
    inner.variables = {parameter.lower(): value.kind for parameter, value in values.items()}
    result = type(binder)(inner, Scope()).value(statement.arguments[0])
    return convert(Bound(_filled(result.sql, values), result.kind), kind)


def _given(
    binder: Binder, declared: list[tuple[str, str, exp.Expression | None, bool]], arguments: list[exp.Expression]
) -> dict[str, Bound]:
    values = {}
    for place, (parameter, declared_type, default, _) in enumerate(declared):
        node = arguments[place] if place < len(arguments) else default
        value = NULL if node is None or node.name.upper() == "DEFAULT" else binder.value(node)
        kind: SqlType = binder.context.type(declared_type)
        values[parameter.lower()] = convert(value, kind)
    return values


def _filled(sql: str, values: dict[str, Bound]) -> str:
    for name, value in values.items():
        sql = sql.replace(f"{VARIABLE}{name}{VARIABLE}", f"({value.sql})")
    return sql


def bind_table_valued(
    binder: Binder, name: Name, arguments: list[exp.Expression]
) -> tuple[str, list[tuple[str, object, bool]]] | None:
    """An inline table-valued function: RETURN of one query."""
    module = binder.context.find_module(name, ("IF",))
    if module is None:
        return None
    text = module.definition or ""
    cursor = Cursor(tokenize(text), text)
    declared = parameters(cursor)
    cursor.until(lambda word: word == "RETURN")
    cursor.expect("RETURN")
    tokens = cursor.parenthesis() if cursor.word() == "(" else cursor.until(lambda word: word in STARTS - {"SELECT"})
    inner = _database_of(binder.context, module)
    values = _given(binder, declared, arguments)
    inner.variables = {parameter: value.kind for parameter, value in values.items()}
    query = bind_query(inner, cursor.parse(tokens))
    return _filled(query.sql, values), [(column.name, column.kind, column.nullable) for column in query.columns]
