"""Parses column defaults as Db2's catalog prints them: literals and special registers."""

from __future__ import annotations

import re

from tailrace.connectors.db2.types.values import CHARACTERS, Db2Type
from tailrace.connectors.defaults import Default

_TEXT = re.compile(r"^\(?\s*'((?:[^']|'')*)'\s*\)?$", re.DOTALL)
_BINARY = re.compile(r"^(?:BX|X|BLOB\(X?|BINARY\(X?)'([0-9a-fA-F]*)'\)?$", re.IGNORECASE)
_NUMBER = re.compile(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")
_REGISTER = re.compile(r"^CURRENT[ _](DATE|TIME|TIMESTAMP)\b", re.IGNORECASE)
# DATE('2022-01-01') and the like.
_CAST = re.compile(r"^(?:DATE|TIME|TIMESTAMP)\s*\(\s*('(?:[^']|'')*')\s*\)$", re.IGNORECASE)
_WHOLE = ("SMALLINT", "INTEGER", "BIGINT", "TINYINT")
_UNSHOWN = ("BLOB", "CLOB", "DBCLOB", "XML")
_PADDED, _VARYING = ("CHAR", "GRAPHIC"), ("VARCHAR", "VARGRAPHIC")


def parse_default(definition: str | None, kind: Db2Type, *, is_plain: bool = False) -> Default | None:
    """What a definition is: `1`, `'abc'`, `X'01'` are literals, `CURRENT TIMESTAMP` is a function; NULL is none.

    The faults of the reference engine are those of `_text_as_reference`.
    """
    bare = (definition or "").strip()
    if not bare or bare.upper() == "NULL" or kind.name in _UNSHOWN:
        return None
    if is_plain and kind.name in CHARACTERS and not kind.is_binary:
        return _text_as_reference(bare, kind)
    if _REGISTER.match(bare):
        return Default(bare, is_function=True)
    if kind.is_binary:
        digits = _BINARY.match(bare)
        return Default(bare, digits[1] if digits else None)
    bare = _CAST.sub(r"\1", bare)
    quoted = _TEXT.match(bare)
    if quoted:
        content = quoted[1].replace("''", "'")
        return Default(bare, content.ljust(kind.bytes) if kind.name in _PADDED else content)
    if kind.name == "BOOLEAN":
        return Default(bare, bare)
    if kind.name not in CHARACTERS and _NUMBER.match(bare):
        return Default(bare, bare.rstrip(".") if kind.name in _WHOLE else bare)
    return Default(bare)


def _text_as_reference(bare: str, kind: Db2Type) -> Default | None:
    """What Db2DefaultValueConverter makes of the default of a text column, which it takes as it is but for quotes.

    Quotes within the text are still doubled, and a register or call is a text as well (`CURRENT USER`).
    """
    if kind.name not in (*_PADDED, *_VARYING):
        return None
    for start, end in (("('", "')"), ("'", "'")):
        if bare.startswith(start) and bare.endswith(end) and len(bare) >= len(start + end):
            bare = bare[len(start) : -len(end)]
            break
    return Default(bare, bare.ljust(kind.bytes) if kind.name in _PADDED else bare)
