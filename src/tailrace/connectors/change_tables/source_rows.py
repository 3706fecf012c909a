"""Makes the `source` of rows that are no changes, and of single changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.tables import LastChange


def source_row(dialect: Dialect, last: LastChange | None) -> dict[str, Any]:
    """The `source` of a change."""
    known = {
        "commit_lsn": last and (last.commit or None),
        "change_lsn": last and last.change,
        "event_serial_no": last and last.serial,
    }
    return {field.name: known[field.name] for field in dialect.source_type}


def source_rows(dialect: Dialect, last: LastChange | None, count: int) -> pa.StructArray:
    """The `source` of rows that are no changes: that of one change."""
    row = source_row(dialect, last)
    columns = [pa.repeat(pa.scalar(row[field.name], field.type), count) for field in dialect.source_type]
    return pa.StructArray.from_arrays(columns, fields=list(dialect.source_type))
