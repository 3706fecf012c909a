"""Parses column defaults as the catalog prints them: a literal in parentheses, or an expression."""

from __future__ import annotations

import re

from tailrace.connectors.defaults import Default
from tailrace.connectors.sqlserver.types.values import BINARIES, SqlType

_TEXT = re.compile(r"^N?'((?:[^']|'')*)'$", re.DOTALL)
_NUMBER = re.compile(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")


def parse_default(definition: str | None, kind: SqlType) -> Default | None:
    """What a definition is: `((255))` and `('abc')` are literals, `(newid())` is none. Binary ones are not shown."""
    if definition is None:
        return None
    bare = definition
    while bare.startswith("(") and bare.endswith(")") and _is_one(bare):
        bare = bare[1:-1].strip()
    if kind.name in BINARIES:
        return Default(definition)
    quoted = _TEXT.match(bare)
    if quoted:
        return Default(definition, quoted[1].replace("''", "'"))
    if _NUMBER.match(bare):
        is_whole = kind.name in ("bit", "tinyint", "smallint", "int", "bigint")
        return Default(definition, bare.rstrip(".") if is_whole else bare)
    return Default(definition)


def _is_one(text: str) -> bool:
    """Whether the first parenthesis is closed by the last one."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return place == len(text) - 1
    return False
