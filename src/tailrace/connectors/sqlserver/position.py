"""SQL Server's `source` block, and LSNs as hexadecimal texts, which sort in log order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

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
# Digits of each group: the first, the one behind the last, and where the text has them.
_GROUPS = ((0, 8, 0), (8, 16, 9), (16, 20, 18))
_DIGITS, _WIDTH = 20, 22


def text_of(lsn: bytes | None) -> str:
    """An LSN (10 bytes) as `00000027:00000758:0005`; the empty text for none."""
    if lsn is None:
        return ""
    digits = lsn.hex()
    return ":".join((digits[:8], digits[8:16], digits[16:]))


def literal_of(lsn: str) -> str:
    """An LSN as SQL writes it; the lowest there is for the empty text."""
    return "0x" + (lsn.rstrip("+").replace(":", "") or "0" * _DIGITS)


def lsn_texts(values: Sequence[bytes]) -> pa.Array:
    """LSNs as texts of three groups of digits."""
    if not values:
        return pa.nulls(0, pa.string())
    digits = np.frombuffer(b"".join(values).hex().encode(), np.uint8).reshape(len(values), _DIGITS)
    shown = np.full((len(values), _WIDTH), ord(":"), np.uint8)
    for first, last, place in _GROUPS:
        shown[:, place : place + last - first] = digits[:, first:last]
    offsets = pa.py_buffer(np.arange(0, _WIDTH * len(values) + 1, _WIDTH, dtype=np.int32))
    return pa.StringArray.from_buffers(len(values), offsets, pa.py_buffer(shown.tobytes()))
