"""Parses column defaults as the catalog prints them: a literal in parentheses, or an expression."""

from __future__ import annotations

import re

from tailrace.connectors.defaults import Default
from tailrace.connectors.sqlserver.types.values import BINARIES, CHARACTERS, SqlType

_TEXT = re.compile(r"^N?'((?:[^']|'')*)'$", re.DOTALL)
_OCTETS = re.compile(r"^0x((?:[0-9a-fA-F]{2})*)$")
_NUMBERS = ("bigint", "int", "smallint", "tinyint", "float", "real")
_NUMBER = re.compile(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")


def parse_default(definition: str | None, kind: SqlType, *, faults: bool = False) -> Default | None:
    """What a definition is: `((255))` and `('abc')` are literals, `(newid())` is none.

    The faults of the reference engine: the default of a text column is what remains between quotes and then between
    parentheses, also of a call, with quotes doubled; a bit that is not `((1))` is false; a number is what stands
    between the last `(` and the first `)`.
    """
    if definition is None:
        return None
    if faults and kind.name in CHARACTERS:
        return Default(definition, _between(definition))
    if faults and kind.name == "bit":
        return Default(definition, "1" if definition == "((1))" else "0")
    bare = (_inner(definition) or "") if faults and kind.name in _NUMBERS else definition
    while bare.startswith("(") and bare.endswith(")") and _is_one(bare):
        bare = bare[1:-1].strip()
    if kind.name in BINARIES:
        digits = _OCTETS.match(bare)
        return Default(definition, digits[1] if digits else None)
    quoted = _TEXT.match(bare)
    if quoted:
        return Default(definition, quoted[1].replace("''", "'"))
    if _NUMBER.match(bare):
        is_whole = kind.name in ("bit", "tinyint", "smallint", "int", "bigint")
        # The reference shows a decimal as text as it is written.
        return Default(definition, bare.rstrip(".") if is_whole else bare, as_written=True)
    return Default(definition)


def _between(definition: str) -> str | None:
    """What SqlServerDefaultValueConverter takes for the text of a default."""
    first, last = definition.find("'") + 1, definition.rfind("'") if "'" in definition else len(definition)
    return None if first > last else _inner(definition[first:last])


def _inner(text: str) -> str | None:
    """What it takes for a number or a text among parentheses."""
    start, end = text.rfind("(") + 1, text.find(")") if ")" in text else len(text)
    return None if start > end or text[start:end].upper() == "NULL" else text[start:end]


def _is_one(text: str) -> bool:
    """Whether the first parenthesis is closed by the last one."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return place == len(text) - 1
    return False
