"""Compares the catalogue's description of the captured tables with the one before, for sinks that keep their content.

What happens to a table outside the log (it is renamed, its column gets a default for old rows, a partition is attached)
shows in the catalogue alone. A description is sent once the log is read up to where it ended afterwards, so that no
change of the log that follows is older.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tailrace.capture.kept_values import KeptSettings
from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.snapshot import TABLE_WATCH_INTERVAL_MS
from tailrace.connectors.captured_lists import ENTRY, CapturedLists
from tailrace.connectors.log_ports import Connector
from tailrace.connectors.offset import Reached
from tailrace.model.structure import Structure
from tailrace.model.table import TableId, TableSchema
from tailrace.snapshot.table_note import TableNote

# Descriptions of a batch: each opens its table in the sink.
_AT_ONCE = 200
_UNREAD = "it was not captured when its rows were written"


class TableWatch:
    """For one planner process, which sends each description at its start and then those that changed."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._interval = connector.config[TABLE_WATCH_INTERVAL_MS] / 1000
        self._next = 0.0
        self._sent: dict[TableId, Structure] = {}
        self._pending: dict[TableId, Structure] = {}
        # Where the log ended when the pending descriptions had been read; None: that is still to be asked.
        self._ends: Any = None
        self._base: dict[str, tuple[TableId, Structure, TableSchema]] = {}
        self._tables: tuple[tuple[str, bool], ...] = ()
        self._has_looked = False
        self._given: dict[TableId, tuple[Structure, Structure]] = {}

    def look_before(self, config: Config, end: Reached) -> None:
        """Read the catalogue before a snapshot is taken, from which the log goes on. Raises SourceError.

        What its rows are compared with later must not be younger than they are: a change in between would stay unseen.
        """
        if self._interval > 0:
            structures = self._structures(config, end)
            schemas = {schema.id: schema for schema in self._connector.tables(config)} if structures else {}
            self._base = {
                str(table): (table, structure, schemas[table])
                for table, structure in structures.items()
                if table in schemas
            }

    def base(self, names: Iterable[str]) -> tuple[TableNote, ...]:
        """The descriptions of tables that a snapshot reads, which go with its rows."""
        notes = [self._base[name] for name in dict.fromkeys(names) if name in self._base]
        self._sent.update({table: structure for table, structure, _ in notes})
        settings = KeptSettings(self._connector.config)
        return tuple(
            TableNote(table, structure=replace(settings.described(structure, schema), is_base=True))
            for table, structure, schema in notes
        )

    def look(self, config: Config, reached: Reached) -> None:
        """Read the catalogue where the interval is over; the log is read up to `reached`. Raises SourceError."""
        is_due = time.monotonic() >= self._next or config.tables != self._tables
        if self._interval <= 0 or not is_due:
            return
        self._tables = config.tables
        structures = self._structures(config, reached)
        self._next = time.monotonic() + self._interval
        missing = {table: each for table, each in self._sent.items() if table not in structures}
        lists = TableFilter.from_config(config)
        # The log tells it at its place where it reports that: a table may be back by the end of the next batch. And one
        # that is captured no more may still be there.
        gone = {
            table: Structure(identity=each.identity, is_gone=True)
            for table, each in missing.items()
            if lists.captures(table) and not each.is_reported
        }
        for table in missing.keys() - gone.keys():
            del self._sent[table]
        changed = {table: each for table, each in structures.items() if _differs(self._sent.get(table), each)}
        unknown = {table: each for table, each in changed.items() if self._pending.get(table) != each}
        # What a table is compared with first is not replaced by what is newer.
        first = {table: each for table, each in self._pending.items() if table not in self._sent and not each.is_gone}
        self._pending = {**changed, **gone, **first}
        self._has_looked = True
        if unknown or gone:
            self._ends = None

    def ended(self, position: Any) -> None:
        """Note where the log ends, which was queried after `look`."""
        if self._pending and self._ends is None:
            self._ends = position

    def noted(self, log: Mapping[str, Any], now: Mapping[str, Any]) -> Mapping[str, Any]:
        """`now`, what the next offset has of the log, with the lists of tables; the offset before has `log`.

        Before `take`: what a batch brings is in the sink once the next one is planned.
        """
        if self._interval <= 0 and CapturedLists.of(log) is None:
            return now
        lists = CapturedLists.at(self._connector.config, log)
        return {**now, ENTRY: (lists.told() if self._is_told else lists).to_json()}

    @property
    def _is_told(self) -> bool:
        """Whether this process has sent all descriptions."""
        return self._has_looked and not self._pending

    def _structures(self, config: Config, reached: Reached) -> Mapping[TableId, Structure]:
        """The descriptions now, with what other lists of tables than before mean for them."""
        lists = CapturedLists.at(config, reached.log)
        structures = self._connector.structures(config, reached)
        older = {*self._connector.older(config, reached, structures)} if lists.is_new and not self._is_told else set()
        return {
            table: self._under(lists, table, each, _UNREAD if table in older and each.unread is None else each.unread)
            for table, each in structures.items()
        }

    def _under(self, lists: CapturedLists, table: TableId, each: Structure, unread: str | None) -> Structure:
        """A description under lists of tables: the same object for the same one, so that few are compared."""
        kept = self._given.get(table)
        if kept is None or kept[0] is not each or (kept[1].epoch, kept[1].unread) != (lists.epoch, unread):
            kept = self._given[table] = each, replace(each, epoch=lists.epoch, unread=unread)
        return kept[1]

    def is_due(self, end: Any) -> bool:
        """Whether a batch of the log up to a position can bring descriptions."""
        return bool(self._pending) and self._ends is not None and not end < self._ends

    def take(self, config: Config) -> tuple[TableNote, ...]:
        """The next descriptions, some at a time. Raises SourceError."""
        chosen = dict(list(self._pending.items())[:_AT_ONCE])
        notes, settings = [], KeptSettings(config)
        for table, structure in chosen.items():
            schema = None if structure.is_gone else self._connector.schema(config, table)
            if schema is not None and not _is_of(structure, schema):
                # The table was altered in between. What was described before goes first, by itself.
                notes.append(TableNote(table, structure=structure))
                self._next = 0.0
            elif schema is not None or structure.is_gone:
                described = structure if schema is None else settings.described(structure, schema)
                notes.append(TableNote(table, structure=described, schema=schema))
            self._remember(table, structure)
        return tuple(notes)

    def _remember(self, table: TableId, structure: Structure) -> None:
        del self._pending[table]
        if structure.is_gone:
            self._sent.pop(table, None)
        else:
            self._sent[table] = structure


def _is_of(structure: Structure, schema: TableSchema) -> bool:
    """Whether columns that were read later are those of a description; not all databases describe them."""
    return not structure.columns or structure.columns.keys() >= {column.name for column in schema.columns}


def _differs(sent: Structure | None, now: Structure) -> bool:
    if sent is now:
        return False
    return sent is None or (sent.stored, sent.unsent) != (now.stored, now.unsent)
