"""Db2's `source` block, and log sequence numbers in SQL."""

from __future__ import annotations

import pyarrow as pa

from tailrace.model.schema import OPTIONAL_STRING, STRING, Field
from tailrace.model.source import OffsetEntries, SourceBlock

SOURCE_TYPE = pa.struct([("change_lsn", pa.string()), ("commit_lsn", pa.string())])
BLOCK = SourceBlock(
    connector="db2",
    schema_name="io.debezium.connector.db2.Source",
    fields=(
        Field("schema", STRING),
        Field("table", STRING),
        Field("change_lsn", OPTIONAL_STRING),
        Field("commit_lsn", OPTIONAL_STRING),
    ),
    transaction_id=("commit_lsn",),
    position=("commit_lsn", "change_lsn"),
    change_id=("schema", "table"),
    event_id=(("change_lsn", "change_lsn"), ("commit_lsn", "commit_lsn")),
    # Db2Partition has the server, Db2OffsetContext.getOffset() three entries in each phase.
    offset=OffsetEntries(4, 4, 4),
)
# z/OS has 10 as well.
LSN_BYTES = 16


def literal_of(lsn: str) -> str:
    """A log sequence number as SQL writes it; the lowest there is for the empty text."""
    return f"X'{lsn.replace(':', '') or '00' * LSN_BYTES}'"
