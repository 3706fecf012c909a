"""Splits the SQL of a scenario into statements and directives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PIECE = re.compile(
    r"""
    (?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$ .*? \$(?P=tag)\$ )
    | (?P<comment> --[^\n]* | /\*.*?\*/ )
    | (?P<end> ; )
    """,
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(r"--\s*@(\w+)\s*(.*?)\s*")


@dataclass(frozen=True)
class Statement:
    """SQL to execute as it is."""

    text: str


@dataclass(frozen=True)
class Directive:
    """A comment line `-- @name argument`."""

    name: str
    argument: str = ""


def split(text: str) -> Iterator[Statement | Directive]:
    """The steps of a script in order; comments are dropped, semicolons in quotes do not end a statement."""
    statement, position = "", 0
    for piece in _PIECE.finditer(text):
        statement += text[position : piece.start()]
        position = piece.end()
        if piece["end"]:
            yield from _statement(statement)
            statement = ""
        elif piece["comment"]:
            directive = _DIRECTIVE.fullmatch(piece["comment"])
            if directive:
                yield Directive(*directive.groups())
        else:
            statement += piece["quoted"]
    yield from _statement(statement + text[position:])


def _statement(text: str) -> Iterator[Statement]:
    if text.strip():
        yield Statement(text.strip())
