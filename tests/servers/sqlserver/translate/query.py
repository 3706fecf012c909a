"""Translates queries."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from ..catalogue.model import Column
from ..datatypes import BIGINT, SqlType, common
from ..tsql.errors import error, unsupported
from . import sources
from .binder import Binder
from .bound import Bound, Scope
from .context import Context
from .convert import convert

Ctes = dict[str, tuple[str, list[tuple[str, Bound]]]]
_OPERATORS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


@dataclass(frozen=True)
class OutColumn:
    """One column of a result."""

    name: str
    kind: SqlType
    nullable: bool = True
    column: Column | None = None


@dataclass
class BoundQuery:
    """A query in PostgreSQL's SQL; its columns are c1, c2, …"""

    sql: str
    columns: list[OutColumn]


@dataclass
class _Item:
    """One expression of the select list."""

    name: str
    bound: Bound
    alias: str = ""


@dataclass
class _Parts:
    """The pieces of a SELECT while it is put together."""

    items: list[_Item]
    from_sql: str = ""
    where: str = ""
    group: list[str] = field(default_factory=list)
    having: str = ""
    order: list[str] = field(default_factory=list)
    limit: str = ""
    locks: str = ""


def bind_query(
    context: Context, tree: exp.Expression, parent: Scope | None = None, ctes: Ctes | None = None, *, top: bool = False
) -> BoundQuery:
    """Translate a query; `top` says that its rows go to the client."""
    if isinstance(tree, exp.Subquery) and not tree.args.get("alias"):
        return bind_query(context, tree.this, parent, ctes, top=top)
    known = dict(ctes or {})
    prefix = _bind_ctes(context, tree, parent, known)
    if isinstance(tree, exp.SetOperation):
        query = _bind_set(context, tree, parent, known)
    elif isinstance(tree, exp.Select):
        query = SelectBinder(context, tree, parent, known, top).bind()
    else:
        raise unsupported(f"the query {tree.sql(dialect='tsql')[:80]}")
    return BoundQuery(prefix + query.sql, query.columns)


def _bind_ctes(context: Context, tree: exp.Expression, parent: Scope | None, known: Ctes) -> str:
    """The WITH clause; what it defines is added to `known`."""
    clause = tree.args.get("with_")
    if clause is None:
        return ""
    parts = []
    for cte in clause.expressions:
        alias = context.alias()
        named = [column.name for column in cte.args["alias"].args.get("columns") or []]
        if isinstance(cte.this, exp.Union):  # it may refer to itself, by the columns of its first part
            first = bind_query(context, cte.this.left, parent, known)
            known[cte.alias.lower()] = (alias, _cte_columns(first, named))
        query = bind_query(context, cte.this, parent, known)
        known[cte.alias.lower()] = (alias, _cte_columns(query, named))
        columns = ", ".join(f"c{number}" for number in range(1, len(query.columns) + 1))
        parts.append(f"{alias}({columns}) AS ({query.sql})")
    return "WITH RECURSIVE " + ", ".join(parts) + " "


def _cte_columns(query: BoundQuery, named: list[str]) -> list[tuple[str, Bound]]:
    names = named or [column.name for column in query.columns]
    return [
        (name, Bound(f"c{number}", column.kind, column.nullable))
        for number, (name, column) in enumerate(zip(names, query.columns, strict=True), 1)
    ]


def _bind_set(context: Context, tree: exp.SetOperation, parent: Scope | None, ctes: Ctes) -> BoundQuery:
    left = bind_query(context, tree.left, parent, ctes)
    right = bind_query(context, tree.right, parent, ctes)
    if len(left.columns) != len(right.columns):
        raise error(205)
    columns = [
        OutColumn(a.name, common(a.kind, b.kind), a.nullable or b.nullable)
        for a, b in zip(left.columns, right.columns, strict=True)
    ]
    word = _OPERATORS[type(tree)] + ("" if tree.args.get("distinct") else " ALL")
    sql = f"{_converted(left, columns)} {word} {_converted(right, columns)}"
    if tree.args.get("distinct") and isinstance(tree, exp.Union):
        sql = _distinct(sql, columns)
    sql = _ordered(context, sql, columns, tree.args.get("order"))
    return BoundQuery(sql, columns)


def _converted(query: BoundQuery, columns: list[OutColumn]) -> str:
    values = [
        convert(Bound(f"q.c{number}", have.kind, have.nullable), want.kind).sql + f" AS c{number}"
        for number, (have, want) in enumerate(zip(query.columns, columns, strict=True), 1)
    ]
    return f"(SELECT {', '.join(values)} FROM ({query.sql}) q)"


def _output(columns: list[OutColumn]) -> list[Bound]:
    return [Bound(f"q.c{number}", column.kind, column.nullable) for number, column in enumerate(columns, 1)]


def _distinct(sql: str, columns: list[OutColumn]) -> str:
    keys = ", ".join(bound.key for bound in _output(columns))
    return f"SELECT DISTINCT ON ({keys}) * FROM ({sql}) q"


def _ordered(context: Context, sql: str, columns: list[OutColumn], order: exp.Order | None) -> str:
    """Order a finished query by its own columns."""
    if order is None:
        return sql
    output = _output(columns)
    scope = Scope(
        [sources.Source("q", (), [(column.name, bound) for column, bound in zip(columns, output, strict=True)])]
    )
    binder = Binder(context, scope)
    terms = []
    for item in order.expressions:
        place = _position(item.this, len(output))
        bound = output[place] if place is not None else binder.value(item.this)
        terms.append(order_term(bound, bool(item.args.get("desc"))))
    return f"SELECT * FROM ({sql}) q ORDER BY {', '.join(terms)}"


def order_term(bound: Bound, descending: bool) -> str:
    """One term of ORDER BY; SQL Server sorts nulls as the lowest values."""
    if descending:
        return f"{bound.key} DESC" + (" NULLS LAST" if bound.nullable else "")
    return bound.key + (" NULLS FIRST" if bound.nullable else "")


def _position(node: exp.Expression, count: int) -> int | None:
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.name)
        if not 1 <= place <= count:
            raise error(108, place)
        return place - 1
    return None


class SelectBinder:
    """Translates one SELECT."""

    def __init__(self, context: Context, tree: exp.Select, parent: Scope | None, ctes: Ctes, top: bool) -> None:
        self.context = context
        self.tree = tree
        self.scope = Scope([], parent)
        self.binder = Binder(context, self.scope)
        self.binder.ctes = ctes
        self.top = top

    def bind(self) -> BoundQuery:
        """The whole query."""
        parts = _Parts([])
        parts.from_sql = sources.bind_from(self.binder, self.tree)
        self._filter(parts)
        parts.items = self._items()
        self._having(parts)
        distinct = self.tree.args.get("distinct") is not None
        order = self.tree.args.get("order")
        if order is not None and not distinct:
            parts.order = [self._term(item, parts.items) for item in order.expressions]
        elif order is None and not distinct and not parts.group:
            parts.order = self._natural_order()
        if not distinct:
            parts.limit = self._limit()
        parts.locks = sources.row_locks(self.context, self.scope) if self._is_plain(parts, distinct) else ""
        columns = [
            OutColumn(item.name, item.bound.kind, item.bound.nullable, item.bound.column) for item in parts.items
        ]
        sql = self._assembled(parts)
        if distinct:
            sql = _ordered(self.context, _distinct(sql, columns), columns, order)
            limit = self._limit()
            sql = f"SELECT * FROM ({sql}) q {limit}" if limit else sql
        return BoundQuery(sql, columns)

    def _filter(self, parts: _Parts) -> None:
        where, group = self.tree.args.get("where"), self.tree.args.get("group")
        if where is not None:
            parts.where = self.binder.condition(where.this)
        for node in group.expressions if group is not None else []:
            bound = self.binder.value(node)
            parts.group.append(bound.key)
            if bound.has_key:
                self.binder.grouped[bound.sql] = f"any_value({bound.sql})"

    def _having(self, parts: _Parts) -> None:
        having = self.tree.args.get("having")
        if having is not None:
            parts.having = self.binder.condition(having.this)

    def _items(self) -> list[_Item]:
        items: list[_Item] = []
        for node in self.tree.expressions:
            if isinstance(node, exp.Star):
                items += [_Item(name, self._output(bound)) for name, bound in self.scope.all_columns()]
            elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
                qualifier = tuple(
                    part.name for part in (node.args.get("db"), node.args.get("table")) if part is not None
                )
                items += [_Item(name, self._output(bound)) for name, bound in self.scope.all_columns(qualifier)]
            else:
                items.append(self._item(node))
        return items

    def _output(self, bound: Bound) -> Bound:
        replacement = self.binder.grouped.get(bound.sql)
        return bound if replacement is None else Bound(replacement, bound.kind, bound.nullable)

    def _item(self, node: exp.Expression) -> _Item:
        if isinstance(node, exp.Alias):
            return _Item(node.alias, self.binder.value(node.this), node.alias.lower())
        if isinstance(node, exp.EQ):  # 'name' = value
            return _Item(node.this.name, self.binder.value(node.expression), node.this.name.lower())
        bound = self.binder.value(node)
        return _Item(node.name if isinstance(node, exp.Column) else "", bound)

    def _term(self, item: exp.Ordered, items: list[_Item]) -> str:
        node = item.this
        place = _position(node, len(items))
        if place is not None:
            return order_term(items[place].bound, bool(item.args.get("desc")))
        if isinstance(node, exp.Column) and not node.args.get("table"):
            named = [listed for listed in items if listed.alias == node.name.lower()]
            if named:
                return order_term(named[0].bound, bool(item.args.get("desc")))
        return order_term(self.binder.value(node), bool(item.args.get("desc")))

    def _natural_order(self) -> list[str]:
        """A plain SELECT of one table comes in the order of its clustered index, as SQL Server reads it."""
        if not (self.top or self.tree.args.get("limit")) or len(self.scope.sources) != 1 or self.binder.has_aggregate:
            return []
        source = self.scope.sources[0]
        if source.view is not None:
            return [f'{source.alias}."{name}"' for name in source.view.natural_order]
        if source.table is None or source.table.clustered is None:
            return []
        terms = []
        for column_id, descending in source.table.clustered.keys:
            column = source.table.by_id(column_id)
            terms.append(
                order_term(Bound(f"{source.alias}.{column.physical}", column.kind, column.nullable), descending)
            )
        return terms

    def _limit(self) -> str:
        limit, offset = self.tree.args.get("limit"), self.tree.args.get("offset")
        text = ""
        if offset is not None:
            text += f" OFFSET {self._count(offset.expression)}"
        if isinstance(limit, exp.Fetch):
            return text + f" LIMIT {self._count(limit.args['count'])}"
        if limit is None:
            return text
        options = limit.args.get("limit_options")
        if options is not None and options.args.get("percent"):
            raise unsupported("TOP (n) PERCENT")
        count = self._count(limit.expression)
        if options is not None and options.args.get("with_ties"):
            return text + f" FETCH FIRST ({count}) ROWS WITH TIES"
        return text + f" LIMIT {count}"

    def _count(self, node: exp.Expression) -> str:
        return f"({convert(self.binder.value(node), BIGINT).sql})"

    def _is_plain(self, parts: _Parts, distinct: bool) -> bool:
        return not (distinct or parts.group or parts.having or self.binder.has_aggregate or self.binder.has_window)

    def _assembled(self, parts: _Parts) -> str:
        listed = ", ".join(f"{item.bound.sql} AS c{number}" for number, item in enumerate(parts.items, 1))
        sql = f"SELECT {listed}"
        if parts.from_sql:
            sql += f" FROM {parts.from_sql}"
        if parts.where:
            sql += f" WHERE {parts.where}"
        if parts.group:
            sql += f" GROUP BY {', '.join(parts.group)}"
        if parts.having:
            sql += f" HAVING {parts.having}"
        if parts.order:
            sql += f" ORDER BY {', '.join(parts.order)}"
        return sql + parts.limit + parts.locks
