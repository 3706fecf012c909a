"""Column defaults: what the schema of a column with a DEFAULT says.

As in Debezium: a literal is the schema's default, in the form the converter prints; a function reads as the type's zero
in a required column and as none in an optional one; NULL, and any other expression, is no default.
"""

from __future__ import annotations

import json
import logging
import re
from decimal import Decimal

import pyarrow as pa

from tailrace.connectors.postgres.types.values import ValueType
from tailrace.errors import DecodeError
from tailrace.events.encode.json import encode

log = logging.getLogger(__name__)

_LITERAL = re.compile(r"^\(?B?'((?:[^']|'')*)'(?:::[\w\s\".,()\[\]]+)?\)?$")
_NUMBER = re.compile(r"^\(?(-?\d+(?:\.\d+)?)\)?(?:::[\w\s(),]+)?$")
_FUNCTION = re.compile(r"^\(?[A-Za-z0-9_.]+\(")
_NOW = ("current_timestamp", "current_time", "current_date", "localtime", "localtimestamp")
# An enum shows literals, and nothing for a function.
_ENUM = "io.debezium.data.Enum"
_BOOLEAN = {"true": "t", "false": "f"}


def column_default(expression: str | None, required: bool, kind: ValueType, faults: bool = False) -> object:
    """The JSON form of a default, None for none. With `faults` the first quoted text of any expression is a literal."""
    is_shown = kind.zero is not None or kind.literals or kind.schema.name == _ENUM
    if expression is None or not is_shown or expression.startswith("NULL"):
        return None
    if _FUNCTION.match(expression) or expression.lower() in _NOW:
        return kind.zero if required and not kind.literals else None
    text = _literal(expression)
    if text is None and faults:
        quoted = re.search("'(.*?)'", expression)
        text = quoted and quoted[1]
    if text is None:
        return None
    try:
        if kind.digits is not None and kind.digits > 0:
            text = format(Decimal(text).quantize(Decimal(1).scaleb(-kind.digits)), "f")
        value = kind.convert(pa.array([text], pa.string()))
        return json.loads(encode(value, kind.schema)[0].as_py())
    except (pa.ArrowInvalid, ArithmeticError, DecodeError, ValueError) as error:
        log.warning("default %s cannot be read as %s (%s); the schema has none", expression, kind.schema.type, error)
        return None


def _literal(expression: str) -> str | None:
    if expression in _BOOLEAN:
        return _BOOLEAN[expression]
    quoted = _LITERAL.match(expression)
    if quoted:
        return quoted[1].replace("''", "'")
    number = _NUMBER.match(expression)
    return number[1] if number else None
