"""Describes change tables and their source tables, and has the protocol of the catalog that reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

from tailrace.connectors.sql_tables.tables import Described, SqlCatalog
from tailrace.model.structure import digest
from tailrace.model.table import TableId
from tailrace.override import override


@dataclass(frozen=True)
class TableKey:
    """The columns of a table's key, none without one. `seen_us`: the server's time when it was seen first.

    `made` is another text once the key was dropped and made again, as far as the catalog tells.
    """

    columns: tuple[str, ...]
    made: str = ""
    seen_us: int = field(default=0, compare=False)

    @property
    def digest(self) -> str:
        """A short text that is equal for equal keys."""
        return digest(json.dumps([self.made, *self.columns]))


@dataclass(frozen=True)
class Instance:
    """A change table: it has the rows of commits from `start` on, and before `stop` if another one follows it.

    `number` is one that no other change table has, `changes` its name in SQL. `is_first`: no other instance of the
    source table is older. One that has not begun has no start yet, and nothing is read of it. `source` is the number of
    the source table. `version` changes with the columns of a change table that can be altered, `types` with the types
    of its columns, which follow those of the source table, and `rest` with what the source table alone has of them:
    defaults, and whether they are required. `key` is the one that the source table's rows have; None: the one that it
    has when they are read.
    """

    name: str
    table: TableId
    number: int
    source: int
    _: KW_ONLY
    start: str
    changes: str
    stop: str | None = None
    is_first: bool = True
    has_begun: bool = True
    version: int = 0
    types: int = field(default=0, compare=False)
    rest: int = field(default=0, compare=False)
    key: TableKey | None = field(default=None, compare=False)


@dataclass(frozen=True)
class LastChange:
    """A change's commit and change LSN, and its serial number: 2 for an update, as that is two rows."""

    commit: str
    change: str | None = None
    serial: int | None = None


class Catalog(SqlCatalog, Protocol):
    """Reads the catalogs of the databases and their change tables. Methods raise the driver's errors."""

    part_of_key: bool = False
    """Whether the captured columns of a key are one, also where others are not captured."""

    def instances(self, database: str) -> list[Instance]:
        """All change tables, whether their tables are captured or not; those of a table in the order of creation."""

    def keys(self, database: str) -> Mapping[int, TableKey]:
        """The keys of the tables that have a change table, by the number of the table; of those that have a key."""

    def at(self, instance: Instance) -> Described:
        """The table as a change table has it: its columns and types, the rest as the source table still has it."""

    def newest(self) -> dict[TableId, Instance]:
        """The newest change table of each table that has one; one that has not begun only if it is the only one."""
        instances = [each for database in self.databases() for each in self.instances(database)]
        return {each.table: each for each in sorted(instances, key=lambda each: each.has_begun)}

    def now(self, table: TableId, instances: Mapping[TableId, Instance], number: int) -> Described:
        """A table as it is: with the columns of its newest change table if there is one."""
        whole = self.described(table, number)
        if table not in instances:
            return whole
        names = [column.name for column in self.at(instances[table]).columns]
        return whole.only(names, part_of_key=self.part_of_key)

    @override
    def descriptions(self) -> Callable[[TableId, int], Described]:
        """The columns of the newest change tables."""
        instances = self.newest()
        return lambda table, number: self.now(table, instances, number)
