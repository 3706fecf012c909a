"""How a replica represents PostgreSQL's types: docs/pipelines.md#replica and docs/connectors/postgres.md#types."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.override import override
from tests.replica import literals
from tests.replica.content import Representation

_NAMES = ("precise", "bytes", "numeric")


@dataclass(frozen=True)
class Modes:
    """The properties `decimal.handling.mode`, `binary.handling.mode` and `interval.handling.mode`."""

    decimals: str = "precise"
    binary: str = "bytes"
    interval: str = "numeric"

    @staticmethod
    def of(properties: Mapping[str, str]) -> Modes:
        """Those of a connector."""
        names = ("decimal.handling.mode", "binary.handling.mode", "interval.handling.mode")
        return Modes(*(properties.get(name, default) for name, default in zip(names, _NAMES, strict=True)))


DEFAULTS = Modes()


# Types that are text. Others that are not named in this module are the bytes of the server's text.
_TEXTS = {
    *("text", "varchar", "bpchar", "char", "name", "json", "jsonb", "xml", "uuid", "tsvector"),
    *("inet", "cidr", "macaddr", "macaddr8"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
}
# Arrays of these types have no mapping either.
_UNMAPPED_IN_ARRAYS = ("money", "name", "interval", "varbit", "xml", "point")


@dataclass(frozen=True)
class PostgresType:
    """A type by its name in the catalog, its modifier (-1: none), the type of an array's elements, and its kind."""

    name: str
    modifier: int = -1
    element: PostgresType | None = None
    is_enum: bool = False

    @property
    def cast(self) -> str:
        """What makes the server print a value independently of its locale."""
        return "::numeric" if self.name == "money" else ""


def represent(type_: PostgresType, arrow: pa.DataType | None, modes: Modes) -> Representation:
    """The representation of a type in a column of an Arrow type; None is a column that the replica lacks."""
    if type_.element is not None or type_.name in ("oidvector", "int2vector"):
        return _Array(type_, arrow, modes)
    expected, found = _scalar(type_, modes, arrow)
    return _Scalar(expected, found)


@dataclass(frozen=True)
class _Scalar(Representation):
    """A representation by two functions."""

    _expected: Callable[[str], str]
    _found: Callable[[Any], str]

    @override
    def expected(self, text: str) -> str:
        return self._expected(text)

    @override
    def found(self, value: Any) -> str:
        return self._found(value)


class _Array(Representation):
    """An array as a list, or as text: its literal, or JSON."""

    def __init__(self, type_: PostgresType, arrow: pa.DataType | None, modes: Modes) -> None:
        self._is_vector = type_.element is None
        self._is_text = arrow is not None and not pa.types.is_list(arrow)
        while arrow is not None and pa.types.is_list(arrow):
            arrow = arrow.value_type
        element = type_.element or PostgresType("int8")
        is_unmapped = element.name in _UNMAPPED_IN_ARRAYS
        known = None if self._is_text else arrow
        self._element = _unmapped(known, modes) if is_unmapped else represent(element, known, modes)

    @override
    def expected(self, text: str) -> str:
        elements = list(text.split()) if self._is_vector else literals.array(text)
        return json.dumps(_each(elements, self._element.expected), ensure_ascii=False)

    @override
    def found(self, value: Any) -> str:
        if not self._is_text:
            return json.dumps(_each(value, self._element.found), ensure_ascii=False)
        text = value.decode() if isinstance(value, bytes) else value
        elements = literals.array(text) if literals.is_array(text) else None
        if elements is None:
            elements = json.loads(text, parse_int=str, parse_float=str)
        return json.dumps(_each(elements, self._element.expected), ensure_ascii=False)


def _each(values: list[Any], convert: Callable[[Any], str]) -> list[Any]:
    return [
        None if value is None else _each(value, convert) if isinstance(value, list) else convert(value)
        for value in values
    ]


def _scalar(
    type_: PostgresType, modes: Modes, arrow: pa.DataType | None
) -> tuple[Callable[[str], str], Callable[[Any], str]]:
    """What makes a text of the server's text, and of the replica's value."""
    name = type_.name
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in ("numeric", "money"):
        is_float = arrow is not None and pa.types.is_floating(arrow)
        return (_double, _double) if is_float else (_number, _number)
    if name in ("bit", "varbit"):
        return (_boolean_of_bit, _boolean) if type_.modifier == 1 else (_bits, _bits_of)
    if name == "interval":
        is_number = arrow is None or pa.types.is_integer(arrow)
        return (lambda text: str(literals.microseconds(text)), str) if is_number else (_period, _period)
    if name == "bytea":
        return _bytea, _binary(modes.binary)
    return (str, str) if type_.is_enum or name in _TEXTS else (str, _unmapped(arrow, modes).found)


def _unmapped(arrow: pa.DataType | None, modes: Modes) -> Representation:
    """The bytes of the server's text, which may be text themselves; or the text, in a column that is text in place."""
    if arrow is None or not pa.types.is_string(arrow) or modes.binary == "bytes":
        return _Scalar(str, _plain)
    in_bytes = _binary(modes.binary)
    return _Scalar(str, lambda value: bytes.fromhex(in_bytes(value)).decode())


def _plain(value: Any) -> str:
    """Text, or the bytes of the server's text."""
    return value.decode() if isinstance(value, bytes) else str(value)


# How `decimal.handling.mode=string` writes what is no number, as in Debezium.
_SPECIAL = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}


def _number(value: Any) -> str:
    """A decimal by its value: of a column without a scale zeros at the end are not kept, as in Debezium."""
    text = format(value, "f") if isinstance(value, Decimal) else _SPECIAL.get(str(value), str(value))
    return text.rstrip("0").rstrip(".") if "." in text else text


def _double(value: Any) -> str:
    return repr(float(value))


def _single(value: Any) -> str:
    return repr(float(np.float32(value)))


def _boolean(value: Any) -> str:
    return "t" if value in (True, "t", "true") else "f" if value in (False, "f", "false") else str(value)


def _boolean_of_bit(text: str) -> str:
    return "t" if text == "1" else "f"


def _moment(value: Any) -> str:
    return literals.moment(value.isoformat() if isinstance(value, date | datetime) else _plain(value))


def _clock(value: Any) -> str:
    return literals.clock(_plain(value))


def _period(value: Any) -> str:
    text = _plain(value)
    return text if text.endswith("infinity") else " ".join(map(str, literals.period(text)))


def _bytes(value: bytes) -> str:
    return value.hex()


def _bits(text: str) -> str:
    """The bits as a number, which does not tell zeros in front: Debezium has them in little-endian bytes."""
    return str(int(text or "0", 2))


def _bits_of(value: bytes | str) -> str:
    return _bits(value) if isinstance(value, str) else str(int.from_bytes(value, "little"))


def _bytea(text: str) -> str:
    return text.removeprefix("\\x")


def _binary(mode: str) -> Callable[[Any], str]:
    if mode == "base64":
        return lambda value: base64.b64decode(value).hex()
    if mode == "base64-url-safe":
        return lambda value: base64.urlsafe_b64decode(value).hex()
    return _bytes if mode == "bytes" else str


def _vector(value: Any) -> str:
    """A vector's numbers, which the server has in single precision."""
    numbers = value.strip("[]").split(",") if isinstance(value, str) else value
    return ",".join(map(_single, numbers))


def _sparse(text: str) -> str:
    listed, _, dimensions = text.partition("}/")
    pairs = [pair.split(":") for pair in listed.strip("{").split(",") if pair]
    return f"{dimensions} {sorted((int(place), _single(number)) for place, number in pairs)}"


def _sparse_of(value: Any) -> str:
    """A sparse vector; a database has it as JSON, whose pairs are lists."""
    value = json.loads(value) if isinstance(value, str) else value
    return f"{value['dimensions']} {sorted((place, _single(number)) for place, number in value['vector'])}"


def _point(text: str) -> str:
    x, y = (repr(float(part)) for part in text.strip("()").split(","))
    return f"({x},{y})"


def _point_of(value: Any) -> str:
    """A point whose well-known binary says the same as its numbers; a database has it as JSON, bytes in base64."""
    if isinstance(value, str):
        found = json.loads(value)
        value = {**found, "wkb": base64.b64decode(found["wkb"])}
    x, y = float(value["x"]), float(value["y"])
    same = value["wkb"] == struct.pack("<bIdd", 1, 1, x, y) and value.get("srid") is None
    return f"({x!r},{y!r})" if same else repr(value)


_BY_NAME: dict[str, tuple[Callable[[str], str], Callable[[Any], str]]] = {
    "bool": (_boolean, _boolean),
    "float4": (_single, _single),
    "float8": (_double, _double),
    "date": (_moment, _moment),
    "timestamp": (_moment, _moment),
    "timestamptz": (_moment, _moment),
    "time": (_clock, _clock),
    "timetz": (_clock, _clock),
    "point": (_point, _point_of),
    "vector": (_vector, _vector),
    "halfvec": (_vector, _vector),
    "sparsevec": (_sparse, _sparse_of),
}
