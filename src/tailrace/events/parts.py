"""Builds texts or bytes of rows from constant pieces and columns; they are joined once, at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.errors import DecodeError
from tailrace.model.arrow import as_type, indices, is_bytes, join, octets, repeat
from tailrace.model.text.json import Fragment
from tailrace.model.text.strings import quote

Part: TypeAlias = "str | bytes | pa.Array"
Parts: TypeAlias = "list[Part]"
Integers = npt.NDArray[np.int64]
_TEXT = pa.string()


def flat(*pieces: Part | Fragment | Sequence[Part]) -> Parts:
    """One list of parts, neighbouring constants in one."""
    parts: Parts = []
    for piece in pieces:
        new: Sequence[Part]
        if isinstance(piece, Fragment):
            new = (piece.left,) if piece.text is None else (piece.left, piece.text, piece.right)
        else:
            new = piece if isinstance(piece, list | tuple) else (piece,)
        for part in new:
            last = parts[-1] if parts else None
            if isinstance(part, str) and isinstance(last, str):
                parts[-1] = last + part
                continue
            if isinstance(part, bytes) and isinstance(last, bytes):
                parts[-1] = last + part
                continue
            parts.append(part)
    return parts


def in_bytes(parts: Parts) -> Parts:
    """Parts of texts as parts of bytes."""
    return [_in_bytes(part) for part in parts]


def _in_bytes(part: Part) -> Part:
    if isinstance(part, str | bytes):
        return part.encode() if isinstance(part, str) else part
    return part.cast(pa.large_binary() if pa.types.is_large_string(part.type) else pa.binary())


def struct_parts(names: Sequence[str], values: Sequence[Fragment]) -> Parts:
    """A JSON object of these fields."""
    pieces: list[Part | Fragment] = []
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        pieces += [f"{',' if index else '{'}{quote(name)}:", value]
    return flat(*pieces, "}" if names else "{}")


def widths(parts: Parts, rows: int) -> Integers:
    """Bytes of each row."""
    total = np.full(rows, sum(map(octets, parts)), np.int64)
    for part in parts:
        if not isinstance(part, str | bytes):
            wide = pa.types.is_large_string(part.type) or pa.types.is_large_binary(part.type)
            offsets = np.frombuffer(part.buffers()[1], np.int64 if wide else np.int32)
            total += np.diff(offsets[part.offset : part.offset + rows + 1])
    return total


def text_of(parts: Parts, start: int, rows: int, where: str) -> pa.Array:
    """The texts or bytes of some rows, as a plain array. Raises DecodeError when a row passes what Spark holds."""
    pieces = [part if isinstance(part, str | bytes) else part.slice(start, rows) for part in parts]
    constants = [piece for piece in pieces if isinstance(piece, str | bytes)]
    if len(constants) == len(pieces):
        return constant(constants, rows)
    try:
        return as_type(join(*pieces), pa.binary() if any(map(is_bytes, pieces)) else pa.string())
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as reason:
        raise DecodeError(
            f"an event of {int(widths(pieces, rows).max())} bytes is larger than the 2 GiB a Spark value may have",
            where=where,
            remedy="leave the large column out with column.exclude.list",
        ) from reason


def constant(pieces: Sequence[str | bytes], rows: int) -> pa.Array:
    """The pieces, of which none differs by row, so many times."""
    if any(isinstance(piece, bytes) for piece in pieces):
        whole = b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
        return pa.repeat(pa.scalar(whole, pa.binary()), rows)
    return repeat("".join(map(str, pieces)), rows)


def gather(
    groups: list[tuple[Integers | None, Parts | None]], start: int, stop: int, where: str, kind: pa.DataType = _TEXT
) -> pa.Array:
    """The joined parts of rows start to stop, in the batch's order; `kind` is string or binary, as the parts are."""
    texts: list[pa.Array] = []
    order: list[Integers] = []
    for places, parts in groups:
        low, high = (start, stop) if places is None else np.searchsorted(places, [start, stop]).tolist()
        nothing = parts is None or low == high
        texts.append(pa.nulls(high - low, kind) if nothing else text_of(parts or [], low, high - low, where))
        order.append(np.arange(start, stop) if places is None else places[low:high])
    if len(texts) == 1:
        return texts[0]
    return pa.concat_arrays(texts).take(indices(np.argsort(np.concatenate(order))))
