"""Declares a property, and a table of properties that finds one by any of its names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Generic

from tailrace.config.kinds import Kind, T_co
from tailrace.errors import HIDDEN as HIDDEN

JVM = "Java classes cannot be loaded"
_ALIKE = 0.6


class OptionStatus(Enum):
    """What becomes of a property that is given."""

    WORKS = "works"
    CONNECT = "accepted, has no effect here"
    REFUSED = "refused"


@dataclass(frozen=True)
class Alias:
    """A deprecated name; `values` translates its values where they differ from the new name's, `form` any value."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    form: Callable[[str], str] = str


@dataclass(frozen=True, eq=False)
class Option(Generic[T_co]):
    """One property, by which a Config gives its value.

    Or a family of them, whose name holds a placeholder (`transforms.*`, `column.mask.with.<n>.chars`). `note` says why
    a property has no effect or is refused; `old_values` maps deprecated values to today's; `excluded_by` names a
    property that must not be given together with this one. An option that `protects` selects,
    hides or encrypts data: an unknown name like its own is an error (see misspelt.py). One that has no effect here,
    and in the reference changes what arrives, is warned of: `instead` says what to do. `counterpart` is the name by
    which connectors of other databases have it.
    """

    name: str
    kind: Kind[T_co]
    default: str | None = None
    help: str = ""
    status: OptionStatus = OptionStatus.WORKS
    note: str | None = None
    required: bool = False
    secret: bool = False
    aliases: tuple[Alias, ...] = ()
    old_values: Mapping[str, str] = field(default_factory=dict)
    excluded_by: str | None = None
    protects: bool = False
    instead: str | None = None
    counterpart: str | None = None

    @property
    def is_family(self) -> bool:
        """Whether the name holds a placeholder."""
        return "*" in self.name or "<" in self.name

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts = re.split(r"(<[^>]+>|\*)", self.name)
        return re.compile(
            "".join(re.escape(part) if i % 2 == 0 else ".+" for i, part in enumerate(parts)), re.IGNORECASE
        )

    @cached_property
    def head(self) -> str:
        """What every name of a family begins with, in lower case."""
        return re.split(r"<|\*", self.name, maxsplit=1)[0].lower()

    def matches(self, name: str) -> bool:
        """Whether a property of a family is meant."""
        return self._expression.fullmatch(name) is not None

    def within(self, prefix: str) -> Option[T_co]:
        """The same property as a setting of another."""
        aliases = tuple(replace(alias, name=f"{prefix}.{alias.name}") for alias in self.aliases)
        return replace(self, name=f"{prefix}.{self.name}", aliases=aliases)

    def unset(self) -> object:
        """The value where the property is not given: the default, or what its kind has without one."""
        return self.kind.unset if self.default is None else self.kind.parse(self.default)

    def named(self, part: str) -> Option[T_co]:
        """The property of a family whose placeholder has this text."""
        return replace(self, name=re.sub(r"<[^>]+>|\*", lambda _: part, self.name))

    def shown(self, given: str) -> str:
        """How a text may call the property: a secret family's name holds the secret itself (a salt)."""
        return given if self.is_family and not self.secret else self.name


class OptionTable:
    """A connector's properties by group, in the order of the reference. Names are found whatever their case."""

    def __init__(self, groups: Mapping[str, tuple[Option[object], ...]]) -> None:
        self.groups = groups
        for option in self:
            if option.default is None and not (option.required or option.kind.may_be_unset or option.is_family):
                raise TypeError(f"{option.name} has no default, so its kind is optional({option.kind.label})")
        families = (option for option in self if option.is_family)
        self._families = sorted(families, key=lambda option: -len(option.name))  # the most specific first
        self._by_name: dict[str, tuple[Option[object], Alias | None]] = {
            option.name.lower(): (option, None) for option in self if not option.is_family
        }
        self._by_alias: dict[str, tuple[Option[object], Alias | None]] = {
            alias.name.lower(): (option, alias) for option in self for alias in option.aliases
        }

    def __iter__(self) -> Iterator[Option[object]]:
        for options in self.groups.values():
            yield from options

    @cached_property
    def unset(self) -> Mapping[str, object]:
        """The values of properties that are not given, by name, which each Config begins with: they are read once."""
        return {option.name: option.unset() for option in self if not option.is_family}

    def find(self, name: str) -> tuple[Option[object], Alias | None] | None:
        """The option a name means, and the alias if it is one; None for an unknown name."""
        option = self._by_name.get(name.lower()) or self._by_alias.get(name.lower())
        if option is not None:
            return option
        return next(((family, None) for family in self._families if family.matches(name)), None)

    def nearest(self, name: str) -> str | None:
        """The known name most like an unknown one, None when none is near."""
        close = difflib.get_close_matches(name.lower(), self._by_name, n=10, cutoff=0.75)
        return next((self._by_name[each][0].name for each in close if _alike_at_the_end(name.lower(), each)), None)


def _alike_at_the_end(name: str, other: str) -> bool:
    """Whether two names are alike without the words that both begin with, which may be most of them."""
    ours, theirs = name.split("."), other.split(".")
    same = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), 0)
    our_rest, their_rest = ".".join(ours[same:]), ".".join(theirs[same:])
    return difflib.SequenceMatcher(None, our_rest, their_rest).ratio() >= _ALIKE


def without_effect(
    options: Iterable[Option[object]], notes: Mapping[str, str], instead: str | None = None
) -> tuple[Option[object], ...]:
    """The options; those whose names begin as `notes` says have no effect, for the reason that is noted there."""

    def own(option: Option[object]) -> Option[object]:
        note = next((note for start, note in notes.items() if option.name.startswith(start)), None)
        return option if note is None else replace(option, status=OptionStatus.CONNECT, note=note, instead=instead)

    return tuple(map(own, options))


def without_salt(name: str) -> str:
    """A property's name as a text may show it: a salt in it is hidden."""
    return re.sub(r"(?i)(\.with\.salt\.).*", rf"\1{HIDDEN}", name)
