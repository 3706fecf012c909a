"""Reads literals as Kafka Connect does: Values.parseString, for the value of InsertHeader."""

from __future__ import annotations

import re
from decimal import MAX_PREC, Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tailrace.events.payload import array
from tailrace.events.records import RecordPart
from tailrace.javalike.date_format import DAY, DateFormat
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.binary import shortest

_LOGICAL = "org.apache.kafka.connect.data."
_EXACT = Context(prec=MAX_PREC)
_INTEGERS = (("int8", 7), ("int16", 15), ("int32", 31), ("int64", 63))
_NUMBERS = (*(name for name, _ in _INTEGERS), "float", "double")  # each holds those before it
_DIGITS_OF_INT64 = 19
_LARGEST_EXPONENT = 999_999  # of Python's arithmetic; at much larger ones the reference does not start
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TOKEN = re.compile(r'(?:[^\\:,{}\[\]"]|\\.)+|[:,{}\[\]"]', re.DOTALL)
# Texts of these lengths are times; Java reads them by these patterns.
_TIMES = {
    10: ("Date", "int32", DateFormat.of("yyyy-MM-dd")),
    13: ("Time", "int32", DateFormat.of("HH:mm:ss.SSS'Z'")),
    24: ("Timestamp", "int64", DateFormat.of("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")),
}
# Of a null, which has no schema: only its type says so.
NOTHING = ConnectSchema("string", optional=True)


class _Literal(NamedTuple):
    """A value as Arrow takes it under its schema: a decimal as the bytes of its unscaled value, a map as pairs."""

    schema: ConnectSchema
    value: Any


class _NoLiteralError(Exception):
    """The text is no array and no map whose items have a type in common: it is a text."""


def literal_part(text: str) -> RecordPart:
    """A literal as a column of one value: a boolean, the narrowest number that holds it, a time, an array, a map, text.

    Items of arrays and maps have a type in common; others stay texts. null has no schema.
    """
    text = text.strip()
    if text == "null":
        return RecordPart(NOTHING, pa.nulls(1))
    literal = _structured(text) if text[:1] in ("[", "{") else _scalar(text)
    schema, value = literal or _Literal(ConnectSchema("string"), text)
    return RecordPart(schema, array([value], schema))


def _scalar(text: str) -> _Literal | None:
    """A boolean, time or number. Of several tokens a time has all, or the first one alone is read (12:30 is 12)."""
    if text in ("true", "false"):
        return _Literal(ConnectSchema("boolean"), text == "true")
    token = _TOKEN.match(text)
    first = "" if token is None else token[0].strip()
    time = (_time(text) or _time(first)) if first[:1].isdecimal() else None
    return time or (_number(first) if first[:1].isdecimal() or first[:1] in ("+", "-") else None)


def _time(text: str) -> _Literal | None:
    """A date, a time of the day or both, by the text's length."""
    text = text.replace("\\:", ":")
    if len(text) not in _TIMES:
        return None
    name, kind, pattern = _TIMES[len(text)]
    try:
        millis = pattern.parse(pa.array([text]))[0].as_py()
    except (ValueError, OverflowError):
        return None
    value = millis // DAY if name == "Date" else millis
    return _Literal(ConnectSchema(kind, name=_LOGICAL + name, version=1), value)


def _number(text: str) -> _Literal | None:
    """The narrowest number: whole ones are integers whatever their form, others float, double, or else Decimal."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of many digits
        return None
    scale = -int(number.as_tuple().exponent)
    if abs(scale) > _LARGEST_EXPONENT:
        return None
    if number.adjusted() < _DIGITS_OF_INT64 or not number:
        whole = number.to_integral_value(context=_EXACT) if number else Decimal(0)
        for name, bits in _INTEGERS if number == whole else ():
            if -(1 << bits) <= int(whole) < 1 << bits:
                return _Literal(ConnectSchema(name), int(whole))
    if scale and np.isfinite(float(number)):
        with np.errstate(over="ignore"):
            is_float = bool(np.isfinite(np.float32(float(number))))
        return _Literal(ConnectSchema("float" if is_float else "double"), float(number))
    schema = ConnectSchema("bytes", name=_LOGICAL + "Decimal", version=1, parameters=(("scale", str(scale)),))
    return _Literal(schema, shortest(int(number.scaleb(scale, _EXACT))))


def _structured(text: str) -> _Literal | None:
    """An array or a map; None for another text."""
    tokens = _Tokens(text)
    try:
        literal = tokens.value()
    except (_NoLiteralError, RecursionError):
        return None
    return literal


class _Tokens:
    """Reads the items of an array or a map, one token after another."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def value(self) -> _Literal:
        """The next value. Raises _NoLiteralError."""
        if self._skips("["):
            return self._array()
        if self._skips("{"):
            return self._map()
        if self._skips('"'):
            return self._quoted()
        literal = self._bare()
        if literal is None:  # null, too, which has no type in common with others
            raise _NoLiteralError
        return literal

    def _array(self) -> _Literal:
        items: list[_Literal] = []
        while not self._skips("]"):
            if items and not self._skips(","):
                raise _NoLiteralError
            items.append(self.value())
        kind = _common(items)
        return _Literal(ConnectSchema("array", items=kind), [_as(item, kind) for item in items])

    def _map(self) -> _Literal:
        keys: list[_Literal] = []
        values: list[_Literal] = []
        while not self._skips("}"):
            keys.append(self.value())
            if not self._skips(":"):
                raise _NoLiteralError
            values.append(self.value())
            self._skips(",")
        of_keys, of_values = _common(keys), _common(values)
        if of_keys.type in ("array", "map"):
            raise _NoLiteralError
        pairs = {_as(key, of_keys): _as(item, of_values) for key, item in zip(keys, values, strict=True)}
        return _Literal(ConnectSchema("map", keys=of_keys, values=of_values), list(pairs.items()))

    def _quoted(self) -> _Literal:
        start = self._at
        while (token := self._next()) != '"':
            if token is None:
                raise _NoLiteralError
        content = self._text[start : self._at - 1]
        return _time(content) or _Literal(ConnectSchema("string"), content)

    def _bare(self) -> _Literal | None:
        """A value without quotes; a time with colons has five tokens."""
        start = self._at
        token = self._next()
        if token is None:
            return None
        end = self._at
        is_whole = all(self._next() is not None for _ in range(4))
        time = _time(self._text[start : self._at].strip()) if is_whole else None
        if time is None:
            self._at = end
        return time or _scalar(token.strip())

    def _skips(self, delimiter: str) -> bool:
        """Whether the next token, blanks apart, is this one; then it is consumed."""
        start = self._at
        token = self._next()
        while token is not None and not token.strip():
            token = self._next()
        if token is not None and token.strip() == delimiter:
            return True
        self._at = start
        return False

    def _next(self) -> str | None:
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            return None
        self._at = token.end()
        return token[0]


def _common(items: list[_Literal]) -> ConnectSchema:
    """The schema that holds all items: the same one, or the widest of their numbers. Raises _NoLiteralError."""
    schemas = {item.schema for item in items}
    if len(schemas) == 1:
        return schemas.pop()
    if schemas and all(schema.name is None and schema.type in _NUMBERS for schema in schemas):
        return max(schemas, key=lambda schema: _NUMBERS.index(schema.type))
    raise _NoLiteralError


def _as(item: _Literal, schema: ConnectSchema) -> Any:
    return float(item.value) if schema.type in ("float", "double") else item.value
