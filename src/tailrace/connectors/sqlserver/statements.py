"""Writes names and values in T-SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tailrace.model.table import TableId

# An ORDER BY after which no parenthesis ends that began before it: that of the whole SELECT.
_ORDERED = re.compile(r"\border\s+by\b(?:[^()]|\([^()]*\))*$", re.IGNORECASE)
_LIMITED = re.compile(r"^\s*select\s+(?:distinct\s+|all\s+)?top\b|\boffset\b(?:[^()]|\([^()]*\))*$", re.IGNORECASE)


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


def derived(select: str) -> str:
    """A SELECT in parentheses. T-SQL takes ORDER BY there only with TOP or OFFSET (error 1033), which skips no row."""
    select = select.rstrip().rstrip(";")
    is_ordered = _ORDERED.search(select) is not None and _LIMITED.search(select) is None
    return f"({select} OFFSET 0 ROWS)" if is_ordered else f"({select})"
