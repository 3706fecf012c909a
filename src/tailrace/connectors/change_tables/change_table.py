"""A change table as a reader knows it: its instance, its statement, and what each row of it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from tailrace.connectors.change_tables.changes import ChangeRows, ChangeTableRows
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.sql_tables.tables import Block


@dataclass(frozen=True)
class ChangeTable:
    """A change table and how its rows are read.

    `statement` selects from it under the alias cdc_data, `kind` is what a row is, as changes.py numbers it, if the row
    tells it, and `order` the order of its rows.
    """

    instance: Instance
    captured: CapturedTable
    statement: str
    kind: str | None
    order: str

    def rows(self, block: Block) -> ChangeRows:
        """Rows of the driver, at least one. Raises DecodeError."""
        raise NotImplementedError

    def whole(self, rows: ChangeRows) -> ChangeRows:
        """The rows of whole transactions with their kinds, where one row alone does not tell its kind."""
        return rows

    def incomplete(self, changes: ChangeTableRows) -> Mapping[str, pa.Array]:
        """The columns `before` and `unchanged` of a batch where an update leaves out values it has not touched."""
        return {}
