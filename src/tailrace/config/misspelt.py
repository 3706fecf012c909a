"""Detects names of properties that were misspelt, or are another connector's, and select, hide or encrypt data.

To ignore one would publish the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from tailrace.config.option import Option, OptionStatus, OptionTable

_ALIKE = 0.75  # guessed
_PLACEHOLDER = re.compile(r"\.?(<[^>]+>|\*)")


@dataclass(frozen=True)
class Foreign:
    """A property that only other connectors have, the products that these are for, and what others call it."""

    name: str
    products: tuple[str, ...]
    other_name: str | None = None

    @property
    def whose(self) -> str:
        """A predicate: whose property it is."""
        *others, last = self.products
        if not others:
            return f"is a property of {last}'s connector"
        return f"is a property of the connectors for {', '.join(others)} and {last}"

    def counterpart(self, table: OptionTable) -> Option[object] | None:
        """The property of a table that means the same."""
        return next((each for each in table if each.name == self.other_name or each.counterpart == self.name), None)


# Finds a name among the properties of all connectors.
Elsewhere = Callable[[str], Foreign | None]


def meant(name: str, table: OptionTable) -> Option[object] | None:
    """The option that an unknown name probably means, if that option protects; None for any other name."""
    named = table.find(name)
    prefix = ""
    if named is not None:
        option, _ = named
        if option.status is not OptionStatus.CONNECT or not option.name.endswith(".*"):
            return None
        prefix = option.name[:-1].lower()  # the family takes any name, misspelt ones as well
    near = [each for each in _likenesses(name.lower(), prefix, table) if each[0] >= _ALIKE]
    return max(near, key=lambda each: each[:2])[2] if near else None


def _likenesses(name: str, prefix: str, table: OptionTable) -> Iterator[tuple[float, float, Option[object]]]:
    """How much the name is like each option that protects, in its decisive part and as a whole."""
    for option in table:
        if not option.protects:
            continue
        for option_name in (option.name.lower(), *(alias.name.lower() for alias in option.aliases)):
            if option_name.startswith(prefix):
                whole = _ratio(name[len(prefix) :], option_name[len(prefix) :])
                yield (_family(name, option_name) if option.is_family else whole), whole, option


def _family(name: str, option_name: str) -> float:
    """Compares the words before the first placeholder; the last of them may be another one or missing."""
    head, words = _PLACEHOLDER.split(option_name)[0].split("."), name.split(".")
    sizes = (len(head), len(head) - 1)
    return max(_ratio(".".join(words[:size]), ".".join(head[:size])) for size in sizes)


def _ratio(name: str, other: str) -> float:
    return SequenceMatcher(None, name, other).ratio()
