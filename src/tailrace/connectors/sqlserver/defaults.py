"""Parses column defaults as the catalog prints them: a literal in parentheses, or an expression."""

from __future__ import annotations

import re

from tailrace.connectors.defaults import Default
from tailrace.connectors.sqlserver.types import times
from tailrace.connectors.sqlserver.types.values import BINARIES, CHARACTERS, SqlType

_TEXT = re.compile(r"^N?'((?:[^']|'')*)'$", re.DOTALL)
_OCTETS = re.compile(r"^0x((?:[0-9a-fA-F]{2})*)$")
_WHOLE = ("bigint", "int", "smallint", "tinyint")
_DECIMALS = ("decimal", "numeric", "money", "smallmoney")
_NUMBER = re.compile(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")
_INTEGER = re.compile(r"^[+-]?\d+$")


def parse_default(definition: str | None, kind: SqlType, *, is_cut: bool = False) -> Default | None:
    """What a definition is: `((255))` and `('abc')` are literals, `(newid())` is none."""
    if definition is None:
        return None
    if kind.is_clr:
        return Default(definition)
    if is_cut:
        return _as_reference(definition, kind)
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


def _as_reference(definition: str, kind: SqlType) -> Default:
    """What SqlServerDefaultValueConverter makes of a definition, which it cuts at fixed places.

    Its faults: the default of a text column is what remains between quotes and then between parentheses, also of a
    call, with quotes doubled; a bit that is not `((1))` is false; an integer or float is what stands between the last
    `(` and the first `)`, so one in quotes is none; a column of an alias type has none.
    """
    if kind.alias is not None:
        return Default(definition)
    if kind.name in CHARACTERS:
        return Default(definition, _between(definition))
    if kind.name == "bit":
        return Default(definition, "1" if definition == "((1))" else "0")
    if kind.name in BINARIES:
        digits = _OCTETS.match(definition[1:-1])
        return Default(definition, digits[1] if digits else None)
    if kind.name in _WHOLE:
        inner = _inner(definition) or ""
        inner = inner.removesuffix(".") if kind.name == "bigint" else inner
        return Default(definition, inner if _INTEGER.match(inner) else None)
    text = (_inner(definition) or "") if kind.name in ("float", "real") else definition[2:-2]
    if kind.name in times.TYPES:
        return Default(definition, _timed(text, kind))
    return Default(definition, text if _NUMBER.match(text) else None, as_written=kind.name in _DECIMALS)


def _timed(text: str, kind: SqlType) -> str:
    """The text of a default in the form that the column's conversion reads, as far as it is a date or time."""
    return times.default_text(text, kind.name) if kind.name in times.TYPES else text


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
