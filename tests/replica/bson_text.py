"""Reads BSON itself and makes extended JSON of it as a tree: what a replica's documents are compared with.

The modes are those of `json.serialization.mode`. A tree has texts, dicts in the order of fields, lists, booleans,
None, and numbers as `Number`, so that 1, 1.0 and -0.0 are three values.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from bson import Decimal128

STRICT, RELAXED, CANONICAL = "strict", "relaxed", "canonical"
_LAST_ISO_MS = 253402300800000  # the year 10000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Number:
    """A number of JSON as text: an integer's digits, or a double's, which have a point, an exponent or letters."""

    text: str

    @staticmethod
    def of_integer(text: str) -> Number:
        """An integer; `-0` is a double in JSON as well."""
        return Number.of_double("-0.0") if text == "-0" else Number(text)

    @staticmethod
    def of_double(text: str) -> Number:
        """A number with a point or an exponent, or none at all (NaN, Infinity)."""
        return Number(repr(float(text)))


def parsed(text: str) -> Any:
    """The tree of a JSON text, in which NaN and Infinity may be without quotes. A name that comes twice is told."""
    hooks: Any = {"parse_int": Number.of_integer, "parse_float": Number.of_double, "parse_constant": Number.of_double}
    return json.loads(text, object_pairs_hook=_once, **hooks)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else {"(a name comes twice)": [list(pair) for pair in pairs]}


def shown(tree: Any) -> str:
    """A tree as text: equal texts are equal trees, in the order of fields."""
    if isinstance(tree, Number):
        return tree.text
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {shown(tree[name])}" for name in tree) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(shown, tree)) + "]"
    return json.dumps(tree, ensure_ascii=False)


class Special(dict[str, Any]):
    """A value of a type that JSON does not have, no document."""


class Reader:
    """Reads documents in one mode."""

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def document(self, data: bytes) -> dict[str, Any]:
        """The tree of a document; of fields of one name the last value counts."""
        return dict(self._elements(data))

    def _elements(self, data: bytes) -> list[tuple[str, Any]]:
        at, found = 4, []
        while data[at]:
            kind, (name, at) = data[at], _name(data, at + 1)
            value, at = self._value(kind, data, at)
            found.append((name, value))
        return found

    def _value(self, kind: int, data: bytes, at: int) -> tuple[Any, int]:
        if kind in (0x03, 0x04):
            end = at + _int32(data, at)
            inner = data[at:end]
            return (self.document(inner) if kind == 0x03 else [value for _, value in self._elements(inner)]), end
        size, read = _KINDS[kind]
        end = size(data, at)
        value = read(self, data[at:end])
        return Special(value) if isinstance(value, dict) else value, end

    def _double(self, data: bytes) -> Any:
        (value,) = struct.unpack("<d", data)
        if self._mode == STRICT or (self._mode == RELAXED and math.isfinite(value)):
            return Number.of_double(repr(value))
        return {"$numberDouble": _java(value)}

    def _int32(self, data: bytes) -> Any:
        text = str(_int32(data, 0))
        return {"$numberInt": text} if self._mode == CANONICAL else Number(text)

    def _int64(self, data: bytes) -> Any:
        text = str(int.from_bytes(data, "little", signed=True))
        return Number(text) if self._mode == RELAXED else {"$numberLong": text}

    def _date(self, data: bytes) -> Any:
        millis = int.from_bytes(data, "little", signed=True)
        if self._mode == STRICT:
            return {"$date": Number(str(millis))}
        if self._mode == RELAXED and 0 <= millis < _LAST_ISO_MS:
            moment = _EPOCH + timedelta(milliseconds=millis)
            fraction = f".{millis % 1000:03d}".rstrip("0") if millis % 1000 else ""
            return {"$date": f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"}
        return {"$date": {"$numberLong": str(millis)}}

    def _binary(self, data: bytes) -> Any:
        subtype, content = f"{data[4]:02X}", data[5:]
        content = content[4:] if subtype == "02" else content
        text = base64.b64encode(content).decode()
        if self._mode == STRICT:
            return {"$binary": text, "$type": subtype}
        return {"$binary": {"base64": text, "subType": subtype}}

    def _regex(self, data: bytes) -> Any:
        pattern, at = _name(data, 0)
        options, _ = _name(data, at)
        options = "".join(sorted(options))
        if self._mode == STRICT:
            return {"$regex": pattern, "$options": options}
        return {"$regularExpression": {"pattern": pattern, "options": options}}

    def _scoped(self, data: bytes) -> Any:
        end = 8 + _int32(data, 4)
        return {"$code": _text(data[8 : end - 1]), "$scope": self.document(data[end:])}

    def _timestamp(self, data: bytes) -> Any:
        increment, seconds = struct.unpack("<II", data)
        return {"$timestamp": {"t": Number(str(seconds)), "i": Number(str(increment))}}

    def _pointer(self, data: bytes) -> Any:
        name, id_ = _text(data[4:-13]), {"$oid": data[-12:].hex()}
        return {"$dbPointer": {"$ref": name, "$id": id_}} if self._mode == CANONICAL else {"$ref": name, "$id": id_}


def _decimal(_: Reader, data: bytes) -> Any:
    return {"$numberDecimal": str(Decimal128.from_bid(data))}


def _string(_: Reader, data: bytes) -> str:
    return _text(data[4:-1])


def _java(value: float) -> str:
    """A double as Java prints it: `1.0`, `1.0E17`, `Infinity`."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f")
    # Java has two digits at least, and of those that mean the value it takes the nearest: 4.9E-324.
    text = repr(value) if len(Decimal(repr(value)).as_tuple().digits) > 1 else f"{value:.1e}"
    sign, digits, exponent = Decimal(text).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{len(digits) + int(exponent) - 1}"


def _int32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little", signed=True)


def _name(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return _text(data[at:end]), end + 1


def _text(data: bytes) -> str:
    """Invalid UTF-8 becomes U+FFFD, as in Debezium."""
    return data.decode(errors="replace")


def _fixed(size: int) -> Callable[[bytes, int], int]:
    return lambda _, at: at + size


def _prefixed(more: int) -> Callable[[bytes, int], int]:
    return lambda data, at: at + more + _int32(data, at)


def _patterned(data: bytes, at: int) -> int:
    return data.index(0, data.index(0, at) + 1) + 1


def _constant(name: str, of: Any = None) -> Callable[[Reader, bytes], Any]:
    return lambda _, __: {name: Number("1") if of is None else of}


# How long a value of each type is, and what it becomes.
_KINDS: dict[int, tuple[Callable[[bytes, int], int], Callable[[Reader, bytes], Any]]] = {
    0x01: (_fixed(8), Reader._double),
    0x02: (_prefixed(4), _string),
    0x05: (_prefixed(5), Reader._binary),
    0x06: (_fixed(0), _constant("$undefined", True)),
    0x07: (_fixed(12), lambda _, data: {"$oid": data.hex()}),
    0x08: (_fixed(1), lambda _, data: data == b"\x01"),
    0x09: (_fixed(8), Reader._date),
    0x0A: (_fixed(0), lambda _, __: None),
    0x0B: (_patterned, Reader._regex),
    0x0C: (_prefixed(16), Reader._pointer),
    0x0D: (_prefixed(4), lambda _, data: {"$code": _text(data[4:-1])}),
    0x0E: (_prefixed(4), lambda _, data: {"$symbol": _text(data[4:-1])}),
    0x0F: (_prefixed(0), Reader._scoped),
    0x10: (_fixed(4), Reader._int32),
    0x11: (_fixed(8), Reader._timestamp),
    0x12: (_fixed(8), Reader._int64),
    0x13: (_fixed(16), _decimal),
    0x7F: (_fixed(0), _constant("$maxKey")),
    0xFF: (_fixed(0), _constant("$minKey")),
}
