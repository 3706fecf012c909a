"""Prints log sequence numbers as hexadecimal texts in three groups, which sort in log order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

# Of each group of digits: the first, the one behind the last (None: the end), and where the text has them.
_GROUPS = ((0, 8, 0), (8, 16, 9), (16, None, 18))


def text_of(lsn: bytes | None) -> str:
    """An LSN as `00000027:00000758:0005`; the empty text for none."""
    if lsn is None:
        return ""
    digits = lsn.hex()
    return ":".join(digits[first:last] for first, last, _ in _GROUPS)


def texts_of(values: pa.Array, size: int) -> pa.Array:
    """LSNs (binary, without nulls) as texts. If all have `size` bytes they are converted at once."""
    try:
        octets = values.cast(pa.binary(size))
    except pa.ArrowInvalid:
        return pa.array(map(text_of, values.to_pylist()), pa.string())
    start, rows, width = octets.offset * size, len(octets), 2 * size + 2
    raw = octets.buffers()[1][start : start + rows * size] if rows else b""
    digits = np.frombuffer(bytes(raw).hex().encode(), np.uint8).reshape(rows, 2 * size)
    shown = np.full((rows, width), ord(":"), np.uint8)
    for first, last, place in _GROUPS:
        group = digits[:, first:last]
        shown[:, place : place + group.shape[1]] = group
    offsets = pa.py_buffer(np.arange(0, width * rows + 1, width, dtype=np.int32))
    return pa.StringArray.from_buffers(rows, offsets, pa.py_buffer(shown.tobytes()))
