"""Reads which columns ALTER TABLE statements have added, from the commands that cdc.ddl_history has of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# Comments and texts, names in brackets or quotes, words, and single characters.
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|N?'(?:[^']|'')*'|\[(?:[^\]]|\]\])*\]|\"(?:[^\"]|\"\")*\"|[\w@#$]+|\S", re.DOTALL
)
_SKIPPED = ("--", "/*", "'", "N'")
# What ADD has other than columns: constraints, and the period of a temporal table.
_NO_COLUMN = {"CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "DEFAULT", "INDEX", "PERIOD"}


def added_columns(commands: Iterable[str]) -> set[str]:
    """The names of columns, in lower case, that these statements add; not of those that they drop before or after."""
    added: set[str] = set()
    dropped: set[str] = set()
    for command in commands:
        tokens = [each for each in _TOKEN.findall(command) if not each.startswith(_SKIPPED)]
        for kind, column in _columns(tokens):
            (added if kind == "ADD" else dropped).add(column)
    return added - dropped


def _columns(tokens: list[str]) -> Iterator[tuple[str, str]]:
    """The columns that are added and dropped: names at the beginning of an item of a list, outside of parentheses."""
    action, depth, begins = "", 0, False
    for token in tokens:
        word = token.upper()
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth or token in "()":
            continue
        if word == "ALTER" or token == ";":
            action, begins = "", False
        elif word in ("ADD", "DROP") and not begins:
            action, begins = word, True
        elif action == "DROP" and word in ("COLUMN", "CONSTRAINT"):
            action, begins = ("DROP" if word == "COLUMN" else "OTHER"), True
        elif token == ",":
            begins = True
        elif begins and word in ("IF", "EXISTS") and action == "DROP":
            continue
        elif begins:
            begins = False
            is_plain = token[0] not in '["'
            if action in ("ADD", "DROP") and not (is_plain and word in _NO_COLUMN):
                yield action, _unquoted(token).lower()


def _unquoted(token: str) -> str:
    if token.startswith("["):
        return token[1:-1].replace("]]", "]")
    return token[1:-1].replace('""', '"') if token.startswith('"') else token
