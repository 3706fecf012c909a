"""Column defaults as PostgreSQL prints their expressions (pg_get_expr)."""

from __future__ import annotations

import re

from tailrace.connectors.defaults import Default

_LITERAL = re.compile(r"^\(?B?'((?:[^']|'')*)'(?:::[\w\s\".,()\[\]]+)?\)?$")
_NUMBER = re.compile(r"^\(?(-?\d+(?:\.\d+)?)\)?(?:::[\w\s(),]+)?$")
_FUNCTION = re.compile(r"^\(?[A-Za-z0-9_.]+\(")
_NOW = ("current_timestamp", "current_time", "current_date", "localtime", "localtimestamp")
_BOOLEAN = {"true": "t", "false": "f"}


def parse_default(expression: str | None, faults: bool = False) -> Default | None:
    """What an expression is. With `faults` the first quoted text in any expression is a literal."""
    if expression is None:
        return None
    if expression.startswith("NULL"):
        return Default(expression)
    if _FUNCTION.match(expression) or expression.lower() in _NOW:
        return Default(expression, is_function=True)
    text = _literal(expression)
    if text is None and faults:
        quoted = re.search("'(.*?)'", expression)
        text = quoted and quoted[1]
    return Default(expression, text)


def _literal(expression: str) -> str | None:
    if expression in _BOOLEAN:
        return _BOOLEAN[expression]
    quoted = _LITERAL.match(expression)
    if quoted:
        return quoted[1].replace("''", "'")
    number = _NUMBER.match(expression)
    return number[1] if number else None
