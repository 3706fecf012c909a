"""Tables whose snapshot was not completed; they stay in the offset until their rows are requested again."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from tailrace.override import override

# Bounds what an offset holds; the log has the rest.
MOST_TABLES, _LONGEST_REASON = 500, 300


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A table without some of its rows: why, and since when (milliseconds since 1970).

    `of_keys`: only rows of single keys were requested.
    """

    table: str
    why: str
    since_ms: int
    of_keys: bool = False

    @override
    def __str__(self) -> str:
        rows = "rows of some keys" if self.of_keys else "rows"
        again = f"read them again by `tailrace signal FILE execute-snapshot -t {self.table}`"
        return f"{self.table}: {rows} were not read: {self.why}; {again}"

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        return {"table": self.table, "why": self.why, "since_ms": self.since_ms, "of_keys": self.of_keys}

    @staticmethod
    def from_json(node: dict[str, Any]) -> Incomplete:
        """The inverse of `to_json`."""
        return Incomplete(node["table"], node["why"], node["since_ms"], node["of_keys"])


def with_table(entries: tuple[Incomplete, ...], table: Incomplete) -> tuple[Incomplete, ...]:
    """The tables and one more; of a table that is known already the newer reason counts."""
    before = [entry for entry in entries if entry.table == table.table]
    of_keys = table.of_keys and all(entry.of_keys for entry in before)
    others = tuple(entry for entry in entries if entry.table != table.table)
    if len(others) >= MOST_TABLES:
        return entries
    return (*others, Incomplete(table.table, table.why[:_LONGEST_REASON], table.since_ms, of_keys))


def without_tables(
    entries: tuple[Incomplete, ...], names: Container[str], *, of_keys: bool = False
) -> tuple[Incomplete, ...]:
    """The tables without those named; with `of_keys` only those that lack nothing but the rows of some keys go."""
    return tuple(entry for entry in entries if entry.table not in names or (of_keys and not entry.of_keys))
