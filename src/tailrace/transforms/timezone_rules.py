"""The timezone converter's include and exclude lists: which fields of which tables and topics it converts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LIST = re.compile(r"\[(source|topic|[\".\w\s_]+):([\".\w\s_]+(?::[\".\w\s_]+)?(?:,|]$))+")
ALL, INCLUDE, EXCLUDE = "all", "include", "exclude"

Fields = frozenset[str]


def is_list(items: Sequence[str]) -> bool:
    """Whether a list has the form that the reference accepts."""
    return _LIST.fullmatch(f"[{', '.join(items)}]") is not None


@dataclass(frozen=True)
class Choice:
    """Which fields of a struct are converted: all, those named, or all but those named."""

    kind: str = ALL
    fields: Fields = frozenset()

    def takes(self, name: str) -> bool:
        """Whether a field is converted."""
        return self.kind == ALL or (name in self.fields) == (self.kind == INCLUDE)

    def of(self, image: str) -> Choice | None:
        """What it says of the struct `before`, `after` or `source`; the latter only where it is named."""
        mine = {name.removeprefix(f"{image}.") for name in self.fields if name.startswith(f"{image}.")}
        if image == "source":
            return Choice(self.kind, frozenset(mine)) if mine else None
        prefixes = ("source.", "before.", "after.")
        return Choice(self.kind, frozenset(mine | {name for name in self.fields if not name.startswith(prefixes)}))


@dataclass(frozen=True)
class Rules:
    """A list: the fields by topic, by table, and by either; empty fields mean all of them."""

    kind: str
    topics: dict[str, Fields]
    tables: dict[str, Fields]
    names: dict[str, Fields]

    @staticmethod
    def of(kind: str, items: Sequence[str]) -> Rules:
        """From items `source:table`, `topic:name`, each with `:field` or without, and `name:field`.

        A prefix holds for the items after it that have none, as in the reference.
        """
        rules = Rules(kind, {}, {}, {})
        group = rules.names
        for item in items:
            head, *rest = item.split(":")
            if rest and head.lower() in ("source", "topic"):
                # Only the words in lower case choose a group; others leave the one before.
                group = {"source": rules.tables, "topic": rules.topics}.get(head, rules.names)
                head, *rest = rest
            group[head] = group.get(head, frozenset()) | frozenset(rest[:1])
        return rules

    def choice(self, table: str | None, topic: str) -> Choice | None:
        """What is converted in events of a table and topic; None for nothing."""
        groups = ((self.topics, topic), (self.tables, table), (self.names, topic), (self.names, table))
        fields = next((group[name] for group, name in groups if name is not None and name in group), None)
        if self.kind == INCLUDE:
            return None if fields is None else Choice(INCLUDE, fields) if fields else Choice()
        if fields is None:
            return Choice()
        return Choice(EXCLUDE, fields) if fields else None
