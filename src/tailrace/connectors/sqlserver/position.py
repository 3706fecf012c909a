"""The `source` block, and LSNs as texts: three groups of hexadecimal digits, which sort as the log does."""

from __future__ import annotations

import pyarrow as pa

from tailrace.connectors.change_tables.position import Reading
from tailrace.model.schema import OPTIONAL_INT64, OPTIONAL_STRING, STRING, Field
from tailrace.model.source import SourceBlock

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
)
# In the `log` of an offset: where the log begins that comes after the first snapshot.
BEGINS = "begins"
_GROUPS = (8, 8, 4)


def text_of(lsn: bytes | None) -> str:
    """An LSN (10 bytes) as `00000027:00000758:0005`; the empty text for none."""
    if lsn is None:
        return ""
    digits = lsn.hex()
    return ":".join((digits[:8], digits[8:16], digits[16:]))


def literal_of(lsn: str) -> str:
    """An LSN as SQL writes it; the lowest there is for the empty text."""
    return "0x" + (lsn.replace(":", "") or "0" * sum(_GROUPS))


def parse(text: str) -> Reading:
    """A position from its text. Raises OffsetError."""
    return Reading.from_text(text)
