"""Hashes that choose partitions: MurmurHash3 as Debezium computes it, and Java's `hashCode`."""

from __future__ import annotations

import struct as binary
from decimal import Decimal
from typing import Any

from tailrace.javalike.hashes import text_hash

_MASK = (1 << 64) - 1
_SEED = 9001


def murmur(value: Any, kind: str) -> int:
    """The hash of a value under a schema of type `kind`: of a text's UTF-8, of anything else's `hashCode`."""
    if isinstance(value, str):
        return _murmur(value.encode("utf-8", "replace"))
    return _murmur(binary.pack("<i", java(value, kind)))


def java(value: Any, kind: str) -> int:
    """Java's `hashCode` of a value under a schema of type `kind`. Raises ValueError for one that has no stable hash."""
    if isinstance(value, bool):
        return 1231 if value else 1237
    if isinstance(value, int):
        return value if kind in ("int8", "int16", "int32") else _int((value ^ (value >> 32)) & 0xFFFFFFFF)
    if isinstance(value, float):
        return _of_float(value, kind)
    if isinstance(value, str):
        return _int(text_hash(value))
    if isinstance(value, bytes):
        return _of_bytes(bytes(reversed(value)), 1)
    if isinstance(value, Decimal):
        return _of_decimal(value)
    raise ValueError(f"a value of type {kind} has no hash that is the same everywhere")


def _of_float(value: float, kind: str) -> int:
    if value != value:
        value = float("nan")
    if kind == "float":
        return int(binary.unpack(">i", binary.pack(">f", value))[0])
    bits = int(binary.unpack(">Q", binary.pack(">d", value))[0])
    return _int((bits ^ (bits >> 32)) & 0xFFFFFFFF)


def _of_bytes(data: bytes, start: int) -> int:
    result = start
    for unit in _signed(data):
        result = (31 * result + unit) & 0xFFFFFFFF
    return _int(result)


def _of_decimal(value: Decimal) -> int:
    """BigDecimal: the unscaled number's hash, by its 32 bit words, and the scale."""
    sign, digits, exponent = value.as_tuple()
    number, result = int("".join(map(str, digits)) or "0"), 0
    words = []
    while number:
        words.append(number & 0xFFFFFFFF)
        number >>= 32
    for word in reversed(words):
        result = (31 * result + word) & 0xFFFFFFFF
    result = -result if sign else result
    return _int((31 * result - int(exponent)) & 0xFFFFFFFF)


def _signed(data: bytes) -> list[int]:
    """Bytes as Java sees them, from -128 to 127."""
    return [byte - 256 if byte > 127 else byte for byte in data]


def _int(value: int) -> int:
    return value - (1 << 32) if value & 0x80000000 else value


class _State:
    """The four numbers that are mixed, and the two that change with each mixing."""

    def __init__(self) -> None:
        self.h1, self.h2 = 0x9368E53C2F6AF274 ^ _SEED, 0x586DCD208F7CD3FD ^ _SEED
        self.c1, self.c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def mix(self, k1: int, k2: int) -> None:
        """Take in 16 bytes."""
        k1 = _rotated(k1 * self.c1 & _MASK, 23) * self.c2 & _MASK
        self.h1 = ((self.h1 ^ k1) + self.h2) & _MASK
        self.h2 = _rotated(self.h2, 41)
        k2 = _rotated(k2 * self.c2 & _MASK, 23) * self.c1 & _MASK
        self.h2 = ((self.h2 ^ k2) + self.h1) & _MASK
        self.h1 = (self.h1 * 3 + 0x52DCE729) & _MASK
        self.h2 = (self.h2 * 3 + 0x38495AB5) & _MASK
        self.c1 = (self.c1 * 5 + 0x7B7D159C) & _MASK
        self.c2 = (self.c2 * 5 + 0x6BCE6396) & _MASK

    def end(self, length: int) -> int:
        """The upper half of the first number, after so many bytes."""
        self.h2 ^= length
        self.h1 = (self.h1 + self.h2) & _MASK
        self.h2 = (self.h2 + self.h1) & _MASK
        return _int(((_final(self.h1) + _final(self.h2)) & _MASK) >> 32)


def _murmur(data: bytes) -> int:
    state = _State()
    whole = len(data) & ~15
    for at in range(0, whole, 16):
        state.mix(*binary.unpack_from("<QQ", data, at))
    rest = _signed(data[whole:])
    if rest:
        # A last byte beyond 127 is negative in Java and so sets all the bits above it.
        k = [0, 0]
        for at, byte in enumerate(rest):
            k[at // 8] ^= (byte << (8 * (at % 8))) & _MASK
        state.mix(*k)
    return state.end(len(data))


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK


def _final(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _MASK
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ (value >> 33)
