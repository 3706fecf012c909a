"""Values as PostgreSQL literals."""

from __future__ import annotations


def quote(text: str) -> str:
    """A text literal."""
    return "'" + text.replace("'", "''") + "'"


def literal(value: str | int | bool | None) -> str:
    """A literal of a text, a number or null."""
    if value is None:
        return "NULL"
    return quote(value) if isinstance(value, str) else str(int(value))


def typed(value: str | None, storage: str) -> str:
    """A literal of a PostgreSQL type, from the value's text form."""
    return f"NULL::{storage}" if value is None else f"{quote(value)}::{storage}"
