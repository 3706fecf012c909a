"""Masks and cuts text columns. Hashes are computed once for each distinct value."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.masks import Hash, Masking, Stars, Truncate

_SERIAL_HEADER, _STRING, _LONG_STRING = b"\xac\xed\x00\x05", b"\x74", b"\x7c"
_SHORT = 0xFFFF


def applied(values: pa.Array, masking: Masking) -> pa.Array:
    """A text column under its mask, or a binary one that is cut."""
    mask = masking.mask
    if isinstance(mask, Truncate) and pa.types.is_binary(values.type):
        return cut_bytes(values, mask.length)
    return masked(values, mask, masking.absent, masking.length)


def masked(text: pa.Array, mask: Truncate | Stars | Hash, absent: str | None, length: int) -> pa.Array:
    """A text column under a mask. A hash has at most `length` characters.

    Null is masked as `absent`, the text that replaces it in a required column; without one it stays null.
    """
    if isinstance(mask, Stars):
        return pa.repeat(pa.scalar("*" * mask.count, pa.string()), len(text))
    if absent is not None:
        text = text.fill_null(absent)
    if isinstance(mask, Truncate):
        return _cut(text, mask.length)
    distinct = text.dictionary_encode()
    hashes = [_hash(value, mask)[:length] for value in distinct.dictionary.to_pylist()]
    return pa.array(hashes, pa.string()).take(distinct.indices)


def _cut(text: pa.Array, length: int) -> pa.Array:
    """Text cut to so many UTF-16 code units, which Java counts; half a surrogate pair at the cut goes as well."""
    cut = pc.utf8_slice_codeunits(text, 0, length)
    # Only characters of four bytes take two units.
    if not pc.any(pc.match_substring_regex(cut, r"[^\x{0}-\x{FFFF}]")).as_py():
        return cut
    units = [None if value is None else value.encode("utf-16-le")[: length * 2] for value in cut.to_pylist()]
    return pa.array([None if raw is None else raw.decode("utf-16-le", "ignore") for raw in units], pa.string())


def cut_bytes(octets: pa.Array, length: int) -> pa.Array:
    """A binary column cut to so many bytes."""
    return pc.binary_slice(octets, 0, length)


def _hash(value: str, mask: Hash) -> str:
    raw = _serialized(value) if mask.serialized else value.encode()
    digest = hashlib.new(digest_name(mask.algorithm) or mask.algorithm, usedforsecurity=False)
    digest.update(mask.salt.encode() + raw)
    return digest.hexdigest()


def _serialized(value: str) -> bytes:
    """A string as Java's object serialisation writes it (Java Object Serialization Specification, 6.4)."""
    raw = _modified_utf8(value)
    kind, size = (_STRING, 2) if len(raw) <= _SHORT else (_LONG_STRING, 8)
    return _SERIAL_HEADER + kind + len(raw).to_bytes(size, "big") + raw


def _modified_utf8(value: str) -> bytes:
    """UTF-8 of the UTF-16 code units, with NUL in two bytes (java.io.DataInput, "Modified UTF-8")."""
    if value.isascii() and "\0" not in value:
        return value.encode()
    units = np.frombuffer(value.encode("utf-16-le"), "<u2").tolist()
    return b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units)


def digest_name(algorithm: str) -> str | None:
    """hashlib's name of one of Java's algorithms (`SHA-256`, `SHA3-512`, `SHA-512/256`), None if there is none."""
    name = algorithm.lower().replace("/", "_")
    name = name.replace("sha3-", "sha3_") if name.startswith("sha3") else name.replace("-", "")
    return name if name in hashlib.algorithms_available else None
