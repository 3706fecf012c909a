"""Locates the replica of a table, and opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from tailrace.errors import SinkError
from tailrace.model.table import TableId
from tailrace.sinks.replica.folders import shown
from tailrace.sinks.replica.form import Form
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.layout import Names, table_folder
from tailrace.sinks.replica.marks import newest
from tailrace.sinks.replica.modes import Mode
from tailrace.sinks.replica.table import Lake, Table


@dataclass(frozen=True)
class Target:
    """The replica of a table under a root, see lakes.py; `table` is its unique name, `mode` says what it keeps
    and `form` how.
    """

    root: str
    table: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    names: Names = "source"
    mode: Mode = field(default_factory=Mode)
    form: Form = field(default_factory=Form)

    @property
    def lake(self) -> Lake:
        """Where it lies, with others."""
        return lake_at(self.root, self.storage_options, self.form)

    @cached_property
    def name(self) -> str:
        """Its name there."""
        return table_folder(self.table, self.names)

    @property
    def uri(self) -> str:
        """Where it lies, for people."""
        return self.lake.uri(self.name)

    def open(self) -> Table | None:
        """The table as it is now, None where there is none yet."""
        return self.lake.open(self.name)


def read_table(
    root: str, table: str | TableId, storage_options: Mapping[str, str] | None = None, names: Names = "source"
) -> pa.Table:
    """All rows of the replica of `schema.table`. Raises SinkError when there is none.

    The first dot of a text ends the schema; of one that has a dot in its name, give a TableId. `names` is the sink's.
    """
    target = _existing(root, table, storage_options, names)
    return target.scan().read_all().cast(target.schema)


def row_count(root: str, table: str | TableId, storage_options: Mapping[str, str] | None = None) -> int:
    """How many rows the replica of `schema.table` has, see `read_table`. Raises SinkError when there is none."""
    return _existing(root, table, storage_options).count()


def row_counts(root: str, storage_options: Mapping[str, str]) -> dict[str, int]:
    """How many rows each replica below a root has, by the names of the tables. Raises what a lake raises."""
    lake = lake_at(root, storage_options)
    names = sorted(name for name in lake.names() if not name.startswith("_"))
    tables = ((shown(name), lake.open(name)) for name in names)
    return {name: table.count() for name, table in tables if table is not None}


def stored_tables(root: str, storage_options: Mapping[str, str]) -> list[str]:
    """The unique names of the tables that have a replica below a root. Raises what a lake raises."""
    tables, lake = [], lake_at(root, storage_options)
    for name in sorted(lake.names()):
        table = None if name.startswith("_") else lake.open(name)
        record = None if table is None else newest(table)
        tables += [] if record is None else [record.table]
    return tables


def _existing(
    root: str, table: str | TableId, storage_options: Mapping[str, str] | None, names: Names = "source"
) -> Table:
    id_ = table if isinstance(table, TableId) else TableId("", *table.partition(".")[::2])
    target = Target(root, id_.unique, storage_options or {}, names).open()
    if target is None:
        raise SinkError("there is no replica of this table", where=str(table), remedy=f"look for it under {root}")
    return target
