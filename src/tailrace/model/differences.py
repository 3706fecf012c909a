"""Compares a table's description with the one that a replica has stored: what it can follow, and what it cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tailrace.model.structure import Stored, Structure

_SHOWN = 3  # guessed


@dataclass(frozen=True, slots=True)
class Differences:
    """How a table differs from its stored description.

    `dropped` columns are gone, `renamed` ones have a new name (the last part of each pair). `remade` may have been
    added and dropped before, so that values under these names need not be theirs. `passing` counts columns that came
    and went in between. `values` says why values of rows that the replica has may be others, `why` why rows may differ
    besides.
    """

    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    remade: tuple[str, ...] = ()
    passing: int = 0
    values: tuple[str, ...] = ()
    why: tuple[str, ...] = ()


def differences(before: Stored | None, now: Structure, filled: Collection[str] = ()) -> Differences:
    """How a table has changed; nothing is known to have changed where nothing is stored, or nothing but that it is met.

    `filled` are columns whose value in older rows is known, if they are new.
    """
    if before is None:
        return Differences(passing=now.made - len(now.columns))
    facts, captured = tuple(_facts(before, now)), list(_captured(before, now))
    if now.is_reported:
        return Differences(why=(*captured, *facts))
    if before.identity and before.identity != now.identity:
        return Differences(why=("another table has this name now: it was dropped, renamed or created again",))
    columns = _Columns.of(before, now)
    added = [name for name in columns.added if name not in filled]
    is_touched = before.is_emptied or (bool(before.storage) and not {*before.storage} <= {*now.storage})
    is_rewritten = bool(before.storage) and not {*before.storage} & {*now.storage}
    values, why = columns.why, captured
    computed = [name for name in columns.added if now.columns[name] in now.filled]
    if computed:
        values.append(f"the new column {_some(computed)} has values in rows from before, which the log does not show")
    if added and is_touched:
        values.append(f"the column {_some(added)} was added and the table rewritten, which the log does not show")
    retyped = list(_retyped(before, now, is_rewritten=is_rewritten or before.is_emptied))
    is_altered = bool(before.version) and before.version != now.version
    if is_rewritten and not added and not retyped:
        if now.is_untold:
            why.append("its rows were rewritten, as when it is unlogged for a while, or switched with another table's")
        elif is_altered:
            why.append("its rows were rewritten while its columns were altered, and maybe their values with it")
    passing = max(now.made - before.made - columns.unmet, 0) if before.made else 0
    return Differences(
        tuple(columns.dropped),
        tuple(columns.renamed),
        tuple(columns.added) if passing else (),
        passing,
        (*values, *retyped),
        (*why, *_members(before, now), *dict.fromkeys(facts)),
    )


def _facts(before: Stored, now: Structure) -> Iterator[str]:
    for name, fact in now.facts.items():
        if name in before.facts and fact.differs(before.facts[name]):
            yield fact.why


def _captured(before: Stored, now: Structure) -> Iterator[str]:
    """Whether changes of the table were left out for a while."""
    if before.epoch is not None and before.epoch < now.epoch - 1:
        yield "it was not captured for a while"
    if before.renamed and now.renamed and before.renamed != now.renamed:
        yield "it had another name in between, under which its changes came"
    if before.unsent and now.unsent is None:
        yield "its changes did not come for a while"


@dataclass(frozen=True, slots=True)
class _Columns:
    """What became of the columns. `unmet` counts those that the description before did not have."""

    dropped: list[str]
    renamed: list[tuple[str, str]]
    added: list[str]
    why: list[str]
    unmet: int

    @staticmethod
    def of(before: Stored, now: Structure) -> _Columns:
        hidden, unmet = {*now.hidden}, {*now.columns.values()} - {*before.columns.values()}
        names = {identity: name for name, identity in now.columns.items()}
        columns = _Columns(
            [], [], [name for name, each in now.columns.items() if each in unmet - hidden], [], len(unmet)
        )
        for name, identity in before.columns.items():
            columns._compare(name, identity, names.get(identity), before, now)
        return columns

    def _compare(self, name: str, identity: str, other: str | None, before: Stored, now: Structure) -> None:
        """Compare one column, whose present name is `other` (None: it is dropped)."""
        if identity in before.hidden:
            if other is not None and identity not in now.hidden:
                self.why.append(f"the column {other} was not captured before")
        elif other is None and now.columns.get(name, identity) not in (identity, *now.hidden):
            self.why.append(f"the column {name} was dropped and added again")
        elif other is None or identity in now.hidden:
            self.dropped.append(name)
        elif other != name:
            self.renamed.append((name, other))


def _retyped(before: Stored, now: Structure, *, is_rewritten: bool) -> Iterator[str]:
    """Columns whose values may be others under their new type.

    Values that are stored as they were are the same, unless the type shows them in another way. What is computed from
    them while a table is rewritten nobody knows.
    """
    for name, identity in now.columns.items():
        if identity not in before.types or identity not in now.types:
            continue
        (exact, kind), after = before.types[identity], now.types[identity]
        if after.exact != exact and (is_rewritten or kind != after.kind):
            yield f"the type of the column {name} was changed, and maybe its values with it"


def _members(before: Stored, now: Structure) -> Iterator[str]:
    if before.members is None:
        return
    left = [name for each, (name, *_) in before.members.items() if each not in (*now.members, *now.left_empty)]
    came = [each.name for key, each in now.members.items() if key not in before.members and each.had_rows]
    again = [
        each.name
        for key, each in now.members.items()
        if each.had_rows and before.members.get(key, [])[2:] not in ([], [""], [each.arrival])
    ]
    renewed = [
        each.name
        for key, each in now.members.items()
        if before.members.get(key, ["", ""])[1] not in ("", each.storage) and not each.keeps_rows
    ]
    if left:
        yield f"its part {_some(left)} was detached or dropped, with the rows that it had"
    if came:
        yield f"{_some(came)} became a part of it, with the rows that it had"
    if again:
        yield f"its part {_some(again)} was detached for a while, in which its changes did not come"
    if renewed:
        yield f"its part {_some(renewed)} was truncated or rewritten"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
