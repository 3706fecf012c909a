"""BIT and VARBIT: from texts of 0 and 1 to the bytes of `io.debezium.data.Bits`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.types.binary import bytes_of
from tailrace.errors import DecodeError
from tailrace.model.arrow import literal

# Wider than this, a table of rows by bits would be mostly padding, so values are taken one by one.
_MOST_CELLS = 1 << 26


def bits(text: pa.Array) -> pa.Array:
    """Bit strings as little-endian bytes without trailing zero bytes, so that all zeros are empty."""
    if not pc.all(pc.match_substring_regex(text, "^[01]*$"), min_count=0).as_py():
        raise DecodeError("a bit string holds something other than 0 and 1")
    widest = pc.max(pc.binary_length(text)).as_py() or 0
    width = -(-widest // 8) * 8
    if not width or width * len(text) > _MOST_CELLS:
        return pa.array([None if value is None else _one(value) for value in text.to_pylist()], pa.binary())
    padded = pc.utf8_lpad(text.fill_null(""), width, "0")
    digits = np.frombuffer(padded.buffers()[2], np.uint8)[padded.offset * width :][: len(padded) * width]
    octets = np.packbits(digits.reshape(-1, width)[:, ::-1] & 1, axis=1, bitorder="little")
    used = octets != 0
    sizes = np.where(used.any(axis=1), octets.shape[1] - np.argmax(used[:, ::-1], axis=1), 0)
    kept = np.arange(octets.shape[1]) < sizes[:, None]
    return bytes_of(sizes, octets[kept], text)


def true_or_null(text: pa.Array) -> pa.Array:
    """BIT(1) and VARBIT(1) as booleans; an empty VARBIT(1) is null, as in the reference engine."""
    return pc.equal(pc.if_else(pc.equal(text, literal("")), None, text), literal("1"))


def _one(text: str) -> bytes:
    number = int(text or "0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")
