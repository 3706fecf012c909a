"""SQL Server's `source` block, and LSNs in SQL."""

from __future__ import annotations

import pyarrow as pa

from tailrace.model.schema import OPTIONAL_INT64, OPTIONAL_STRING, STRING, Field
from tailrace.model.source import OffsetEntries, SourceBlock

SOURCE_TYPE = pa.struct([("change_lsn", pa.string()), ("commit_lsn", pa.string()), ("event_serial_no", pa.int64())])
BLOCK = SourceBlock(
    connector="sqlserver",
    schema_name="io.debezium.connector.sqlserver.Source",
    fields=(
        Field("schema", STRING),
        Field("table", STRING),
        Field("change_lsn", OPTIONAL_STRING),
        Field("commit_lsn", OPTIONAL_STRING),
        Field("event_serial_no", OPTIONAL_INT64),
    ),
    transaction_id=("commit_lsn",),
    position=("commit_lsn", "change_lsn", "event_serial_no"),
    event_id=tuple((name, name) for name in ("change_lsn", "commit_lsn", "event_serial_no")),
    # SqlServerPartition has server and database, SqlServerOffsetContext.getOffset() three positions, in a snapshot two
    # entries more, and an incremental one its own four.
    offset=OffsetEntries(5, 7, 11),
)
LSN_BYTES = 10  # binary(10)


def literal_of(lsn: str) -> str:
    """An LSN as SQL writes it; the lowest there is for the empty text."""
    return "0x" + (lsn.rstrip("+").replace(":", "") or "00" * LSN_BYTES)
