"""Parses column defaults as the catalog prints them: a literal in parentheses, or an expression."""

from __future__ import annotations

import re

from tailrace.connectors.defaults import Default
from tailrace.connectors.sqlserver.types import times
from tailrace.connectors.sqlserver.types.values import BINARIES, SqlType

_TEXT = re.compile(r"^N?'((?:[^']|'')*)'$", re.DOTALL)
_OCTETS = re.compile(r"^0x((?:[0-9a-fA-F]{2})*)$")
_WHOLE = ("bigint", "int", "smallint", "tinyint")
_DECIMALS = ("decimal", "numeric", "money", "smallmoney")
_NUMBER = re.compile(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")
_INTEGER = re.compile(r"^[+-]?\d+$")


def parse_default(definition: str | None, kind: SqlType) -> Default | None:
    """What a definition is: `((255))` and `('abc')` are literals, `(newid())` is none."""
    if definition is None:
        return None
    if kind.is_clr:
        return Default(definition)
    bare = definition
    while bare.startswith("(") and bare.endswith(")") and _is_one(bare):
        bare = bare[1:-1].strip()
    if kind.name in BINARIES:
        digits = _OCTETS.match(bare)
        return Default(definition, digits[1] if digits else None)
    quoted = _TEXT.match(bare)
    if quoted:
        return Default(definition, _timed(quoted[1].replace("''", "'"), kind))
    if _NUMBER.match(bare):
        # The reference shows a decimal as text as it is written.
        return Default(definition, bare.rstrip(".") if kind.name in ("bit", *_WHOLE) else bare, as_written=True)
    return Default(definition)


def _timed(text: str, kind: SqlType) -> str:
    """The text of a default in the form that the column's conversion reads, as far as it is a date or time."""
    return times.default_text(text, kind.name) if kind.name in times.TYPES else text


def _is_one(text: str) -> bool:
    """Whether the first parenthesis is closed by the last one."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return place == len(text) - 1
    return False
