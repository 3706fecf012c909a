"""Db2's `source` block, and log sequence numbers as hexadecimal texts, which sort in log order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tailrace.model.schema import OPTIONAL_STRING, STRING, Field
from tailrace.model.source import SourceBlock

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
)
_BYTES, _WIDTH = 16, 34
# Of each group of digits: the first, the one behind the last, and where the text has them.
_GROUPS = ((0, 8, 0), (8, 16, 9), (16, 32, 18))


def text_of(lsn: bytes | None) -> str:
    """A log sequence number as `00000000:00000000:00000000053f8a71`; the empty text for none.

    Db2 for Linux, UNIX and Windows has 16 bytes, z/OS 10 as well.
    """
    if lsn is None:
        return ""
    digits = lsn.hex()
    return ":".join((digits[:8], digits[8:16], digits[16:]))


def literal_of(lsn: str) -> str:
    """A log sequence number as SQL writes it; the lowest there is for the empty text."""
    return f"X'{lsn.replace(':', '') or '00' * _BYTES}'"


def lsn_texts(values: Sequence[bytes]) -> pa.Array:
    """Log sequence numbers as texts."""
    joined = b"".join(values)
    if len(joined) != _BYTES * len(values) or any(len(each) != _BYTES for each in values):
        return pa.array(map(text_of, values), pa.string())
    digits = np.frombuffer(joined.hex().encode(), np.uint8).reshape(len(values), 2 * _BYTES)
    shown = np.full((len(values), _WIDTH), ord(":"), np.uint8)
    for first, last, place in _GROUPS:
        shown[:, place : place + last - first] = digits[:, first:last]
    offsets = pa.py_buffer(np.arange(0, _WIDTH * len(values) + 1, _WIDTH, dtype=np.int32))
    return pa.StringArray.from_buffers(len(values), offsets, pa.py_buffer(shown.tobytes()))
