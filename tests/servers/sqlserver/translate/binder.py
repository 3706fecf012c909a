"""Translates expressions: each becomes PostgreSQL's SQL with a type of SQL Server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlglot import exp

from ..catalogue.literals import quote
from ..datatypes import BIT, INT, MAX, SqlType, common, make
from ..tds.collations import known
from ..tsql.dialect import CAST, EMPTY_BINARY, MONEY
from ..tsql.errors import SqlError, error, unsupported
from . import functions, operators, predicates, windows
from .bound import NULL, Bound, Scope
from .context import VARIABLE, Context
from .convert import convert

if TYPE_CHECKING:
    from .query import BoundQuery


class Binder:
    """Translates the expressions of one query, in its scope."""

    def __init__(self, context: Context, scope: Scope) -> None:
        self.context = context
        self.scope = scope
        self.grouped: dict[str, str] = {}
        self.ctes: dict[str, tuple[str, list[tuple[str, Bound]]]] = {}
        self.has_aggregate = False
        self.has_window = False
        self._in_aggregate = 0

    # Entrances

    def value(self, node: exp.Expression) -> Bound:
        """An expression with a value."""
        bind = _NODES.get(type(node))
        if bind is None:
            if isinstance(node, predicates.NODES):
                raise error(156)
            raise unsupported(f"the expression {node.sql(dialect='tsql')[:80]}")
        bound = bind(self, node)
        replacement = None if self._in_aggregate else self.grouped.get(bound.sql)
        return bound if replacement is None else Bound(replacement, bound.kind, bound.nullable)

    def condition(self, node: exp.Expression) -> str:
        """A condition, as of WHERE."""
        return predicates.bind(self, node)

    def values(self, nodes: list[exp.Expression]) -> list[Bound]:
        """Several expressions."""
        return [self.value(node) for node in nodes]

    def same_type(self, values: list[Bound]) -> list[Bound]:
        """The values converted to the one type that an expression over all of them has."""
        kind = self.common_type(values)
        return [convert(value, kind) for value in values]

    def common_type(self, values: list[Bound]) -> SqlType:
        """The type of an expression that yields any of the values."""
        typed = [value.kind for value in values if not value.untyped_null]
        if not typed:
            return INT
        kind = typed[0]
        for other in typed[1:]:
            kind = common(kind, other)
        return kind

    def query(self, tree: exp.Expression) -> BoundQuery:
        """A query inside of this one."""
        from .query import bind_query  # queries hold expressions and the other way round

        return bind_query(self.context, tree, self.scope, self.ctes)

    @contextmanager
    def aggregate(self) -> Iterator[None]:
        """While the argument of an aggregate is translated: it sees the rows, not the groups."""
        self._in_aggregate += 1
        try:
            yield
        finally:
            self._in_aggregate -= 1


# Literals and names


def number(binder: Binder, node: exp.Literal) -> Bound:
    """A number: int, numeric or float by its form. Or a text."""
    text = str(node.this)
    if node.is_string:
        return text_literal(text, national=False)
    if "e" in text.lower():
        return Bound(f"{text}::float8", make("float"), False)
    whole, _, fraction = text.partition(".")
    if "." not in text and int(whole) <= 2_147_483_647:
        return Bound(text, INT, False)
    digits = len(whole.lstrip("0")) + len(fraction)
    return Bound(
        f"{whole or '0'}.{fraction}::numeric" if fraction else f"{whole}::numeric",
        make("numeric", max(digits, 1), len(fraction)),
        False,
    )


def text_literal(text: str, *, national: bool) -> Bound:
    """A text literal."""
    units = len(text.encode("utf-16-le")) // 2
    kind = make("nvarchar" if national else "varchar", max(units, 1) if units <= 8000 else MAX)
    sql = f"{quote(text)}::text"
    if not national and not text.isascii():
        sql = f"ms.narrow_cp1252({sql})"
    return Bound(sql, kind, False, is_text_literal=True)


def _national(binder: Binder, node: exp.National) -> Bound:
    return text_literal(str(node.this), national=True)


def _hex(binder: Binder, node: exp.HexString) -> Bound:
    digits = str(node.this)
    digits = "0" + digits if len(digits) % 2 else digits
    return Bound(f"'\\x{digits}'::bytea", make("varbinary", max(len(digits) // 2, 1)), False)


def _null(binder: Binder, node: exp.Null) -> Bound:
    return NULL


def _column(binder: Binder, node: exp.Column) -> Bound:
    if isinstance(node.this, exp.Star):
        raise SqlError(102, 15, "Incorrect syntax near '*'.")
    qualifier = tuple(
        part.name
        for part in (node.args.get("catalog"), node.args.get("db"), node.args.get("table"))
        if part is not None
    )
    return binder.scope.find(node.name, qualifier)


def _variable(binder: Binder, node: exp.Parameter) -> Bound:
    if isinstance(node.this, exp.Parameter):
        return functions.call(binder, "@@" + node.this.name, [])
    name = "@" + node.name
    return Bound(f"{VARIABLE}{name.lower()}{VARIABLE}", binder.context.variable(name))


def _paren(binder: Binder, node: exp.Paren) -> Bound:
    inner = binder.value(node.this)
    return Bound(f"({inner.sql})", inner.kind, inner.nullable, inner.untyped_null, inner.column)


def _subquery(binder: Binder, node: exp.Subquery) -> Bound:
    query = binder.query(node.this)
    if len(query.columns) != 1:
        raise error(116)
    return Bound(f"({query.sql})", query.columns[0].kind)


def _case(binder: Binder, node: exp.Case) -> Bound:
    branches = [binder.value(branch.args["true"]) for branch in node.args["ifs"]]
    default = binder.value(node.args["default"]) if node.args.get("default") is not None else NULL
    values = binder.same_type([*branches, default])
    conditions = []
    for branch in node.args["ifs"]:
        test = branch.this if node.this is None else exp.EQ(this=node.this.copy(), expression=branch.this.copy())
        conditions.append(binder.condition(test))
    arms = " ".join(f"WHEN {test} THEN {value.sql}" for test, value in zip(conditions, values, strict=False))
    nullable = any(value.nullable for value in [*branches, default])
    return Bound(f"(CASE {arms} ELSE {values[-1].sql} END)", values[0].kind, nullable)


def _cast(binder: Binder, node: exp.Anonymous) -> Bound:
    value, declared, style, safe = node.expressions
    target = binder.context.type(declared.name, for_cast=True)
    number_of_style = 0 if isinstance(style, exp.Null) else int(style.name)
    bound = convert(binder.value(value), target, number_of_style, explicit=True)
    if safe.this:
        return Bound(f"({functions.tried(bound.sql, bound.kind)})", bound.kind)
    return bound


def _call(binder: Binder, node: exp.Anonymous) -> Bound:
    name = str(node.this if isinstance(node.this, str) else node.this.name)
    if name == CAST:
        return _cast(binder, node)
    if name == EMPTY_BINARY:
        return Bound("''::bytea", make("varbinary", 1), False)
    if name == MONEY:
        return Bound(f"{node.expressions[0].name}::numeric", make("money"), False)
    return functions.call(binder, name, node.expressions)


def _dotted(binder: Binder, node: exp.Dot) -> Bound:
    """A function with a qualified name, such as [db].sys.fn_cdc_get_max_lsn()."""
    parts: list[exp.Expression] = [node.expression]
    left = node.this
    while isinstance(left, exp.Dot):
        parts.insert(0, left.expression)
        left = left.this
    parts.insert(0, left)
    last = parts[-1]
    if not isinstance(last, exp.Anonymous):
        raise unsupported(f"the expression {node.sql(dialect='tsql')[:80]}")
    names = [part.name for part in parts[:-1]]
    return functions.call_qualified(
        binder, names, str(last.name if not isinstance(last.this, str) else last.this), last.expressions
    )


def _static(binder: Binder, node: exp.ScopeResolution) -> Bound:
    """A static method of a CLR type, such as hierarchyid::Parse('/1/')."""
    call = node.expression
    return functions.static_method(binder, str(node.this.name).lower(), str(call.this).lower(), call.expressions)


def _collate(binder: Binder, node: exp.Collate) -> Bound:
    inner = binder.value(node.this)
    name = str(node.expression.name)
    if not known(name):
        raise error(448, name)
    kind = inner.kind
    return Bound(inner.sql, SqlType(kind.name, kind.length, collation=name), inner.nullable)


def _exists(binder: Binder, node: exp.Expression) -> Bound:
    return Bound(f"(CASE WHEN {binder.condition(node)} THEN 1 ELSE 0 END)", BIT)


def _named(name: str) -> Callable[[Binder, exp.Expression], Bound]:
    return lambda binder, node: functions.call(binder, name, [])


def _odbc(kind: str) -> Callable[[Binder, exp.Expression], Bound]:
    """The escapes {d '...'}, {t '...'} and {ts '...'}."""
    return lambda binder, node: convert(binder.value(node.this), make(kind))


_NODES: dict[type, Callable[[Binder, exp.Expression], Bound]] = {
    exp.Literal: number,
    exp.National: _national,
    exp.HexString: _hex,
    exp.Null: _null,
    exp.Column: _column,
    exp.Parameter: _variable,
    exp.Paren: _paren,
    exp.Subquery: _subquery,
    exp.Case: _case,
    exp.Anonymous: _call,
    exp.Dot: _dotted,
    exp.ScopeResolution: _static,
    exp.Collate: _collate,
    exp.CurrentTimestamp: _named("getdate"),
    exp.CurrentUser: _named("user_name"),
    exp.SessionUser: _named("user_name"),
    exp.Date: _odbc("date"),
    exp.Time: _odbc("time"),
    exp.Timestamp: _odbc("datetime"),
    exp.Window: windows.bind,
    exp.GroupConcat: windows.string_agg,
    exp.AtTimeZone: functions.at_time_zone,
    **operators.NODES,
}
