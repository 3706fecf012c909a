"""Remembers in the offset under which lists of tables the log was read, so that a start with other lists is noticed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tailrace.config import Config
from tailrace.model.structure import digest

# The entry of an offset's `log`.
ENTRY = "lists"
# An earlier release stored digest and epoch in an entry of the one connector that noticed other lists.
_EARLIER = "tables"
_LISTS = ("schema.include.list", "schema.exclude.list", "table.include.list", "table.exclude.list")
_OTHERS = (
    "database.include.list",
    "database.exclude.list",
    "collection.include.list",
    "collection.exclude.list",
    "signal.data.collection",  # whose rows are none of a replica's
)


@dataclass(frozen=True, slots=True)
class CapturedLists:
    """The lists of tables as a digest, and the starts so far (`epoch`) at which they were others than before.

    `is_new`: not all tables were described since the last of these starts, so that the rows of one that is described
    for the first time may be older than the lists.
    """

    digest: str
    epoch: int = 0
    is_new: bool = False

    @staticmethod
    def of(log: Mapping[str, Any]) -> CapturedLists | None:
        """What an offset has; None in one of an earlier release, or where nobody asks for it."""
        if ENTRY in log:
            return CapturedLists(**log[ENTRY])
        earlier = log.get(_EARLIER, {})
        return CapturedLists(earlier["lists"], earlier["epoch"]) if "lists" in earlier else None

    @staticmethod
    def at(config: Config, log: Mapping[str, Any]) -> CapturedLists:
        """What holds for the log behind an offset."""
        stored, digest = CapturedLists.of(log), _digest(config)
        if stored is None:
            return CapturedLists(digest)
        return stored if stored.digest == digest else CapturedLists(digest, stored.epoch + 1, is_new=True)

    def told(self) -> CapturedLists:
        """The same once all tables are described."""
        return replace(self, is_new=False)

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        return asdict(self)


def _digest(config: Config) -> str:
    others: dict[str, Any] = {name: config.given[name] for name in _OTHERS if name in config.given}
    if filters := [step["filter"]["tables"] for step in json.loads(config.steps) if "tables" in step.get("filter", {})]:
        others["steps"] = filters
    lists = [*(config.given.get(name) for name in _LISTS), *([others] if others else [])]
    return digest(json.dumps(lists))
