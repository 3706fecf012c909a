"""The text that the catalogue keeps of defaults, computed columns and checks: SQL Server writes it in its own form.

0 -> ((0))      'x' -> ('x')      -1.5 -> ((-1.5))      getdate() -> (getdate())      qty * 2 -> ([qty]*(2))
"""

from __future__ import annotations

from sqlglot import exp

from ..datatypes import SIZED, parse
from ..tsql.dialect import CAST, EMPTY_BINARY, MONEY

_BINARY = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.And: " AND ",
    exp.Or: " OR ",
    exp.Like: " like ",
}
_LARGEST_INT = 2_147_483_647


def definition_text(node: exp.Expression) -> str:
    """The text of an expression, in parentheses."""
    return f"({_text(_bare(node))})"


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _text(node: exp.Expression) -> str:
    if isinstance(node, exp.Paren):
        return f"({_text(node.this)})" if not isinstance(_bare(node), exp.Literal) else _text(_bare(node))
    if isinstance(node, exp.Literal):
        return _quoted(node.name) if node.is_string else f"({_number(node.name)})"
    if isinstance(node, exp.National):
        return "N" + _quoted(node.name)
    if isinstance(node, exp.Neg):
        inner = _bare(node.this)
        return f"(-{_number(inner.name)})" if isinstance(inner, exp.Literal) else f"-{_text(inner)}"
    if isinstance(node, exp.HexString):
        return f"0x{node.name}"
    if isinstance(node, exp.Null):
        return "NULL"
    if isinstance(node, exp.Column):
        return f"[{node.name}]"
    if isinstance(node, exp.Anonymous):
        return _call(node)
    if isinstance(node, exp.CurrentTimestamp):
        return "getdate()"
    if isinstance(node, (exp.CurrentUser, exp.SessionUser)):
        return "user_name()"
    if type(node) in _BINARY:
        return f"{_text(node.this)}{_BINARY[type(node)]}{_text(node.expression)}"
    return _condition(node)


def _condition(node: exp.Expression) -> str:
    if isinstance(node, exp.Not):
        inner = node.this
        if isinstance(inner, exp.Is):
            return f"{_text(inner.this)} IS NOT NULL"
        return f"NOT {_text(inner)}"
    if isinstance(node, exp.Is):
        return f"{_text(node.this)} IS NULL"
    if isinstance(node, exp.Between):
        low, high = _text(node.args["low"]), _text(node.args["high"])
        return f"{_text(node.this)}>={low} AND {_text(node.this)}<={high}"
    if isinstance(node, exp.In):
        return " OR ".join(f"{_text(node.this)}={_text(item)}" for item in reversed(node.expressions))
    if isinstance(node, exp.Case):
        arms = " ".join(f"when {_text(arm.this)} then {_text(arm.args['true'])}" for arm in node.args["ifs"])
        subject = f" {_text(node.this)}" if node.this is not None else ""
        default = node.args.get("default")
        return f"case{subject} {arms}{f' else {_text(default)}' if default is not None else ''} end"
    return node.sql(dialect="tsql")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _number(text: str) -> str:
    """A number as it is kept: floats with an exponent of three digits, whole numbers beyond int with a point."""
    if "e" in text.lower():
        mantissa, _, exponent = text.lower().partition("e")
        sign = "-" if exponent.startswith("-") else "+"
        return f"{mantissa}e{sign}{exponent.lstrip('+-').lstrip('0').rjust(3, '0')}"
    return f"{text}." if text.isdigit() and int(text) > _LARGEST_INT else text


def _call(node: exp.Anonymous) -> str:
    name = str(node.this if isinstance(node.this, str) else node.this.name)
    if name == MONEY:
        return f"(${node.expressions[0].name})"
    if name == EMPTY_BINARY:
        return "0x"
    if name == CAST:
        value, declared, style, _ = node.expressions
        rest = "" if isinstance(style, exp.Null) else f",({style.name})"
        return f"CONVERT({_type(declared.name)},{_text(value)}{rest})"
    return f"{name.lower()}({','.join(_argument(argument) for argument in node.expressions)})"


def _argument(node: exp.Expression) -> str:
    """An argument; the parts of DATEADD and the like are words, no columns."""
    if isinstance(node, exp.Column) and node.name.lower() in (
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "week",
        "quarter",
    ):
        return node.name.lower()
    return _text(node)


def _type(declared: str) -> str:
    try:
        kind = parse(declared)
    except KeyError:
        return f"[{declared}]"
    text = str(kind)
    name, bracket, rest = text.partition("(")
    shown = kind.name in SIZED or kind.family == "decimal" or "(" in declared
    return f"[{name}]{bracket}{rest}" if shown and bracket else f"[{name}]"
