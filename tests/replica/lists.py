"""What the include and exclude lists of databases with schemas choose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_UNKNOWN = re.compile(r"column\.(mask|truncate)|converters$")


@dataclass(frozen=True)
class Lists:
    """The lists of a connector's properties. Raises ValueError for properties whose effect is not described here."""

    properties: Mapping[str, str]

    def __post_init__(self) -> None:
        if unknown := [name for name in self.properties if _UNKNOWN.match(name)]:
            raise ValueError(f"the comparison does not know what these do: {', '.join(unknown)}")

    def table(self, schema: str, table: str) -> bool:
        """Whether the lists choose a table; that of signals is none of a replica's."""
        name, signals = f"{schema}.{table}", self.properties.get("signal.data.collection", "")
        if any(each.strip().endswith(name) for each in signals.split(",")):
            return False
        return self._chosen("table", name) and self._chosen("schema", schema)

    def column(self, schema: str, table: str, column: str) -> bool:
        """Whether the lists choose a column."""
        return self._chosen("column", f"{schema}.{table}.{column}")

    def _chosen(self, kind: str, name: str) -> bool:
        included, excluded = (self.properties.get(f"{kind}.{list_}.list") for list_ in ("include", "exclude"))
        return (not included or matches(included, name)) and not (excluded and matches(excluded, name))


def matches(listed: str, name: str) -> bool:
    """Whether an expression of a list matches the whole name, in any case."""
    return any(re.fullmatch(each.strip(), name, re.IGNORECASE) for each in re.split(r"(?<!\\),", listed))
