"""What a source's catalogue says of a captured table, and what two such descriptions of one table differ in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """A value about a table, and why the table's rows may differ from the source once it is another one.

    `sizes` belong to the value: where none of them gets smaller, no row differs.
    """

    value: str
    why: str
    sizes: tuple[int, ...] = ()

    @property
    def stored(self) -> Any:
        """What is compared with a later fact, ready for JSON."""
        return [self.value, *self.sizes] if self.sizes else self.value

    def differs(self, stored: Any) -> bool:
        """Whether rows may differ that were written while the fact was what is stored."""
        value, *sizes = stored if isinstance(stored, list) else [stored]
        shrinks = len(sizes) != len(self.sizes) or any(now < size for now, size in zip(self.sizes, sizes, strict=True))
        return bool(value != self.value or shrinks)


@dataclass(frozen=True, slots=True)
class Structure:
    """A table as the source's catalogue describes it at a place in the log.

    Another table that gets the name has another `identity`, and another column that gets a name another value in
    `columns`. `facts` are further values by name. `unread` says why rows of the table may be missing where a replica
    has never met it; None: the log has brought every row. `is_reported`: the log itself reports changes of tables and
    columns, so differences of identity and columns mean nothing here. `is_gone`: there is no such table any more.
    """

    identity: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)
    unread: str | None = None
    is_reported: bool = False
    is_gone: bool = False

    def to_json(self) -> dict[str, Any]:
        """For the header of a ChangeBatch, and for the property of a table that stores it."""
        return asdict(self)

    @staticmethod
    def from_json(node: Mapping[str, Any]) -> Structure:
        """The inverse of `to_json`."""
        facts = {name: Fact(**{**each, "sizes": tuple(each["sizes"])}) for name, each in node["facts"].items()}
        return Structure(**{**node, "facts": facts})

    def renamed(self, name: Callable[[str], str]) -> Structure:
        """The same with other names of columns."""
        return replace(self, columns={name(column): identity for column, identity in self.columns.items()})

    @property
    def stored(self) -> str:
        """What is compared with a later description, as text."""
        facts = {name: fact.stored for name, fact in self.facts.items()}
        return json.dumps({"identity": self.identity, "columns": dict(self.columns), "facts": facts}, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Differences:
    """How a table differs from its stored description: columns that are dropped, and why rows may differ."""

    dropped: tuple[str, ...] = ()
    why: tuple[str, ...] = ()


def differences(stored: str | None, now: Structure) -> Differences:
    """What has changed since a description was stored; nothing is known to have changed where there is none."""
    if stored is None:
        return Differences()
    before = json.loads(stored)
    facts = [
        fact.why for name, fact in now.facts.items() if name in before["facts"] and fact.differs(before["facts"][name])
    ]
    if now.is_reported:
        return Differences(why=tuple(facts))
    if before["identity"] != now.identity:
        return Differences(why=("another table has this name now: it was dropped, renamed or created again", *facts))
    columns: dict[str, str] = before["columns"]
    names = {identity: name for name, identity in now.columns.items()}
    why, dropped = [], []
    for name, identity in columns.items():
        if now.columns.get(name) == identity:
            continue
        if name in now.columns:
            why.append(f"the column {name} was dropped and added again")
        elif identity in names:
            why.append(f"the column {name} was renamed to {names[identity]}")
        else:
            dropped.append(name)
    return Differences(tuple(dropped), (*why, *facts))
