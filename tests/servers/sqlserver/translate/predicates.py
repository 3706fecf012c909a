"""Translates conditions: comparisons by SQL Server's collations, LIKE, IN, EXISTS."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from ..catalogue.literals import quote
from ..datatypes import common, make
from ..tds.collations import ignores_case
from ..tsql.errors import error
from .bound import Bound
from .convert import convert

if TYPE_CHECKING:
    from .binder import Binder

_COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
NODES = (*_COMPARISONS, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.Exists)
_EXACT = ("integer", "decimal", "money")


def bind(binder: Binder, node: exp.Expression) -> str:
    """A condition as PostgreSQL's SQL."""
    if isinstance(node, exp.Paren):
        return f"({bind(binder, node.this)})"
    if isinstance(node, (exp.And, exp.Or)):
        return _connected(binder, node)
    if isinstance(node, exp.Not):
        return f"(NOT {bind(binder, node.this)})"
    if type(node) in _COMPARISONS:
        return _comparison(binder, node)
    if isinstance(node, exp.Is):
        return f"({binder.value(node.this).sql} IS NULL)"
    if isinstance(node, exp.In):
        return _in(binder, node)
    if isinstance(node, exp.Between):
        return _between(binder, node)
    if isinstance(node, exp.Like):
        text = _like(binder, node.this, node.expression, None)
        return f"(NOT {text})" if node.args.get("negate") else text
    if isinstance(node, exp.Escape):
        text = _like(binder, node.this.this, node.this.expression, node.expression)
        return f"(NOT {text})" if node.this.args.get("negate") else text
    if isinstance(node, exp.Exists):
        return f"EXISTS ({binder.query(node.this).sql})"
    raise error(4145, node.sql(dialect="tsql")[:60])


def _connected(binder: Binder, node: exp.Connector) -> str:
    """AND and OR; long chains lean to the left and are walked without recursion."""
    operator = "AND" if isinstance(node, exp.And) else "OR"
    parts = []
    current: exp.Expression = node
    while isinstance(current, type(node)):
        parts.append(bind(binder, current.expression))
        current = current.this
    parts.append(bind(binder, current))
    return "(" + f" {operator} ".join(reversed(parts)) + ")"


def _comparison(binder: Binder, node: exp.Expression) -> str:
    operator = _COMPARISONS[type(node)]
    if isinstance(node.expression, (exp.Any, exp.All)):
        left = binder.value(node.this)
        word = "ANY" if isinstance(node.expression, exp.Any) else "ALL"
        return f"({left.key} {operator} {word} ({_keys(binder, left, node.expression.this)}))"
    return compare(binder.value(node.this), operator, binder.value(node.expression))


def compare(left: Bound, operator: str, right: Bound) -> str:
    """The comparison of two values."""
    left, right = comparable(left, right)
    return f"({left.key} {operator} {right.key})"


def comparable(left: Bound, right: Bound) -> tuple[Bound, Bound]:
    """Two values as PostgreSQL can compare them: of one type, but for exact numbers, which compare as they are."""
    if left.untyped_null or right.untyped_null:
        kind = right.kind if left.untyped_null else left.kind
        return convert(left, kind), convert(right, kind)
    if left.kind.family in _EXACT and right.kind.family in _EXACT:
        return left, right
    if left.kind.family == right.kind.family == "string":
        collation = left.kind.collation or right.kind.collation
        return _collated(left, collation), _collated(right, collation)
    kind = common(left.kind, right.kind)
    if kind.family == "binary" and left.kind.family == right.kind.family:
        return left, right
    return convert(left, kind, explicit=kind.family == "binary"), convert(right, kind, explicit=kind.family == "binary")


def _collated(value: Bound, collation: str | None) -> Bound:
    kind = value.kind
    return Bound(
        value.sql,
        make("nvarchar", kind.length)
        if collation is None
        else type(kind)("nvarchar", kind.length, collation=collation),
        value.nullable,
    )


def _in(binder: Binder, node: exp.In) -> str:
    left = binder.value(node.this)
    query = node.args.get("query")
    if query is not None:
        return f"({left.key} IN ({_keys(binder, left, query)}))"
    parts = [compare(left, "=", binder.value(item)) for item in node.expressions]
    return "(" + " OR ".join(parts) + ")"


def _keys(binder: Binder, left: Bound, query: exp.Expression) -> str:
    """A query's values, as the left side of IN compares with them."""
    inner = binder.query(query.this if isinstance(query, exp.Subquery) else query)
    if len(inner.columns) != 1:
        raise error(116)
    value = Bound("q.c1", inner.columns[0].kind)
    return f"SELECT {comparable(left, value)[1].key} FROM ({inner.sql}) q"


def _between(binder: Binder, node: exp.Between) -> str:
    value = binder.value(node.this)
    low = compare(value, ">=", binder.value(node.args["low"]))
    return f"({low} AND {compare(value, '<=', binder.value(node.args['high']))})"


def _like(binder: Binder, value: exp.Expression, pattern: exp.Expression, escape: exp.Expression | None) -> str:
    left = convert(binder.value(value), make("nvarchar", -1))
    right = binder.value(pattern)
    collation = binder.value(value).kind.collation
    mark = "" if escape is None else escape.name
    subject = f"lower({left.sql})" if ignores_case(collation) else left.sql
    if right.is_text_literal and isinstance(pattern, (exp.Literal, exp.National)):
        text = pattern.name.lower() if ignores_case(collation) else pattern.name
        if "[" not in text:
            return f"({subject} LIKE {quote(text)} ESCAPE {quote(mark)})"
        return f"({subject} ~ {quote(like_regex(text, mark))})"
    other = convert(right, make("nvarchar", -1)).sql
    other = f"lower({other})" if ignores_case(collation) else other
    return f"({subject} ~ ms.like_regex({other}, {quote(mark)}))"


def like_regex(pattern: str, escape: str) -> str:
    """The regular expression of a LIKE pattern with character sets."""
    out = "^"
    position = 0
    while position < len(pattern):
        character = pattern[position]
        end = pattern.find("]", position + 1)
        if escape and character == escape and position + 1 < len(pattern):
            position += 1
            out += re.escape(pattern[position])
        elif character == "%":
            out += ".*"
        elif character == "_":
            out += "."
        elif character == "[" and end > 0:
            out += "[" + pattern[position + 1 : end].replace("\\", "\\\\").replace("[", "\\[") + "]"
            position = end
        else:
            out += re.escape(character)
        position += 1
    return out + "$"
