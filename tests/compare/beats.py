"""Heartbeats and header converters, which scenarios of seeds from FIRST on have besides.

They are drawn by a chance of their own: earlier scenarios stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tailrace.config.converter_names import JSON, SIMPLE, STRING

FIRST = 3000
# A deliberate difference of StringConverter: the reference writes of binary values what Java prints of their objects.
BINARY = (r'headers\.\S+: expected ".*(java\.nio\.HeapByteBuffer|\[B@)', "docs/differences.md")
TOPIC = r"beats$"  # of the table that heartbeats add rows to


@dataclass(frozen=True)
class Beats:
    """Properties, and the topics that have any number of equal events; `acts` is whether heartbeats add rows."""

    properties: Mapping[str, str] = field(default_factory=dict)
    collapsed: Sequence[str] = ()
    acts: bool = False

    @staticmethod
    def of(seed: int, database: str) -> Beats:
        """What the scenario of that seed has."""
        if seed < FIRST:
            return Beats()
        chance = Random(f"beats {database} {seed}")
        properties, collapsed = {}, []
        if has_beats := chance.random() < 0.6:
            # Not so long that a run ends before one, nor so short that one transaction in each poll is too few.
            properties["heartbeat.interval.ms"] = chance.choice(("200", "500"))
            if chance.random() < 0.3:
                properties["topic.heartbeat.prefix"] = "pulse"
                collapsed.append("^pulse")
        if chance.random() < 0.6:
            properties["header.converter"] = chance.choice((SIMPLE, STRING, JSON))
            if chance.random() < 0.5:
                properties["header.converter.schemas.enable"] = "false"
        return Beats(properties, collapsed, has_beats and chance.random() < 0.6)

    def action(self, table: str, given: Mapping[str, str]) -> dict[str, str]:
        """The query that adds a row, equal to the others, unless its events come between those that are compared."""
        is_apart = given.get("provide.transaction.metadata") != "true" and given.get("topic.replacement") != "all"
        if not self.acts or not is_apart:
            return {}
        return {"heartbeat.action.query": f"INSERT INTO {table} VALUES (1)"}

    @staticmethod
    def table(name: str) -> list[str]:
        """Statements that create the table, with a first row, a last one and one between them for a snapshot."""
        return [f"CREATE TABLE {name} (n int)", f"INSERT INTO {name} VALUES (1), (1), (1)"]

    def rules(self, acts: bool) -> list[str]:
        """The topics for `collapse_topics` of scenario.json."""
        return [*self.collapsed, *([TOPIC] if acts else [])]
