"""Translates FROM: tables, views, queries, functions and how they are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ..catalogue.model import Table
from ..datatypes import make
from ..tsql.errors import error, invalid_object, unsupported
from ..tsql.statements import Name
from .bound import Bound, Scope, Source
from .context import Context, SystemView, TableUse

if TYPE_CHECKING:
    from .binder import Binder

ACTION = make("nvarchar", 10)
_UPDATE_HINTS = {"UPDLOCK", "XLOCK"}
_UNLOCKED_HINTS = {"NOLOCK", "READUNCOMMITTED"}


def bind_from(binder: Binder, tree: exp.Select) -> str:
    """The FROM clause of a query; its sources are added to the binder's scope."""
    clause = tree.args.get("from_")
    if clause is None:
        return ""
    sql = bind_item(binder, clause.this)
    for join in [*(clause.this.args.get("joins") or []), *(tree.args.get("joins") or [])]:
        sql = _join(binder, sql, join)
    return sql


def _join(binder: Binder, left: str, join: exp.Join) -> str:
    side, kind, item = (join.side or "").upper(), (join.kind or "").upper(), join.this
    before = len(binder.scope.sources)
    if isinstance(item, exp.Lateral):
        right = bind_item(binder, item)
        applied = "CROSS JOIN LATERAL" if item.args.get("cross_apply") else "LEFT JOIN LATERAL"
        return f"{left} {applied} {right}" + ("" if "CROSS" in applied else " ON true")
    right = bind_item(binder, item)
    for nested in item.args.get("joins") or []:
        right = f"({_join(binder, right, nested)})"
    on = join.args.get("on")
    if on is None:
        return f"{left} CROSS JOIN {right}"
    condition = binder.condition(on)
    for source in binder.scope.sources[before:] if side in ("LEFT", "FULL") else []:
        source.outer()
    for source in binder.scope.sources[:before] if side in ("RIGHT", "FULL") else []:
        source.outer()
    word = f"{side} JOIN" if side else "JOIN"
    if kind not in ("", "INNER", "OUTER"):
        raise unsupported(f"{kind} JOIN")
    return f"{left} {word} {right} ON {condition}"


def bind_item(binder: Binder, node: exp.Expression) -> str:
    """One item of FROM."""
    if isinstance(node, exp.Table):
        if isinstance(node.this, exp.Anonymous):
            return _function(binder, _name(node), node.this.expressions, node.alias)
        return _named(binder, node)
    if isinstance(node, exp.Values):
        return _values(binder, node)
    if isinstance(node, exp.Subquery):
        return _derived(binder, node)
    if isinstance(node, exp.Lateral):
        if isinstance(node.this, exp.Anonymous):
            return _function(binder, (str(node.this.name),), node.this.expressions, node.alias)
        return _derived(binder, node)
    raise unsupported(f"{node.sql(dialect='tsql')[:60]} in FROM")


def _name(node: exp.Table) -> Name:
    parts = (node.args.get("catalog"), node.args.get("db"), node.this)
    found = []
    for part in parts:
        if part is None:
            continue
        text = "" if part == "" else part.name
        if isinstance(part, exp.Anonymous) and not isinstance(part.this, str):
            text = part.this.name
        if isinstance(part, exp.Parameter):
            text = "@" + part.name
        if getattr(part, "args", {}).get("temporary"):
            text = "#" + text
        if getattr(part, "args", {}).get("global_"):
            text = "##" + text
        found.append(text)
    return tuple(found)


def _hints(node: exp.Expression) -> frozenset[str]:
    found = set()
    for hint in node.args.get("hints") or []:
        for item in hint.expressions:
            found.add((item.name or str(item.this)).upper())
    return frozenset(found)


def _named(binder: Binder, node: exp.Table) -> str:
    context = binder.context
    name = _name(node)
    cte = binder.ctes.get(name[0].lower()) if len(name) == 1 else None
    if cte is not None:
        return _cte(binder, cte, node.alias or name[0])
    view = context.system_view(name)
    if view is not None:
        return _system_view(binder, view, name, node.alias)
    table = context.table(name)
    if table.kind == "V":
        return _view(binder, table, node.alias)
    return bind_table(binder, table, node.alias, _hints(node))


def bind_table(
    binder: Binder, table: Table, alias: str, hints: frozenset[str] = frozenset(), access: str = "SELECT"
) -> str:
    """A table; its columns are added to the scope."""
    context = binder.context
    if not table.name.startswith(("#", "@")):
        context.rights.check(access, table)
    context.uses.append(TableUse(table, access, hints))
    name = context.alias()
    source = table_source(table, name, alias, hints)
    _add_computed(binder, source)
    if access == "SELECT" and any(column.masked for column in table.columns) and not context.rights.sees(table):
        _mask(source)
    binder.scope.sources.append(source)
    hidden = [condition for condition, exempt in table.filters if not context.rights.is_named(exempt)]
    if access == "SELECT" and hidden:
        return f"(SELECT * FROM {table.physical} WHERE {' AND '.join(hidden)}) AS {name}"
    return f"{table.physical} AS {name}"


def _mask(source: Source) -> None:
    """Put what the function default() shows in place of masked values (Microsoft: "Dynamic data masking")."""
    shown = {"string": "'xxxx'::text", "integer": "0", "decimal": "0::numeric", "money": "0::numeric", "float": "0"}
    for place, (name, bound) in enumerate(source.columns):
        if bound.column is not None and bound.column.masked:
            value = f"({shown.get(bound.kind.family, 'NULL')})::{bound.kind.storage}"
            source.columns[place] = (name, Bound(value, bound.kind, bound.nullable, column=bound.column))


def table_source(table: Table, name: str, alias: str = "", hints: frozenset[str] = frozenset()) -> Source:
    """A table as a source of names; computed columns are left to `_add_computed`."""
    columns = [
        (column.name, Bound(f"{name}.{column.physical}", column.kind, column.nullable, column=column))
        for column in table.columns
    ]
    names = (alias,) if alias else (table.database, table.schema, table.name)
    return Source(name, names, columns, table, hints=hints)


def _add_computed(binder: Binder, source: Source) -> None:
    """Put the expressions of computed columns in place of their columns."""
    from ..tsql.parser import parse_expression  # needed for such columns only

    assert source.table is not None
    for place, column in enumerate(source.table.columns):
        if column.computed is not None:
            own = type(binder)(binder.context, Scope([source]))
            bound = own.value(parse_expression(column.computed))
            source.columns[place] = (column.name, Bound(bound.sql, column.kind, column.nullable, column=column))


def add_computed(binder: Binder, source: Source) -> None:
    """The same, for sources that are made elsewhere."""
    _add_computed(binder, source)


def _cte(binder: Binder, cte: tuple[str, list[tuple[str, Bound]]], alias: str) -> str:
    physical, columns = cte
    name = binder.context.alias()
    own = [(column, Bound(f"{name}.{bound.sql}", bound.kind, bound.nullable)) for column, bound in columns]
    binder.scope.sources.append(Source(name, (alias,), own))
    return f"{physical} AS {name}"


def _system_view(binder: Binder, view: SystemView, name: Name, alias: str) -> str:
    context = binder.context
    if view.name.startswith("dm_"):
        _check_state(context)
    database = context.database_named(name[-3] if len(name) > 2 else "")
    own = context.alias()
    columns = [(column, Bound(f'{own}."{column}"', kind, nullable)) for column, kind, nullable in view.columns]
    binder.scope.sources.append(
        Source(own, (alias,) if alias else (database.name, view.schema, view.name), columns, view=view)
    )
    where = f" WHERE _db = {database.database_id}" if view.per_database else ""
    if view.name == "databases" and context.platform.is_azure_database:
        where = f" WHERE database_id IN (1, {context.database.database_id})"
    return f"(SELECT * FROM {view.physical}{where}) AS {own}"


def _check_state(context: Context) -> None:
    """The right that dynamic management views ask for: of the server, in Azure SQL Database of the database."""
    if context.platform.is_azure_database:
        context.rights.check_database("VIEW DATABASE STATE", context.database)
    else:
        context.rights.check_server("VIEW SERVER STATE")


def _view(binder: Binder, view: Table, alias: str) -> str:
    from .modules import bind_view  # a view holds a query

    binder.context.rights.check("SELECT", view)
    query, names = bind_view(binder.context, view)
    return add_query(
        binder,
        query.sql,
        names,
        [(column.kind, column.nullable) for column in query.columns],
        (alias,) if alias else (view.database, view.schema, view.name),
    )


def add_query(binder: Binder, sql: str, names: list[str], kinds: list[tuple[object, bool]], answers: Name) -> str:
    """A query in parentheses as a source."""
    own = binder.context.alias()
    columns = [
        (name, Bound(f"{own}.c{number}", kind, nullable))  # type: ignore[arg-type]
        for number, (name, (kind, nullable)) in enumerate(zip(names, kinds, strict=True), 1)
    ]
    binder.scope.sources.append(Source(own, answers, columns))
    return f"({sql}) AS {own}"


def _derived(binder: Binder, node: exp.Expression) -> str:
    inner = node.this
    if isinstance(inner, exp.Values):
        return _values(binder, inner, node.args.get("alias"))
    if isinstance(inner, exp.Table):  # a join in parentheses
        sql = bind_item(binder, inner)
        for join in inner.args.get("joins") or []:
            sql = _join(binder, sql, join)
        return f"({sql})"
    if isinstance(inner, exp.Subquery):
        inner = inner.this
    if inner.args.get("order") and not (inner.args.get("limit") or inner.args.get("offset")):
        raise error(1033)
    query = type(binder).query(_lateral(binder, node), inner)
    alias = node.args.get("alias")
    named = [column.name for column in alias.args.get("columns") or []] if alias is not None else []
    names = named or [column.name for column in query.columns]
    return add_query(
        binder, query.sql, names, [(column.kind, column.nullable) for column in query.columns], (node.alias,)
    )


def _lateral(binder: Binder, node: exp.Expression) -> Binder:
    """The binder in which a derived table is translated: it sees its neighbours only under APPLY."""
    if isinstance(node, exp.Lateral):
        return binder
    outside = type(binder)(binder.context, binder.scope.parent or Scope())
    outside.ctes = binder.ctes
    return outside


def _values(binder: Binder, node: exp.Values, outer: exp.TableAlias | None = None) -> str:
    alias = outer or node.args.get("alias")
    rows = [binder.values(row.expressions) for row in node.expressions]
    columns = [binder.same_type([row[place] for row in rows]) for place in range(len(rows[0]))]
    listed = ", ".join("(" + ", ".join(column[row].sql for column in columns) + ")" for row in range(len(rows)))
    names = [column.name for column in alias.args.get("columns") or []] if alias is not None else []
    names = names or [f"c{number}" for number in range(1, len(columns) + 1)]
    kinds = [(column[0].kind, any(value.nullable for value in column)) for column in columns]
    own = ", ".join(f"c{number}" for number in range(1, len(columns) + 1))
    return add_query(
        binder, f"SELECT * FROM (VALUES {listed}) AS v({own})", names, kinds, (alias.name if alias is not None else "",)
    )


def _function(binder: Binder, name: Name, arguments: list[exp.Expression], alias: str) -> str:
    from .table_functions import bind_table_function  # they hold queries

    found = bind_table_function(binder, name, arguments)
    if found is None:
        raise invalid_object(".".join(name))
    sql, columns = found
    return add_query(
        binder,
        sql,
        [column for column, _, _ in columns],
        [(kind, nullable) for _, kind, nullable in columns],
        (alias or name[-1],),
    )


def row_locks(context: Context, scope: Scope) -> str:
    """The locks on rows that a query takes: by its hints, or because the isolation level keeps them."""
    update, share = [], []
    skip = False
    for source in scope.sources:
        if source.table is None or source.table.kind != "U":
            continue
        if any(
            bound.nullable and bound.column is not None and not bound.column.nullable for _, bound in source.columns
        ):
            continue  # the outer side of a join
        skip = skip or "READPAST" in source.hints
        if source.hints & _UPDATE_HINTS:
            update.append(source.alias)
        elif context.row_locks and not source.hints & _UNLOCKED_HINTS:
            share.append(source.alias)
    text = ""
    if update:
        text += f" FOR UPDATE OF {', '.join(update)}" + (" SKIP LOCKED" if skip else "")
    if share:
        text += f" FOR SHARE OF {', '.join(share)}" + (" SKIP LOCKED" if skip else "")
    return text
