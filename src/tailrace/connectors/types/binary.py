"""Binary columns under `binary.handling.mode`, and Arrow binary arrays made from numpy bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.events import BINARY_HANDLING_MODE
from tailrace.connectors.value_type import Convert, ValueType, as_is
from tailrace.errors import DecodeError
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.binary import base64


def binary_type(config: Config) -> ValueType:
    """A binary column; its conversion takes a binary array."""
    mode = config[BINARY_HANDLING_MODE]
    if mode == "bytes":
        return ValueType(ConnectSchema("bytes"), pa.binary(), _SHOWN[mode])
    return ValueType(ConnectSchema("string"), pa.string(), _SHOWN[mode], form=mode)


def hex_text(octets: pa.Array) -> pa.Array:
    """Bytes as lower-case hex digits."""
    return pa.array([None if value is None else value.hex() for value in octets.to_pylist()], pa.string())


def _url_safe(octets: pa.Array) -> pa.Array:
    return pc.replace_substring(pc.replace_substring(base64(octets), "+", "-"), "/", "_")


_SHOWN: dict[str, Convert] = {"bytes": as_is, "hex": hex_text, "base64": base64, "base64-url-safe": _url_safe}

_HEX: npt.NDArray[np.uint8] = np.full(256, 255, np.uint8)
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    _HEX[list(_digits)] = range(16)


def hex_bytes(digits: pa.Array) -> pa.Array:
    """Pairs of hex digits as bytes. Raises DecodeError for anything else."""
    _, offsets_buffer, data = digits.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[digits.offset : digits.offset + len(digits) + 1]
    nibbles: npt.NDArray[np.uint8] = _HEX[np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]]
    if (nibbles > 15).any() or ((offsets - offsets[0]) % 2).any():
        raise DecodeError("a value holds something other than pairs of hex digits")
    return bytes_of(np.diff(offsets) // 2, nibbles[0::2] * np.uint8(16) + nibbles[1::2], digits)


def bytes_of(sizes: npt.NDArray[np.integer[Any]], octets: npt.NDArray[np.uint8], like: pa.Array) -> pa.Array:
    """A binary array of values of those sizes, stored one after another in `octets`; null where `like` is null."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    result = pa.Array.from_buffers(pa.binary(), len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(octets)])
    return result if like.null_count == 0 else pc.if_else(pc.is_valid(like), result, pa.scalar(None, pa.binary()))
