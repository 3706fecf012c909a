"""Describes a table to a sink that keeps tables, beside its changes, as a batch without rows."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.model.change import ChangeBatch, SnapshotRead, note
from tailrace.model.structure import Structure
from tailrace.model.table import TableId, TableSchema


@dataclass(frozen=True)
class TableNote:
    """What a sink that keeps a table's content has to know: why rows may differ, its structure, or that all is read.

    `request` is the signal whose reading of the table ends, after so many rows: `total`. The columns of a `structure`
    are those of `schema`, which is None where the table has been altered since.
    """

    table: TableId
    lacking: str | None = None
    structure: Structure | None = None
    schema: TableSchema | None = None
    request: str | None = None
    total: int | None = None

    def batch(self, read_id: str) -> ChangeBatch:
        """The note as a batch without rows."""
        read = None if self.total is None else SnapshotRead(read_id, request=self.request, total=self.total)
        schema = self.schema or TableSchema(self.table, (), (), ())
        return note(schema, read=read, lacking=self.lacking, structure=self.structure)
