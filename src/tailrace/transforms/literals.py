"""Reads literals as Kafka Connect does: Values.parseString, for the value of InsertHeader."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import MAX_PREC, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.events.records import Part
from tailrace.model.schema import ConnectSchema
from tailrace.transforms.date_format import DateFormat

_LOGICAL = "org.apache.kafka.connect.data."
_DAY = 86_400_000
_EXACT = Context(prec=MAX_PREC)
_INTEGERS = (("int8", pa.int8(), 7), ("int16", pa.int16(), 15), ("int32", pa.int32(), 31), ("int64", pa.int64(), 63))
_NUMBERS = {**{name: (rank, arrow) for rank, (name, arrow, _) in enumerate(_INTEGERS)}, "float": (4, pa.float32())}
_NUMBERS["double"] = (5, pa.float64())
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TOKEN = re.compile(r'(?:[^\\:,{}\[\]"]|\\.)+', re.DOTALL)
_ITEM = re.compile(r'\s*(?:"(?P<text>[^"\\]*)"|(?P<bare>[^\s"\\:,{}\[\]]+))\s*')
# Texts of these lengths are times; Java reads them by these patterns.
_TIMES = {
    10: ("Date", "int32", pa.int32(), "yyyy-MM-dd"),
    13: ("Time", "int32", pa.int32(), "HH:mm:ss.SSS'Z'"),
    24: ("Timestamp", "int64", pa.int64(), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
}
# Of a null, which has no schema: only its type says so.
NOTHING = ConnectSchema("string", optional=True)


def literal_part(text: str) -> Part:
    """A literal as a column of one value: a boolean, the narrowest number that holds it, a time, an array, or text.

    The arrays are those of numbers, booleans or texts; others stay texts, as maps do. null has no schema.
    """
    text = text.strip()
    if text == "null":
        return Part(NOTHING, pa.nulls(1))
    if text.startswith("["):
        return _array(text) or _text(text)
    first = _TOKEN.match(text)
    return _scalar(text, "" if first is None else first[0].strip()) or _text(text)


def _text(text: str) -> Part:
    return Part(ConnectSchema("string"), pa.array([text], pa.string()))


def _scalar(text: str, first: str) -> Part | None:
    """A boolean, number or time; `first` is the text up to the first delimiter, which alone is read as a number."""
    if text in ("true", "false"):
        return Part(ConnectSchema("boolean"), pa.array([text == "true"]))
    time = (_time(text) or _time(first)) if first[:1].isdecimal() else None
    return time or (_number(first) if first[:1].isdecimal() or first[:1] in ("+", "-") else None)


def _time(text: str) -> Part | None:
    """A date, a time of the day or both, by the text's length."""
    text = text.replace("\\:", ":")
    if len(text) not in _TIMES:
        return None
    name, kind, arrow, pattern = _TIMES[len(text)]
    try:
        millis = DateFormat.of(pattern).parse(pa.array([text]))[0].as_py()
    except (ValueError, OverflowError):
        return None
    return Part(ConnectSchema(kind, name=_LOGICAL + name, version=1), pa.array([_of(name, millis)], arrow))


def _of(name: str, millis: int) -> int:
    return millis // _DAY if name == "Date" else millis


def _number(text: str) -> Part | None:
    """The narrowest number: whole ones are integers whatever their form, others float, double or Decimal."""
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    scale = -int(number.as_tuple().exponent)
    if scale <= 0 and number.adjusted() > 76:
        return _text(text)
    if number == number.to_integral_value(context=_EXACT):
        for name, arrow, bits in _INTEGERS:
            if -(1 << bits) <= int(number) < 1 << bits:
                return Part(ConnectSchema(name), pa.array([int(number)], arrow))
    with np.errstate(over="ignore"):
        is_float = bool(np.isfinite(np.float32(float(number))))
    if scale and np.isfinite(float(number)):
        kind: tuple[str, pa.DataType] = ("float", pa.float32()) if is_float else ("double", pa.float64())
        return Part(ConnectSchema(kind[0]), pa.array([float(number)], kind[1]))
    return _text(text) if scale else _decimal(number)


def _decimal(number: Decimal) -> Part:
    schema = ConnectSchema("bytes", name=_LOGICAL + "Decimal", version=1, parameters=(("scale", "0"),))
    return Part(schema, pa.array([number], pa.decimal256(76, 0)))


def _array(text: str) -> Part | None:
    """An array of numbers, booleans or texts; None for another text."""
    items, at = [], 1
    while at < len(text) - 1 or (at == 1 and len(text) > 2):
        found = _ITEM.match(text, at)
        if found is None:
            return None
        part = _text(found["text"]) if found["text"] is not None else _scalar(found["bare"], found["bare"])
        if part is None or part.schema.name is not None or (found["text"] and len(found["text"]) in _TIMES):
            return None
        items.append(part)
        at = found.end() + 1
        if text[found.end() :] == "]":
            return _of_items(items)
        if text[found.end() : at] != ",":
            return None
    return None


def _of_items(items: list[Part]) -> Part | None:
    """The array of these items under the widest of their types; None if they have none in common."""
    kinds = {item.schema.type for item in items}
    values: list[Any] = [item.values[0].as_py() for item in items]
    if len(kinds) > 1 and not kinds <= set(_NUMBERS):
        return None
    kind = max(kinds, key=_rank) if len(kinds) > 1 else kinds.pop()
    arrow = _NUMBERS[kind][1] if kind in _NUMBERS else items[0].values.type
    convert: Callable[[Any], Any] = float if kind in ("float", "double") else lambda value: value
    schema = ConnectSchema("array", items=ConnectSchema(kind))
    return Part(schema, pa.array([[convert(value) for value in values]], pa.list_(arrow)))


def _rank(kind: str) -> int:
    return _NUMBERS[kind][0]
