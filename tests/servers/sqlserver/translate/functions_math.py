"""Translates functions of numbers, and those that choose between values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from ..datatypes import FLOAT, INT, make
from .bound import NULL, Bound
from .convert import convert
from .predicates import compare

if TYPE_CHECKING:
    from .binder import Binder


def _isnull(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value, other = binder.values(arguments)
    if value.untyped_null:
        return other
    other = convert(other, value.kind)
    return Bound(f"coalesce({value.sql}, {other.sql})", value.kind, other.nullable)


def _coalesce(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    values = binder.same_type(binder.values(arguments))
    listed = ", ".join(value.sql for value in values)
    return Bound(f"coalesce({listed})", values[0].kind, all(value.nullable for value in values))


def _nullif(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value, other = binder.values(arguments)
    return Bound(f"(CASE WHEN {compare(value, '=', other)} THEN NULL ELSE {value.sql} END)", value.kind)


def _iif(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    condition = binder.condition(arguments[0])
    then, otherwise = binder.same_type(binder.values(arguments[1:]))
    return Bound(
        f"(CASE WHEN {condition} THEN {then.sql} ELSE {otherwise.sql} END)",
        then.kind,
        then.nullable or otherwise.nullable,
    )


def _choose(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    index = binder.value(arguments[0])
    values = binder.same_type(binder.values(arguments[1:]))
    arms = " ".join(f"WHEN {number} THEN {value.sql}" for number, value in enumerate(values, 1))
    return Bound(f"(CASE {index.sql} {arms} END)", values[0].kind)


def _same(name: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    """A function whose result has the type of its argument."""

    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        value = binder.value(arguments[0])
        value = convert(value, FLOAT) if value.kind.family == "string" else value
        kind = value.kind
        if kind.family == "decimal" and name in ("floor", "ceil"):
            kind = make(kind.name, kind.precision, 0)
        return Bound(f"{name}({value.sql})::{kind.storage}", kind, value.nullable)

    return bind


def _float(name: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        values = [convert(value, FLOAT) for value in binder.values(arguments)]
        return Bound(
            f"{name}({', '.join(value.sql for value in values)})", FLOAT, any(value.nullable for value in values)
        )

    return bind


def _round(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = binder.value(arguments[0])
    digits = convert(binder.value(arguments[1]), INT)
    function = "trunc" if len(arguments) > 2 and arguments[2].name != "0" else "round"
    return Bound(f"{function}(({value.sql})::numeric, {digits.sql})::{value.kind.storage}", value.kind, value.nullable)


def _power(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value, exponent = binder.values(arguments)
    return Bound(
        f"power(({value.sql})::float8, ({exponent.sql})::float8)::{value.kind.storage}", value.kind, value.nullable
    )


def _rand(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound("random()", FLOAT, False)


def _isnumeric(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = convert(binder.value(arguments[0]), make("nvarchar", 4000))
    return Bound(
        rf"coalesce(({value.sql}) ~ '^\s*[+-]?[$]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$', false)::int4", INT, False
    )


def _newid(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound("ms.guid(gen_random_uuid())", make("uniqueidentifier"), False)


def _checksum(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    values = binder.values(arguments) or [NULL]
    texts = ", ".join(f"({value.key})::text" for value in values)
    return Bound(f"hashtext(concat_ws('|', {texts}))", INT, False)


def _pi(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound("pi()", FLOAT, False)


FUNCTIONS: dict[str, Callable[[Binder, list[exp.Expression]], Bound]] = {
    "isnull": _isnull,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "iif": _iif,
    "choose": _choose,
    "abs": _same("abs"),
    "floor": _same("floor"),
    "ceiling": _same("ceil"),
    "sign": _same("sign"),
    "sqrt": _float("sqrt"),
    "exp": _float("exp"),
    "log": _float("ln"),
    "log10": _float("log10"),
    "sin": _float("sin"),
    "cos": _float("cos"),
    "round": _round,
    "power": _power,
    "rand": _rand,
    "pi": _pi,
    "isnumeric": _isnumeric,
    "newid": _newid,
    "newsequentialid": _newid,
    "checksum": _checksum,
    "binary_checksum": _checksum,
}
