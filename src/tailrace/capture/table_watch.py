"""Compares the catalogue's description of the captured tables with the one before, for sinks that keep their content.

What happens to a table outside the log (it is renamed, its column gets a default for old rows, a partition is attached)
shows in the catalogue alone. A description is sent once the log is read up to where it ended afterwards, so that no
change of the log that follows is older.
"""

from __future__ import annotations

import time
from typing import Any

from tailrace.config import Config
from tailrace.connectors.log_ports import Connector
from tailrace.model.structure import Structure
from tailrace.model.table import TableId
from tailrace.snapshot.table_note import TableNote

# Descriptions of a batch: each opens its table in the sink.
_AT_ONCE = 200


class TableWatch:
    """For one planner process, which sends each description at its start and then those that changed."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._interval = connector.config.number("table.watch.interval.ms") / 1000
        self._next = 0.0
        self._sent: dict[TableId, Structure] = {}
        self._pending: dict[TableId, Structure] = {}
        # Where the log ended when the pending descriptions had been read; None: that is still to be asked.
        self._ends: Any = None

    def look(self, config: Config) -> None:
        """Read the catalogue where the interval is over. Raises SourceError."""
        if self._interval <= 0 or time.monotonic() < self._next:
            return
        structures = self._connector.structures(config)
        self._next = time.monotonic() + self._interval
        missing = {table: each for table, each in self._sent.items() if table not in structures}
        # The log tells it at its place where it reports that: a table may be back by the end of the next batch.
        gone = {table: Structure(is_gone=True) for table, each in missing.items() if not each.is_reported}
        for table in missing.keys() - gone.keys():
            del self._sent[table]
        changed = {table: each for table, each in structures.items() if _stored(self._sent.get(table)) != each.stored}
        unknown = {table: each for table, each in changed.items() if self._pending.get(table) != each}
        self._pending = {**changed, **gone}
        if unknown or gone:
            self._ends = None

    def ended(self, position: Any) -> None:
        """Note where the log ends, which was queried after `look`."""
        if self._pending and self._ends is None:
            self._ends = position

    def is_due(self, end: Any) -> bool:
        """Whether a batch of the log up to a position can bring descriptions."""
        return bool(self._pending) and self._ends is not None and not end < self._ends

    def take(self, config: Config) -> tuple[TableNote, ...]:
        """The next descriptions, some at a time. Raises SourceError."""
        chosen = dict(list(self._pending.items())[:_AT_ONCE])
        notes = []
        for table, structure in chosen.items():
            schema = None if structure.is_gone else self._connector.schema(config, table)
            if schema is not None or structure.is_gone:
                notes.append(TableNote(table, structure=structure, schema=schema))
            self._remember(table, structure)
        return tuple(notes)

    def _remember(self, table: TableId, structure: Structure) -> None:
        del self._pending[table]
        if structure.is_gone:
            self._sent.pop(table, None)
        else:
            self._sent[table] = structure


def _stored(structure: Structure | None) -> str | None:
    return None if structure is None else structure.stored
