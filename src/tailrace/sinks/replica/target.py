"""A replica's Delta table in storage: its location and its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from tailrace.errors import SinkError
from tailrace.model.table import TableId
from tailrace.sinks.replica.folders import folder, former_folders, shown
from tailrace.sinks.replica.layout import Names, table_folder
from tailrace.sinks.replica.marks import newest
from tailrace.sinks.replica.storage import folders


@dataclass(frozen=True)
class Target:
    """The replica of a table under a root (a path or the URI of an object store); `table` is its unique name."""

    root: str
    table: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    names: Names = "source"

    @cached_property
    def uri(self) -> str:
        """Where the table lies: where an earlier release wrote it, if it did."""
        if self.names == "catalog":
            return self._below(table_folder(self.table, self.names))
        usual, formers = self._below(folder(self.table)), former_folders(self.root, self.table)
        if not formers or self._is_there(usual):
            return usual
        return next((place for place in map(self._below, formers) if self._is_mine(place)), usual)

    def _is_mine(self, former: str) -> bool:
        """Whether a folder of an earlier release has the table, and not another one: two may have had one name then."""
        if not self._is_there(former):
            return False
        record = newest(DeltaTable(former, storage_options=dict(self.storage_options)))
        return record is None or record.table == self.table

    def _below(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def _is_there(self, uri: str) -> bool:
        return DeltaTable.is_deltatable(uri, dict(self.storage_options))

    def open(self) -> DeltaTable | None:
        """The table as it is now, None where there is none yet."""
        return DeltaTable(self.uri, storage_options=dict(self.storage_options)) if self._is_there(self.uri) else None


def arrow_schema(target: DeltaTable) -> pa.Schema:
    """The table's schema in Arrow types."""
    return pa.schema(target.schema().to_arrow())


def scan(target: DeltaTable) -> pa.RecordBatchReader:
    """The table's rows as a stream; types are those of `arrow_schema` but for views of strings and bytes."""
    return pa.RecordBatchReader.from_stream(target.scan())


def read_table(
    root: str, table: str | TableId, storage_options: Mapping[str, str] | None = None, names: Names = "source"
) -> pa.Table:
    """All rows of the replica of `schema.table`. Raises SinkError when there is none.

    The first dot of a text ends the schema; of one that has a dot in its name, give a TableId. `names` is the sink's.
    """
    target = _existing(root, table, storage_options, names)
    return scan(target).read_all().cast(arrow_schema(target))


def row_count(root: str, table: str | TableId, storage_options: Mapping[str, str] | None = None) -> int:
    """How many rows the replica of `schema.table` has, see `read_table`. Raises SinkError when there is none."""
    return int(_existing(root, table, storage_options).count())


def row_counts(root: Path) -> dict[str, int]:
    """How many rows each replica below a local root has, by the names of the tables."""
    folders = sorted(log.parent for log in root.glob("*/_delta_log"))
    # Percent signs are of releases that could not read such folders again.
    return {shown(folder.name): int(DeltaTable(folder).count()) for folder in folders if "%" not in folder.name}


def stored_tables(root: str, storage_options: Mapping[str, str]) -> list[str]:
    """The unique names of the tables that have a replica below a root, by their folders. Raises DeltaError, OSError."""
    found = []
    for name in sorted(folders(root, "", storage_options)):
        place, options = f"{root.rstrip('/')}/{name}", dict(storage_options)
        if not name.startswith("_") and DeltaTable.is_deltatable(place, options):
            record = newest(DeltaTable(place, storage_options=options))
            found += [] if record is None else [record.table]
    return found


def _existing(
    root: str, table: str | TableId, storage_options: Mapping[str, str] | None, names: Names = "source"
) -> DeltaTable:
    id_ = table if isinstance(table, TableId) else TableId("", *table.partition(".")[::2])
    target = Target(root, id_.unique, storage_options or {}, names).open()
    if target is None:
        raise SinkError("there is no replica of this table", where=str(table), remedy=f"look for it under {root}")
    return target
