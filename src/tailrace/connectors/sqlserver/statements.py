"""Writes names and values in T-SQL."""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.model.table import TableId


def name(text: str) -> str:
    """A name in brackets."""
    return "[" + text.replace("]", "]]") + "]"


def names(texts: Iterable[str]) -> str:
    """Names, separated by commas."""
    return ", ".join(map(name, texts))


def table(id_: TableId) -> str:
    """A table with its database and schema."""
    return ".".join(map(name, (id_.database, id_.schema, id_.table)))


def text(value: str) -> str:
    """A text of Unicode characters."""
    return "N'" + value.replace("'", "''") + "'"
