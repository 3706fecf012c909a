"""Makes the `source` of rows that are no changes, and of single changes."""

from __future__ import annotations

import pyarrow as pa

from tailrace.connectors.change_tables.tables import LastChange


def source_rows(source_type: pa.StructType, last: LastChange | None, count: int) -> pa.StructArray:
    """The `source` of rows that are no changes: that of one change."""
    row = {
        "commit_lsn": last and (last.commit or None),
        "change_lsn": last and last.change,
        "event_serial_no": last and last.serial,
    }
    columns = [pa.repeat(pa.scalar(row[field.name], field.type), count) for field in source_type]
    return pa.StructArray.from_arrays(columns, fields=list(source_type))
