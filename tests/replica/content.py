"""What a table of the source holds, and how it differs from its replica: rows as texts, compared as multisets.

It shares nothing with `tailrace reconcile`: the source's rows are the server's own text of each value, and what a
replica has to hold for such a text is what the documentation of the connector says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailrace.model.table import TableId
from tailrace.override import override
from tailrace.sinks.replica.folders import folder
from tests.behaviour.engines import stored

SHOWN = 4
_LONGEST_VALUE, _LONGEST_ROW, _BEFORE = 120, 600, 40
# Names that keys have in most cases.
_KEYS = {"id", "n", "k", "_key", "ID", "N"}
Row = tuple[tuple[str, str | None], ...]
"""Pairs of a column's name and its value as text, sorted by name; two equal rows are equal values."""


@dataclass(frozen=True)
class Comparison:
    """Rows that only one side has, each as often as it is missing on the other; `notes` say what is no difference."""

    source: Counter[Row]
    replica: Counter[Row]
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(source: Iterable[Row], replica: Iterable[Row], notes: Sequence[str] = ()) -> Comparison:
        """The difference of two multisets of rows."""
        ours, theirs = Counter(source), Counter(replica)
        return Comparison(ours - theirs, theirs - ours, tuple(notes))

    @property
    def is_same(self) -> bool:
        """Whether both have the same rows."""
        return not self.source and not self.replica

    def __str__(self) -> str:
        names = self._telling()
        parts = []
        for name, rows, others in (("source", self.source, self.replica), ("replica", self.replica, self.source)):
            if rows:
                some = "; ".join(_shown(row, names, [*others]) for row in list(rows.elements())[:SHOWN])
                parts.append(f"only in the {name} ({rows.total()}): {some}")
        return ", ".join(parts)

    def _telling(self) -> set[str]:
        """The columns to show: those whose values differ between the sides, and those that tell rows apart."""
        sides = [Counter(pair for row in rows.elements() for pair in row) for rows in (self.source, self.replica)]
        if not all(sides):
            return {name for side in sides for name, _ in side}
        return {name for name, _ in (sides[0] - sides[1]) + (sides[1] - sides[0])} | _KEYS


class SourceTable(ABC):
    """A table of the source at a quiet point."""

    id: TableId
    is_sent: bool
    """Whether its changes are sent under this name: otherwise it needs no replica, and one of it may be empty."""

    @property
    def name(self) -> str:
        """The name as signals and filters have it."""
        return str(self.id)

    @abstractmethod
    def compare(self, replica: pa.Table | None) -> Comparison:
        """The difference from its replica; None is a table that has none, which is like one without rows."""


class Representation(ABC):
    """How one column's values are represented in the replica, given the type that its column has there."""

    @abstractmethod
    def expected(self, text: str) -> str:
        """The server's text of a value, as the text that `found` makes of the value that represents it."""

    @abstractmethod
    def found(self, value: Any) -> str:
        """A value of the replica as text."""


@dataclass
class ColumnTable(SourceTable):
    """A table of columns; `rows` are the server's texts, in the order of `columns`.

    `others` are other contents that are right as well. `generated` are columns that a replica may leave out.
    `ignored` are columns that only the replica has, for facts about the change.
    """

    id: TableId
    columns: Mapping[str, Any]
    rows: Sequence[Sequence[str | None]]
    is_sent: bool = True
    others: Sequence[Sequence[Sequence[str | None]]] = ()
    generated: frozenset[str] = frozenset()
    ignored: frozenset[str] = field(default=frozenset())

    @override
    def compare(self, replica: pa.Table | None) -> Comparison:
        table = pa.table({}) if replica is None else replica.drop_columns([*self.ignored & {*replica.column_names}])
        left_out = {} if replica is None else self.generated - {*table.column_names}
        notes = [f"without the generated {', '.join(sorted(left_out))}"] if left_out else []
        surplus = [name for name in table.column_names if name not in self.columns]
        if surplus:
            notes.append(f"the replica has {', '.join(surplus)} as well")
        names = {*self.columns, *table.column_names} - {*left_out}
        found = self._found(table, names)
        first = Comparison.of(self._expected(self.rows, table, names), found, notes)
        rest = (Comparison.of(self._expected(rows, table, names), found, notes) for rows in self.others)
        return first if first.is_same else next((other for other in rest if other.is_same), first)

    def represent(self, name: str, arrow: pa.DataType | None) -> Representation:
        """How a column is represented in a replica's column of this type, None where the replica has none."""
        raise NotImplementedError

    def is_lost(self, name: str, text: str, arrow: pa.DataType | None) -> bool:
        """Whether the replica has null in place of a value, as it was asked to."""
        return False

    def _expected(self, rows: Sequence[Sequence[str | None]], table: pa.Table, names: Iterable[str]) -> list[Row]:
        columns = [self._represented(name, table) for name in self.columns]
        absent = [(name, None) for name in names if name not in self.columns]
        kept = [place for place, name in enumerate(self.columns) if name in {*names}]
        labels = [*self.columns]
        return [
            tuple(
                sorted(
                    [
                        *(
                            (labels[place], self._text(columns[place], labels[place], row[place], table))
                            for place in kept
                        ),
                        *absent,
                    ]
                )
            )
            for row in rows
        ]

    def _text(self, column: Representation, name: str, text: str | None, table: pa.Table) -> str | None:
        arrow = table.schema.field(name).type if name in table.column_names else None
        return None if text is None or self.is_lost(name, text, arrow) else column.expected(text)

    def _found(self, table: pa.Table, names: Iterable[str]) -> list[Row]:
        absent = [(name, None) for name in names if name not in table.column_names]
        columns = {}
        for name in table.column_names:
            values = table.column(name).to_pylist()
            read = self._represented(name, table).found if name in self.columns else str
            columns[name] = [None if value is None else _read(read, value) for value in values]
        return [
            tuple(sorted([*((name, values[place]) for name, values in columns.items()), *absent]))
            for place in range(table.num_rows)
        ]

    def _represented(self, name: str, table: pa.Table) -> Representation:
        return self.represent(name, table.schema.field(name).type if name in table.column_names else None)


def _read(read: Callable[[Any], str], value: Any) -> str:
    """A value's text. One that is none of the column's type is different from all that the source has: until a table
    that was made again is read, its replica has the values of the former one.
    """
    try:
        return read(value)
    except ValueError as error:
        return f"(not of the type: {error}) {value}"


def _shown(row: Row, names: set[str], others: Sequence[Row]) -> str:
    """A row as text; of a long value the place where it differs from the most similar one of the other side."""
    told = []
    for name, value in row:
        if name in names:
            similar = [text for other in others for column, text in other if column == name and text is not None]
            told.append(f"{name}={'null' if value is None else _cut(value, similar)}")
    return f"({', '.join(told)[:_LONGEST_ROW]})"


def _cut(value: str, similar: Sequence[str]) -> str:
    same = max((_equal_begin(value, text) for text in similar if text != value), default=0)
    begin = max(0, same - _BEFORE) if len(value) > _LONGEST_VALUE else 0
    return ("..." if begin else "") + value[begin : begin + _LONGEST_VALUE]


def _equal_begin(one: str, two: str) -> int:
    pairs = enumerate(zip(one, two, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(two)))


def replica_of(root: str, table: TableId) -> pa.Table | None:
    """All rows of a table's replica, None where there is none."""
    return stored(Path(root), folder(table.unique))
