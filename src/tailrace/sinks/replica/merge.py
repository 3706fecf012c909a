"""Builds the MERGE that applies a net effect to a target, in SQL that both engines accept."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.sinks.replica.fold import COUNT, KEEP

DELETES = f"s.{COUNT} < 0"
PUTS = f"s.{COUNT} > 0"


def quoted(name: str) -> str:
    """A column's name as an identifier."""
    return "`" + name.replace("`", "``") + "`"


def same_key(key: Sequence[str], left: str = "t", right: str = "s", prefix: str = "") -> str:
    """The condition that two rows have one key; key columns are never null."""
    return " AND ".join(f"{left}.{quoted(name)} = {right}.{quoted(prefix + name)}" for name in key)


def inserted(kept: Sequence[str]) -> str:
    """The condition of a row that the target does not have and that is inserted: it has all of its values."""
    return " AND ".join([PUTS, *(f"NOT s.{quoted(KEEP + name)}" for name in kept)])


def updates(columns: Sequence[str], kept: Sequence[str]) -> dict[str, str]:
    """What each column of a matched row becomes: the source's value, or its own where the log did not repeat it."""
    return {
        quoted(name): f"CASE WHEN s.{quoted(KEEP + name)} THEN t.{quoted(name)} ELSE s.{quoted(name)} END"
        if name in kept
        else f"s.{quoted(name)}"
        for name in columns
    }


def inserts(columns: Sequence[str]) -> dict[str, str]:
    """The columns of a row the target does not have."""
    return {quoted(name): f"s.{quoted(name)}" for name in columns}
