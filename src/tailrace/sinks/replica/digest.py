"""Hashes rows to 64 bits: equal rows have equal hashes, whatever their chunks, views or dictionaries.

For comparing two sides whose rows are in the same types. A null is no value, NaN equals NaN; -0.0 equals 0.0, as in
keys, but with `signed`; of a map the order of its entries does not count. No hash is 0, which is left to say that there
is no row.
Not for keeping: another release may hash otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9E3779B97F4A7C15)
# Places are not mixed as values are: a value equal to its place would cancel it, and (1, 1) be as (2, 2) is.
_PLACE = np.uint64(0xD1B54A32D192ED03)
_WORD = 8
# Longer values are hashed one by one: a value of a gigabyte takes no extra memory.
_LONG = 1 << 16


def row_hashes(
    columns: Sequence[pa.Array | pa.ChunkedArray], length: int, seed: int = 0, *, signed: bool = False
) -> Hashes:
    """A hash for each row of some columns; columns of other types or in another order, and other seeds, give others."""
    return combined([value_hashes(column, seed, signed=signed) for column in columns], length, seed)


def combined(columns: Sequence[Hashes], length: int, seed: int = 0) -> Hashes:
    """A hash for each row of hashes of its columns' values."""
    total = np.zeros(length, np.uint64)
    for place, column in enumerate(columns):
        total += mixed(column ^ _salt(place) ^ _seed(seed))
    total = mixed(total)
    return np.where(total == 0, np.uint64(1), total)


def value_hashes(values: pa.Array | pa.ChunkedArray, seed: int = 0, *, signed: bool = False) -> Hashes:
    """A hash for each value of an array of any type, nested ones included."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if not len(values):
        return np.zeros(0, np.uint64)
    hashes = np.full(len(values), _NULL) if pa.types.is_null(values.type) else _of_type(values, seed, signed=signed)
    if values.null_count:
        hashes = np.where(values.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def mixed(values: Hashes) -> Hashes:
    """Each number scattered over all 64 bits (the finalizer of SplitMix64, Steele and others 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _of_type(values: pa.Array, seed: int, *, signed: bool) -> Hashes:
    kind = values.type
    if pa.types.is_struct(kind):
        return row_hashes(values.flatten(), len(values), seed, signed=signed)
    if pa.types.is_map(kind):
        pairs = pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
        return _of_lists(values.cast(pairs), seed, ordered=False, signed=signed)
    if pa.types.is_fixed_size_list(kind):
        return _of_lists(values.cast(pa.list_(kind.value_type)), seed, ordered=True, signed=signed)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_lists(values, seed, ordered=True, signed=signed)
    if pa.types.is_decimal(kind):
        return _of_decimals(values, seed)
    if pa.types.is_floating(kind):
        numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy()
        numbers = numbers if signed else numbers + 0.0
        return mixed(np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        whole = values.cast(pa.int32()) if pa.types.is_date32(kind) or pa.types.is_time32(kind) else values
        return mixed(whole.cast(pa.int64(), safe=False).fill_null(0).to_numpy().view(np.uint64))
    return _of_bytes(values.cast(pa.large_binary()), seed)


def _of_decimals(values: pa.Array, seed: int) -> Hashes:
    if not pa.types.is_decimal256(values.type):
        values = values.cast(pa.decimal128(38, values.type.scale))
    words = values.type.byte_width // _WORD
    data = np.frombuffer(values.buffers()[1], np.uint64).reshape(-1, words)[values.offset : values.offset + len(values)]
    return _folded(
        mixed(data.ravel() ^ np.tile(_places(words), len(values)) ^ _seed(seed)), np.full(len(values), words)
    )


def _of_lists(values: pa.ListArray, seed: int, *, ordered: bool, signed: bool) -> Hashes:
    lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    items = value_hashes(values.flatten(), seed, signed=signed)
    if ordered:
        items = items ^ _salts(_within(lengths).astype(np.uint64))
    return mixed(lengths.astype(np.uint64)) + _folded(mixed(items ^ _seed(seed)), lengths)


def _of_bytes(values: pa.LargeBinaryArray, seed: int) -> Hashes:
    _, offsets, buffer = values.buffers()
    edges = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    starts, lengths = edges[:-1], np.diff(edges)
    long = lengths > _LONG
    hashes = mixed(lengths.astype(np.uint64))
    counts = np.where(long, 0, -(-lengths // _WORD))
    if counts.any():
        within = _within(counts)
        at = np.repeat(starts, counts) + _WORD * within
        rest = np.repeat(lengths, counts) - _WORD * within
        words = _words(buffer, at)
        kept = np.minimum(rest, _WORD).astype(np.uint64)
        cut = np.uint64(0xFFFFFFFFFFFFFFFF) >> (np.uint64(64) - np.uint64(8) * kept)
        hashes += _folded(mixed((words & cut) ^ _salts(within.astype(np.uint64)) ^ _seed(seed)), counts)
    for place in np.flatnonzero(long):
        part = buffer.slice(int(starts[place]), int(lengths[place]))
        digest = hashlib.blake2b(part, digest_size=_WORD, salt=bytes([seed])).digest()
        hashes[place] ^= np.frombuffer(digest, np.uint64)[0]
    return hashes


def _words(buffer: pa.Buffer, at: npt.NDArray[np.int64]) -> Hashes:
    """The eight bytes at each place of a buffer; what lies behind its end is zero."""
    first, end = int(at.min()), int(at.max()) + _WORD
    data = np.zeros(end - first, np.uint8)
    part = np.frombuffer(buffer, np.uint8)[first:end]
    data[: len(part)] = part
    return np.ndarray(len(data) - _WORD + 1, np.dtype("<u8"), data.data, strides=(1,))[at - first]


def _folded(parts: Hashes, counts: npt.NDArray[np.int64]) -> Hashes:
    """The sums of groups of so many parts each, modulo 2^64."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(parts, dtype=np.uint64)])
    ends = np.cumsum(counts)
    folded: Hashes = sums[ends] - sums[ends - counts]
    return folded


def _within(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """0, 1, ... within each group of so many."""
    ends = np.cumsum(counts)
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(ends - counts, counts)


def _salts(places: Hashes) -> Hashes:
    """What tells places apart."""
    return mixed(places ^ _PLACE)


def _places(count: int) -> Hashes:
    return _salts(np.arange(count, dtype=np.uint64))


def _salt(place: int) -> np.uint64:
    salt: np.uint64 = _places(place + 1)[place]
    return salt


def _seed(seed: int) -> np.uint64:
    """What makes hashes of one seed independent of another's; nothing for the seed 0."""
    return np.uint64(0) if seed == 0 else _salt(seed - 1)
