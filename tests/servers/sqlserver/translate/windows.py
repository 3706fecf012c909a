"""Translates aggregates and window functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from ..datatypes import BIGINT, INT, MAX, NATIONAL, make
from ..tsql.errors import error, unsupported
from .bound import Bound
from .convert import convert

if TYPE_CHECKING:
    from .binder import Binder


def _argument(binder: Binder, arguments: list[exp.Expression]) -> tuple[Bound, bool]:
    """The argument of an aggregate, and whether it is DISTINCT."""
    binder.has_aggregate = True
    node = arguments[0]
    distinct = isinstance(node, exp.Distinct)
    with binder.aggregate():
        return binder.value(node.expressions[0] if isinstance(node, exp.Distinct) else node), distinct


def _count(kind: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    storage = "int8" if kind == "bigint" else "int4"

    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        binder.has_aggregate = True
        if isinstance(arguments[0], exp.Star):
            return Bound(f"count(*)::{storage}", make(kind), False)
        value, distinct = _argument(binder, arguments)
        return Bound(f"count({'DISTINCT ' if distinct else ''}{value.key})::{storage}", make(kind), False)

    return bind


def _sum(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value, distinct = _argument(binder, arguments)
    word = "DISTINCT " if distinct else ""
    kind = value.kind
    if kind.family == "integer":
        kind = BIGINT if kind.name == "bigint" else INT
    elif kind.family == "decimal":
        kind = make("decimal", 38, kind.scale)
    elif kind.family == "money":
        kind = make("money")
    elif kind.family == "float":
        kind = make("float")
    else:
        raise error(8117, kind.name, "sum")
    return Bound(f"sum({word}{value.sql})::{kind.storage}", kind)


def _average(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value, distinct = _argument(binder, arguments)
    word = "DISTINCT " if distinct else ""
    kind = value.kind
    if kind.family == "integer":
        kind = BIGINT if kind.name == "bigint" else INT
        return Bound(f"trunc(avg({word}{value.sql}))::{kind.storage}", kind)
    if kind.family == "decimal":
        kind = make("decimal", 38, max(kind.scale, 6))
        return Bound(f"round(avg({word}{value.sql}), {kind.scale})", kind)
    return Bound(f"avg({word}{value.sql})::{kind.storage}", kind)


def _extreme(name: str, direction: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        value, _ = _argument(binder, arguments)
        if value.has_key:
            chosen = (
                f"(array_agg({value.sql} ORDER BY {value.key} {direction}) FILTER (WHERE {value.sql} IS NOT NULL))[1]"
            )
            return Bound(chosen, value.kind)
        return Bound(f"{name}({value.sql})", value.kind)

    return bind


def _statistic(name: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        value, _ = _argument(binder, arguments)
        return Bound(f"{name}(({value.sql})::float8)", make("float"))

    return bind


def string_agg(binder: Binder, node: exp.GroupConcat) -> Bound:
    """STRING_AGG, with or without WITHIN GROUP."""
    binder.has_aggregate = True
    inner, order = node.this, ""
    with binder.aggregate():
        if isinstance(inner, exp.Order):
            terms = [
                f"{binder.value(item.this).key}{' DESC' if item.args.get('desc') else ''}" for item in inner.expressions
            ]
            order = f" ORDER BY {', '.join(terms)}"
            inner = inner.this
        value = binder.value(inner)
        separator = binder.value(node.args["separator"])
    name = "nvarchar" if value.kind.name in NATIONAL else "varchar"
    text = convert(value, make(name, MAX))
    return Bound(f"string_agg({text.sql}, {separator.sql}{order})", text.kind)


def _ranking(name: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        values = ", ".join(f"({value.sql})::int4" for value in binder.values(arguments))
        return Bound(f"{name}({values})", BIGINT, False)

    return bind


def _neighbour(name: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        value = binder.value(arguments[0])
        rest = [f"({binder.value(arguments[1]).sql})::int4"] if len(arguments) > 1 else []
        rest += [convert(binder.value(arguments[2]), value.kind).sql] if len(arguments) > 2 else []
        return Bound(f"{name}({', '.join([value.sql, *rest])})", value.kind)

    return bind


def bind(binder: Binder, node: exp.Window) -> Bound:
    """A function with OVER."""
    before = binder.has_aggregate
    inner = binder.value(node.this)
    binder.has_aggregate = before
    binder.has_window = True
    parts = []
    if node.args.get("partition_by"):
        parts.append("PARTITION BY " + ", ".join(binder.value(item).key for item in node.args["partition_by"]))
    order = node.args.get("order")
    if order is not None:
        from .query import order_term  # queries hold windows

        terms = [order_term(binder.value(item.this), bool(item.args.get("desc"))) for item in order.expressions]
        parts.append("ORDER BY " + ", ".join(terms))
    spec = node.args.get("spec")
    if spec is not None:
        parts.append(_frame(spec))
    call, _, cast = inner.sql.rpartition("::")
    over = f" OVER ({' '.join(parts)})"
    if call and cast in ("int4", "int8", "numeric", "float8", "float4") and call.endswith(")"):
        return Bound(f"({call}{over})::{cast}", inner.kind, inner.nullable)
    if inner.sql.startswith("(array_agg"):
        raise unsupported("MIN and MAX of texts with OVER")
    return Bound(f"({inner.sql}{over})", inner.kind, inner.nullable)


def _frame(spec: exp.WindowSpec) -> str:
    def side(value: object, direction: object) -> str:
        text = value if isinstance(value, str) else value.name  # type: ignore[attr-defined]
        return f"{text} {direction or ''}".strip()

    kind = str(spec.args["kind"]).upper()
    start = side(spec.args["start"], spec.args.get("start_side"))
    end = spec.args.get("end")
    if end is None:
        return f"{kind} {start}"
    return f"{kind} BETWEEN {start} AND {side(end, spec.args.get('end_side'))}"


FUNCTIONS: dict[str, Callable[[Binder, list[exp.Expression]], Bound]] = {
    "count": _count("int"),
    "count_big": _count("bigint"),
    "sum": _sum,
    "avg": _average,
    "min": _extreme("min", ""),
    "max": _extreme("max", "DESC"),
    "stdev": _statistic("stddev_samp"),
    "stdevp": _statistic("stddev_pop"),
    "var": _statistic("var_samp"),
    "varp": _statistic("var_pop"),
    "row_number": _ranking("row_number"),
    "rank": _ranking("rank"),
    "dense_rank": _ranking("dense_rank"),
    "ntile": _ranking("ntile"),
    "lag": _neighbour("lag"),
    "lead": _neighbour("lead"),
    "first_value": _neighbour("first_value"),
    "last_value": _neighbour("last_value"),
}
