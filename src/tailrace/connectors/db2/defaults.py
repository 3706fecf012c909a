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
_UNSHOWN = ("DECFLOAT", "BLOB", "CLOB", "DBCLOB", "XML")


def parse_default(definition: str | None, kind: Db2Type, *, faults: bool = False) -> Default | None:
    """What a definition is: `1`, `'abc'`, `X'01'` are literals, `CURRENT TIMESTAMP` is a function; NULL is none.

    The fault of the reference engine: quotes within a text are still doubled.
    """
    bare = (definition or "").strip()
    if not bare or bare.upper() == "NULL" or kind.name in _UNSHOWN:
        return None
    if _REGISTER.match(bare):
        return Default(bare, is_function=True)
    if kind.is_binary:
        digits = _BINARY.match(bare)
        return Default(bare, digits[1] if digits else None)
    bare = _CAST.sub(r"\1", bare)
    quoted = _TEXT.match(bare)
    if quoted:
        content = quoted[1] if faults else quoted[1].replace("''", "'")
        is_padded = kind.name in ("CHAR", "GRAPHIC")
        return Default(bare, content.ljust(kind.bytes) if is_padded else content)
    if kind.name == "BOOLEAN":
        return Default(bare, bare)
    if kind.name not in CHARACTERS and _NUMBER.match(bare):
        return Default(bare, bare.rstrip(".") if kind.name in _WHOLE else bare)
    return Default(bare)
