"""The filter step: keep the changes of some tables, or of some kinds, and drop the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import OPERATIONS, ChangeBatch


@dataclass(frozen=True)
class Filter:
    """Keeps a change if its table matches one of `tables` and its op is one of `operations`; empty means all."""

    tables: tuple[re.Pattern[str], ...] = ()
    operations: frozenset[str] = frozenset()

    @staticmethod
    def of(tables: Sequence[str] = (), operations: Sequence[str] = ()) -> Filter:
        """A filter from regular expressions over `schema.table` and from operations, by name or letter.

        The expressions are anchored and ignore case, as in `table.include.list`. Raises ValueError.
        """
        _check_texts("tables", tables)
        _check_texts("operations", operations)
        if not tables and not operations:
            raise ValueError("needs tables, operations or both")
        return Filter(tuple(_pattern(text) for text in tables), frozenset(_operation(name) for name in operations))

    def keep(self, batch: ChangeBatch) -> ChangeBatch:
        """The batch with the changes that match, in order."""
        if self.tables and not any(pattern.fullmatch(str(batch.table.id)) for pattern in self.tables):
            return batch.slice(0, 0)
        if not self.operations or batch.schema_change is not None:
            return batch
        mask = pc.is_in(batch.rows.column("op"), value_set=pa.array(sorted(self.operations), pa.string()))
        return batch.with_rows(batch.rows.filter(mask))

    def topic(self, topic: str) -> str:
        """A filter renames nothing."""
        return topic


def _check_texts(name: str, given: object) -> None:
    """A text alone would be taken letter by letter."""
    if not isinstance(given, list | tuple) or not all(isinstance(text, str) for text in given):
        raise ValueError(f"{name} should be a list of texts, such as [a, b]")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error


def _operation(name: str) -> str:
    letter = OPERATIONS.get(name.lower(), name.lower())
    if letter not in OPERATIONS.values():
        raise ValueError(f"unknown operation {name!r}; known: {', '.join(OPERATIONS)}")
    return letter
