"""Translates arithmetic: the types of results and what + means for texts and dates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from ..datatypes import MAX, NATIONAL, SqlType, common, integer_digits, make
from ..tsql.errors import error
from .bound import Bound
from .convert import convert, from_ticks, ticks

if TYPE_CHECKING:
    from .binder import Binder

_DAY = 864_000_000_000
_EXACT = ("integer", "decimal", "money")


def _arithmetic(operator: str) -> Callable[[Binder, exp.Binary], Bound]:
    def bind(binder: Binder, node: exp.Binary) -> Bound:
        left, right = binder.value(node.this), binder.value(node.expression)
        if left.untyped_null and not right.untyped_null:
            left = convert(left, right.kind)
        if right.untyped_null and not left.untyped_null:
            right = convert(right, left.kind)
        nullable = left.nullable or right.nullable
        texts = ("string", "binary", "xml")
        if operator == "+" and left.kind.family in texts and right.kind.family in texts:
            return _concatenated(left, right)
        if "temporal" in (left.kind.family, right.kind.family):
            return _moved(operator, left, right)
        sql, kind = _computed(operator, left, right)
        return Bound(sql, kind, nullable)

    return bind


def _concatenated(left: Bound, right: Bound) -> Bound:
    nullable = left.nullable or right.nullable
    if left.kind.family == "binary":
        name = "varbinary"
    else:
        name = "nvarchar" if {left.kind.name, right.kind.name} & NATIONAL else "varchar"
    if MAX in (left.kind.length, right.kind.length) or left.kind.is_large or right.kind.is_large:
        length = MAX
    else:
        length = min(left.kind.length + right.kind.length, 4000 if name == "nvarchar" else 8000)
    collation = left.kind.collation or right.kind.collation
    return Bound(f"({left.sql} || {right.sql})", SqlType(name, length, collation=collation), nullable)


def _moved(operator: str, left: Bound, right: Bound) -> Bound:
    """A datetime plus or minus days."""
    if operator not in "+-":
        raise error(8117, left.kind.name, operator)
    moment, days = (left, right) if left.kind.family == "temporal" else (right, left)
    if moment.kind.name not in ("datetime", "smalldatetime"):
        raise error(206, days.kind.name, moment.kind.name)
    if days.kind.family == "temporal":
        days = convert(days, make("float"))
    elif days.kind.family == "string":
        days = convert(convert(days, make("datetime")), make("float"))
    amount = f"((({days.sql})::numeric) * {_DAY})::int8"
    return Bound(
        from_ticks(f"({ticks(moment)}) {operator} {amount}", moment.kind), moment.kind, left.nullable or right.nullable
    )


def _computed(operator: str, left: Bound, right: Bound) -> tuple[str, SqlType]:
    kind = common(left.kind, right.kind)
    if kind.family in ("string", "binary"):
        raise error(8117, kind.name, operator)
    left, right = (_number(side, kind) for side in (left, right))
    if kind.family == "decimal":
        kind = _decimal_result(operator, left.kind, right.kind, kind.name)
        sql = f"({left.sql} {operator} {right.sql})"
        return (f"round({sql}, {kind.scale})" if operator == "/" else sql), kind
    if kind.name == "bit" and operator in "+-*/":
        raise error(402, operator)
    sql = f"({left.sql} {operator} {right.sql})"
    if kind.family == "money":
        sql = f"round({sql}, 4)"
    return sql, kind


def _number(value: Bound, kind: SqlType) -> Bound:
    """An operand as a number; whole numbers stay what they are beside decimals."""
    if value.kind.family in _EXACT and kind.family in _EXACT:
        if kind.family == "integer":
            return convert(value, kind)
        return value if value.kind.family != "integer" else Bound(f"({value.sql})::numeric", value.kind, value.nullable)
    return convert(value, kind)


def _decimal_result(operator: str, left: SqlType, right: SqlType, name: str) -> SqlType:
    p1, s1 = integer_digits(left)
    p2, s2 = integer_digits(right)
    if operator in "+-":
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif operator == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    elif operator == "/":
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    if precision > 38:
        scale = max(min(scale, 38 - (precision - scale)), min(scale, 6))
        precision = 38
    return make(name, precision, scale)


def _negative(binder: Binder, node: exp.Neg) -> Bound:
    inner = binder.value(node.this)
    if inner.kind.name in ("tinyint", "bit"):
        inner = convert(inner, make("smallint"))
    return Bound(f"(-{inner.sql})", inner.kind, inner.nullable)


def _bitwise(operator: str) -> Callable[[Binder, exp.Binary], Bound]:
    def bind(binder: Binder, node: exp.Binary) -> Bound:
        left, right = binder.value(node.this), binder.value(node.expression)
        kinds = [side.kind for side in (left, right) if side.kind.family == "integer"]
        kind = common(*kinds) if len(kinds) == 2 else kinds[0] if kinds else make("int")
        left, right = (convert(side, kind, explicit=True) for side in (left, right))
        return Bound(f"({left.sql} {operator} {right.sql})", kind, left.nullable or right.nullable)

    return bind


def _inverted(binder: Binder, node: exp.BitwiseNot) -> Bound:
    inner = binder.value(node.this)
    return Bound(
        f"(1 - {inner.sql})::int2" if inner.kind.name == "bit" else f"(~ {inner.sql})", inner.kind, inner.nullable
    )


NODES: dict[type, Callable[..., Bound]] = {
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.Mod: _arithmetic("%"),
    exp.Neg: _negative,
    exp.BitwiseAnd: _bitwise("&"),
    exp.BitwiseOr: _bitwise("|"),
    exp.BitwiseXor: _bitwise("#"),
    exp.BitwiseNot: _inverted,
}
