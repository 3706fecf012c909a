"""Ranges of the log: how many rows each change table has there, and the parts that tasks read side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import groupby
from typing import TypeVar

from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.schema_changes import Switch
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.sql_tables.tables import Connection, Described
from tailrace.model.table import TableId

T = TypeVar("T")
# What is taken from a connection at once, and what a part has at least: a task for less costs more than it saves.
ROWS = 20_000
# So many change tables are counted by one statement.
_COUNTED = 100


@dataclass(frozen=True)
class LogEnd:
    """Implements LogEnd: what is captured, and the change tables at that time.

    `captured_us`: see Dialect.captured_us; None where that was not asked.
    """

    position: LsnPosition
    instances: tuple[Instance, ...]
    captured_us: int | None = None


@dataclass(frozen=True)
class LogRange:
    """The log of (start, end] of each database, by these capture instances, each with its number of rows there.

    `switches` are changes of structure, `passed` instances whose last row is in the range, `structures` those of
    tables, to be sent first. The tables `dropped` are no longer captured. `lacking` says of tables why the log has not
    all of their changes.
    """

    start: LsnPosition
    end: LsnPosition
    instances: Mapping[Instance, int]
    switches: tuple[Switch, ...] = ()
    _: KW_ONLY
    passed: tuple[Instance, ...] = ()
    structures: tuple[Described, ...] = ()
    dropped: tuple[TableId, ...] = ()
    lacking: tuple[tuple[TableId, str], ...] = ()

    def parts(self) -> list[LogRange]:
        """The range for several tasks: each has all changes of some tables, in their order, and at least ROWS rows.

        A change of structure has its place among the changes of all tables, so that a range with one stays whole.
        """
        if self.switches or self.passed or self.structures or self.dropped or self.lacking:
            return [self]
        groups: list[dict[Instance, int]] = []
        by_table = sorted((each for each in self.instances.items() if each[1]), key=lambda each: each[0].table)
        for _, mine in groupby(by_table, key=lambda each: each[0].table):
            if not groups or sum(groups[-1].values()) >= ROWS:
                groups.append({})
            groups[-1].update(mine)
        if len(groups) > 1 and sum(groups[-1].values()) < ROWS:
            groups[-2].update(groups.pop())
        return [replace(self, instances=each) for each in groups] if len(groups) > 1 else [self]


def inside(dialect: Dialect, instance: Instance, start: str, end: str) -> str:
    """The condition that a row of a change table lies in (start, end]."""
    lsn, literal = dialect.lsn, dialect.literal_of
    parts = [f"{lsn} > {literal(start)}", f"{lsn} <= {literal(end)}", f"{lsn} >= {literal(instance.start)}"]
    if instance.stop is not None:
        parts.append(f"{lsn} < {literal(instance.stop)}")
    return " AND ".join(parts)


def counted(
    dialect: Dialect, connection: Connection, instances: Sequence[Instance], begin: LsnPosition, end: LsnPosition
) -> dict[Instance, int]:
    """The instances with the number of their rows in (begin, end]. May raise the driver's errors.

    Those that were dropped since they were listed have no rows.
    """
    return dict(
        in_pieces(dialect, instances, _COUNTED, lambda piece: _of_piece(dialect, connection, piece, begin, end).items())
    )


def in_pieces(
    dialect: Dialect, instances: Sequence[Instance], size: int, ask: Callable[[Sequence[Instance]], Iterable[T]]
) -> list[T]:
    """The rows that a query gives for instances, `size` of them at once. May raise the driver's errors.

    Instances that were dropped since they were listed give nothing: where the query fails for one of a piece, each
    instance of that piece is asked alone.
    """
    answers: list[T] = []
    for first in range(0, len(instances), size):
        piece = instances[first : first + size]
        try:
            answers += ask(piece)
        except dialect.failures.driver_error as error:
            if not dialect.is_missing(error):
                raise
            answers += in_pieces(dialect, piece, 1, ask) if len(piece) > 1 else ()
    return answers


def _of_piece(
    dialect: Dialect, connection: Connection, piece: Sequence[Instance], begin: LsnPosition, end: LsnPosition
) -> dict[Instance, int]:
    statements = []
    for place, each in enumerate(piece):
        database = each.table.database
        within = inside(dialect, each, begin.lsn(database), end.lsn(database))
        statements.append(f"SELECT {place}, {dialect.count} FROM {each.changes} AS cdc_data WHERE {within}")
    rows = {int(place): int(count) for place, count in connection.rows(" UNION ALL ".join(statements))}
    return {each: rows[place] for place, each in enumerate(piece)}
