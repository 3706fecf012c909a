"""Column defaults: what the schema of a column with a DEFAULT says.

As in Debezium: a literal is the schema's default, in the form the converter prints; a function or expression reads as
the type's zero in a required column and as none in an optional one; NULL is no default.
"""

from __future__ import annotations

import json
import logging
import re

import pyarrow as pa

from tailrace.connectors.postgres.values import ValueType
from tailrace.errors import DecodeError
from tailrace.events.encode.json import encode

log = logging.getLogger(__name__)

_LITERAL = re.compile(r"^\(?'((?:[^']|'')*)'(?:::[\w\s\".,()\[\]]+)?\)?$")
_NUMBER = re.compile(r"^\(?(-?\d+(?:\.\d+)?)\)?(?:::[\w\s(),]+)?$")
_BOOLEAN = {"true": "t", "false": "f"}
# The reference engine gives these no default.
_NONE = ("struct", "array", "map")


def column_default(expression: str | None, required: bool, kind: ValueType) -> object:
    """The JSON form of a default, None for none."""
    if expression is None or kind.schema.type in _NONE or expression.startswith("NULL"):
        return None
    text = _literal(expression)
    if text is None:
        return kind.zero if required else None
    try:
        value = kind.convert(pa.array([text], pa.string()))
        return json.loads(encode(value, kind.schema)[0].as_py())
    except (pa.ArrowInvalid, DecodeError, ValueError) as error:
        log.warning("default %s cannot be read as %s (%s); the schema has none", expression, kind.schema.type, error)
        return None


def _literal(expression: str) -> str | None:
    if expression in _BOOLEAN:
        return _BOOLEAN[expression]
    quoted = _LITERAL.match(expression)
    if quoted:
        return quoted.group(1).replace("''", "'")
    number = _NUMBER.match(expression)
    return number.group(1) if number else None
