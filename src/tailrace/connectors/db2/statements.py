"""Writes names and values in Db2's SQL."""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.model.table import TableId


def name(text: str) -> str:
    """A name in quotes, which keep its case."""
    return '"' + text.replace('"', '""') + '"'


def names(texts: Iterable[str]) -> str:
    """Names, separated by commas."""
    return ", ".join(map(name, texts))


def qualified(schema: str, table: str) -> str:
    """A table with its schema."""
    return f"{name(schema)}.{name(table)}"


def table(id_: TableId) -> str:
    """A table with its schema."""
    return qualified(id_.schema, id_.table)


def text(value: str) -> str:
    """A literal."""
    return "'" + value.replace("'", "''") + "'"
