"""Describes a captured table as the catalogue has it at a place in the log; differences.py compares two of these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any

CHANGED_KEY = (
    "its key was changed, and changes from before may be of rows that shared a value of what is the key by now"
)
"""Why rows may differ that were told apart by a key which is newer than some of their changes."""


def digest(text: str) -> str:
    """A text that stands for settings, which may have secrets, as the salt of a hash; empty for none."""
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value about a table, and why the table's rows may differ from the source once it is another one.

    Values with another `of` are not compared. `sizes` belong to the value: no row differs where none of them gets
    smaller.
    """

    value: str
    why: str
    of: str = ""
    sizes: tuple[int, ...] = ()

    @staticmethod
    def from_json(value: str, why: str, of: str, sizes: Sequence[int]) -> Fact:
        """A fact of its fields, as `Structure.to_json` has them."""
        return Fact(value, why, of, tuple(sizes))

    @property
    def stored(self) -> list[Any]:
        """What is compared with a later fact, ready for JSON."""
        return [self.value, self.of, *self.sizes]

    def differs(self, stored: Sequence[Any]) -> bool:
        """Whether rows may differ that were written while the fact was what is stored."""
        value, of, *sizes = stored
        shrinks = len(sizes) != len(self.sizes) or any(now < size for now, size in zip(self.sizes, sizes, strict=True))
        return bool(of == self.of and (value != self.value or shrinks))


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type, and what types have in common that show the same stored values alike."""

    exact: str
    kind: str


@dataclass(frozen=True, slots=True)
class Member:
    """A part of a table that can come, go or lose its rows without a change of rows in the log.

    `storage` is another one after its rows were rewritten or removed; empty: unknown. `had_rows`: it may have had rows
    when it became a part. `keeps_rows`: it has rows from before its storage was renewed. `arrival` is another one after
    it left and became a part again; empty: unknown.
    """

    name: str
    storage: str
    had_rows: bool = True
    keeps_rows: bool = False
    arrival: str = ""


@dataclass(frozen=True, slots=True)
class Structure:
    """A table as the source's catalogue describes it.

    Another table that gets the name has another `identity`, and another column that gets a name another value in
    `columns`, which has all columns of the table. `hidden` are the values of those that are not captured, `types` the
    types of the others by their values. `made` counts the columns that the table ever had. `version` is another value
    once anything about the columns was changed, even if it was changed back (empty: unknown).

    `storage`: one of these values at least stays the same as long as the rows are stored as they were, and all of them
    as long as nothing rewrites the table. `is_untold`: it may be rewritten after changes that the log does not have.
    `filled` are the values in `columns` of those that had values in all rows as soon as they were added.
    `members` are the table's parts by their identities, `left_empty` those that have left and had no rows.

    `facts` are further values by name. `renamed` is another value once the table had another name in between (empty:
    unknown). `epoch` counts the starts at which the list of captured tables was another one.

    `unread` says why rows of the table may be missing where a replica has never met it; None: the log has brought every
    row. `unmet` says why rows that it brought may differ then. `unsent` says why the log does not bring all changes,
    for as long as it is so. `is_reported`: the log itself reports changes of tables and columns, so differences of
    identity and columns mean nothing here. `is_base`: the table's rows were read after this, so that later descriptions
    are compared with it. `is_gone`: there is no table of that identity any more. `read_us` is the source's time when
    this was read, where the log may still bring changes of before; 0 where it brings none.
    """

    identity: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    hidden: Sequence[str] = ()
    types: Mapping[str, ColumnType] = field(default_factory=dict)
    _: KW_ONLY
    made: int = 0
    version: str = ""
    storage: Sequence[str] = ()
    is_untold: bool = False
    filled: Sequence[str] = ()
    members: Mapping[str, Member] = field(default_factory=dict)
    left_empty: Sequence[str] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    renamed: str = ""
    epoch: int = 0
    unread: str | None = None
    unmet: str | None = None
    unsent: str | None = None
    is_reported: bool = False
    is_base: bool = False
    is_gone: bool = False
    read_us: int = field(default=0, compare=False)

    def to_json(self) -> dict[str, Any]:
        """For the header of a ChangeBatch."""
        return asdict(self)

    @staticmethod
    def from_json(node: Mapping[str, Any]) -> Structure:
        """The inverse of `to_json`."""
        kinds: Mapping[str, Callable[..., Any]] = {"facts": Fact.from_json, "types": ColumnType, "members": Member}
        parts = {name: {key: kind(**each) for key, each in node[name].items()} for name, kind in kinds.items()}
        return Structure(**{**node, **parts})

    def renamed_columns(self, name: Callable[[str], str]) -> Structure:
        """The same with other names of columns."""
        return replace(self, columns={name(column): identity for column, identity in self.columns.items()})

    @property
    def stored(self) -> str:
        """What is compared with a later description, as text."""
        return Stored.of(self).text


@dataclass(slots=True)
class Stored:
    """What a replica stores of the description that it has met last: by values, without reasons.

    What is unknown by now is empty, and is not compared.
    `is_dropped`: the log has a drop of the table, so that another one of its name is new. `lacking` says why
    rows may differ since a description before, until they are read again. `is_emptied`: the log has removed all
    rows since, so that nobody knows whether those that came then were rewritten. `begun` has the columns, with their
    types, under which the first of those came: these had values in all rows from then on. `differed_us`: the source's
    time when it was known that rows differ, if changes of before may come later: these do not know what had happened.
    """

    identity: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    _: KW_ONLY
    types: dict[str, list[str]] = field(default_factory=dict)
    made: int = 0
    storage: list[str] = field(default_factory=list)
    members: dict[str, list[str]] | None = None
    renamed: str = ""
    epoch: int | None = None
    unsent: bool = False
    is_dropped: bool = False
    lacking: str = ""
    version: str = ""
    is_emptied: bool = False
    begun: dict[str, str] = field(default_factory=dict)
    differed_us: int = 0

    @staticmethod
    def of(structure: Structure) -> Stored:
        """What is stored of a description."""
        return Stored(
            structure.identity,
            dict(structure.columns),
            {name: fact.stored for name, fact in structure.facts.items()},
            list(structure.hidden),
            types={column: [each.exact, each.kind] for column, each in structure.types.items()},
            made=structure.made,
            storage=list(structure.storage),
            members={identity: [each.name, each.storage, each.arrival] for identity, each in structure.members.items()},
            renamed=structure.renamed,
            epoch=structure.epoch,
            unsent=structure.unsent is not None,
            version=structure.version,
        )

    @staticmethod
    def parse(text: str | None) -> Stored | None:
        """The inverse of `text`; None where nothing is stored."""
        if not text:
            return None
        return Stored(**json.loads(text))

    @property
    def text(self) -> str:
        """As text, equal for equal descriptions."""
        return json.dumps(asdict(self), sort_keys=True)

    def altered(self, renamed: Mapping[str, str], dropped: Sequence[str]) -> None:
        """Note columns that the log reported as renamed or dropped, each at its place."""
        for name in dropped:
            identity = self.columns.pop(name, None)
            self.made += identity is None  # it was added since
            self.begun.pop(name, None)  # a new column of that name is another one
        self.columns = {renamed.get(name, name): identity for name, identity in self.columns.items()}
        self.begun = {renamed.get(name, name): kind for name, kind in self.begun.items()}

    def emptied(self) -> None:
        """Note that a change of the log removed all rows: what rows were stored then does not matter any more."""
        self.storage, self.is_emptied, self.begun = [], True, {}
        self.members = {identity: [name, "", *rest] for identity, (name, _, *rest) in (self.members or {}).items()}
