"""Suggests tables with names similar to an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 3  # guessed


def meant_tables(name: str, tables: Iterable[str]) -> str | None:
    """A question that names the tables nearest to a name, also to one without its schema; None where none is near."""
    in_order = sorted(tables)
    given = name.replace('"', "").lower()
    near = [table for table in in_order if given in (table.lower(), _own(table))]
    near = near or difflib.get_close_matches(name, in_order, n=1)
    if not near:
        likely = difflib.get_close_matches(given.rpartition(".")[2], map(_own, in_order), n=1)
        near = [table for table in in_order if _own(table) in likely]
    return f"Did you mean {' or '.join(near[:_MOST])}?" if near else None


def _own(table: str) -> str:
    """A table's name without its schema."""
    return table.rpartition(".")[2].lower()
