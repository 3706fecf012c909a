"""BSON for tests: documents of every type put together byte by byte, and a plain reader that writes their JSON."""

from __future__ import annotations

import base64
import datetime
import struct
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from bson import Decimal128
from hypothesis import strategies as st

from tailrace.connectors.mongodb.types.layout import Buffer, Values

Element = tuple[int, bytes]  # type byte and value
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN = {"Lu", "Ll", "Lt", "Lo", "Nd", "Nl", "No", "Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"}
_PLAIN |= {"Sm", "Sc", "Sk", "So"}


def values_of(documents: list[bytes]) -> Values:
    """The documents as rows."""
    starts = np.cumsum([0, *map(len, documents)])[:-1]
    return Values.documents(Buffer(documents), starts)


def document(*members: tuple[bytes, Element]) -> bytes:
    """A document of named elements."""
    body = b"".join(bytes([kind]) + name + b"\0" + value for name, (kind, value) in members)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def string(raw: bytes) -> bytes:
    """A string's length, bytes and final zero."""
    return struct.pack("<i", len(raw) + 1) + raw + b"\0"


_words = st.text("abcdefghij XYZ_09", max_size=20)
_texts = st.one_of(_words, st.text(max_size=8), st.text('"\\/\b\f\n\r\t\x00\x01\x1f\x7f\u2028e\u0301ー', max_size=6))
_raw_texts = st.one_of(
    _texts.map(lambda text: text.encode()),
    st.binary(max_size=6),
    st.lists(st.sampled_from([0xED, 0xA0, 0x80, 0xF0, 0x9F, 0xC3, 0x41]), max_size=6).map(bytes),
)
names = _texts.map(lambda text: text.replace("\0", "0").encode())
_repeated = st.sampled_from([b"a", b"", b"the first name of many bytes", b"the other name of many bytes"])
_doubles = st.one_of(st.floats(width=64), st.integers(-(10**9), 10**9).map(float), st.sampled_from([1e7, 1e-3, 5e-324]))
_dates = st.one_of(
    st.integers(0, 2 * 10**12),
    st.integers(0, 10**6).map(lambda value: value * 100),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-1, 0, 253402300799999, 253402300800000]),
)
_decimals = st.one_of(
    st.builds("{}E{}".format, st.integers(-(10**18), 10**18), st.integers(-25, 5)),
    st.builds("{}E{}".format, st.integers(-(10**34) + 1, 10**34 - 1), st.integers(-6176, 6111)),
    st.sampled_from(["NaN", "-NaN", "Infinity", "-Infinity", "-0", "0E-6176", "0E+6111"]),
).map(lambda text: Decimal128(text).bid)


def _binary(parts: tuple[int, bytes]) -> bytes:
    subtype, data = parts
    data = struct.pack("<i", len(data)) + data if subtype == 2 else data
    return struct.pack("<i", len(data)) + bytes([subtype]) + data


_scalars: dict[int, st.SearchStrategy[bytes]] = {
    0x01: _doubles.map(lambda value: struct.pack("<d", value)),
    0x02: _raw_texts.map(string),
    0x05: st.tuples(st.sampled_from([0, 2, 3, 4, 5, 0x80]), st.binary(max_size=20)).map(_binary),
    0x06: st.just(b""),
    0x07: st.binary(min_size=12, max_size=12),
    0x08: st.sampled_from([b"\0", b"\1"]),
    0x09: _dates.map(lambda value: struct.pack("<q", value)),
    0x0A: st.just(b""),
    0x0B: st.tuples(names, st.permutations(b"imsx")).map(lambda parts: parts[0] + b"\0" + bytes(parts[1]) + b"\0"),
    0x0C: st.tuples(_raw_texts, st.binary(min_size=12, max_size=12)).map(lambda parts: string(parts[0]) + parts[1]),
    0x0D: _raw_texts.map(string),
    0x0E: _raw_texts.map(string),
    0x10: st.integers(-(2**31), 2**31 - 1).map(lambda value: struct.pack("<i", value)),
    0x11: st.binary(min_size=8, max_size=8),
    0x12: st.integers(-(2**63), 2**63 - 1).map(lambda value: struct.pack("<q", value)),
    0x13: _decimals,
    0x7F: st.just(b""),
    0xFF: st.just(b""),
}
_LEVELS, _MEMBERS = 3, 5
_SIMPLE = list(_scalars)
_ALL = [*_SIMPLE, 0x03, 0x03, 0x03, 0x04, 0x04, 0x04, 0x0F]


@st.composite
def elements(draw: st.DrawFn, level: int = 0) -> Element:
    """Any element."""
    kind = draw(st.sampled_from(_ALL if level < _LEVELS else _SIMPLE))
    if kind == 0x03:
        return kind, draw(documents(level + 1))
    if kind == 0x04:
        inner = draw(st.lists(elements(level + 1), max_size=_MEMBERS))
        return kind, document(*((str(number).encode(), element) for number, element in enumerate(inner)))
    if kind == 0x0F:
        body = string(draw(_raw_texts)) + draw(documents(level + 1))
        return kind, struct.pack("<i", len(body) + 4) + body
    return kind, draw(_scalars[kind])


@st.composite
def documents(draw: st.DrawFn, level: int = 0) -> bytes:
    """Any document; some names come again."""
    found = draw(st.lists(names | _repeated, max_size=_MEMBERS))
    return document(*((name, draw(elements(level + 1))) for name in found))


class PlainReader:
    """Writes one document as JSON, element by element; slow, and as plain as the format's description."""

    def __init__(self, data: bytes, mode: str, separator: str = ",") -> None:
        self.data = data
        self.mode = mode
        self.separator = separator
        self.at = 0

    def json(self) -> str:
        """The text of the document."""
        text = self._document()
        assert self.at == len(self.data)
        return text

    def value(self, kind: int) -> str:
        """The text of the value that begins here."""
        return self._readers()[kind]()

    def _document(self, *, array: bool = False) -> str:
        end = self.at + struct.unpack_from("<i", self.data, self.at)[0]
        self.at += 4
        parts: dict[str, str] = {}
        while (kind := self._number("<B")) != 0:
            name = self._zero_ended()
            value = self.value(kind)
            parts[name] = value if array else f'"{escaped(name)}": {value}'
        assert self.at == end
        left, right = "[]" if array else "{}"
        return left + self.separator.join(parts.values()) + right

    def _readers(self) -> dict[int, Callable[[], str]]:
        return {
            0x01: self._double,
            0x02: lambda: f'"{escaped(self._string())}"',
            0x03: self._document,
            0x04: lambda: self._document(array=True),
            0x05: self._binary,
            0x06: lambda: '{"$undefined": true}',
            0x07: lambda: f'{{"$oid": "{self._bytes(12).hex()}"}}',
            0x08: lambda: "true" if self._number("<B") else "false",
            0x09: self._date,
            0x0A: lambda: "null",
            0x0B: self._expression,
            0x0C: self._pointer,
            0x0D: lambda: f'{{"$code": "{escaped(self._string())}"}}',
            0x0E: lambda: f'{{"$symbol": "{escaped(self._string())}"}}',
            0x0F: self._scoped,
            0x10: lambda: self._wrapped("$numberInt", str(self._number("<i")), "extended"),
            0x11: self._timestamp,
            0x12: lambda: self._wrapped("$numberLong", str(self._number("<q")), "extended", "strict"),
            0x13: lambda: f'{{"$numberDecimal": "{self._decimal()}"}}',
            0x7F: lambda: '{"$maxKey": 1}',
            0xFF: lambda: '{"$minKey": 1}',
        }

    def _bytes(self, count: int) -> bytes:
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count : self.at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _zero_ended(self) -> str:
        end = self.data.index(0, self.at)
        raw = self._bytes(end - self.at)
        self.at += 1
        return java_text(raw)

    def _string(self) -> str:
        raw = self._bytes(self._number("<i"))
        assert raw[-1] == 0
        return java_text(raw[:-1])

    def _wrapped(self, name: str, text: str, *modes: str) -> str:
        return f'{{"{name}": "{text}"}}' if self.mode in modes else text

    def _double(self) -> str:
        value = self._number("<d")
        if value != value or value in (float("inf"), float("-inf")):
            text = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
            return self._wrapped("$numberDouble", text, "relaxed", "extended")
        return self._wrapped("$numberDouble", java_double(value), "extended")

    def _binary(self) -> str:
        size, subtype = self._number("<i"), self._number("<B")
        data = self._bytes(size)
        text = base64.b64encode(data[4:] if subtype == 2 else data).decode()
        if self.mode == "strict":
            return f'{{"$binary": "{text}"{self.separator}"$type": "{subtype:02X}"}}'
        return f'{{"$binary": {{"base64": "{text}"{self.separator}"subType": "{subtype:02X}"}}}}'

    def _date(self) -> str:
        value = self._number("<q")
        if self.mode == "strict":
            return f'{{"$date": {value}}}'
        if self.mode == "extended" or not 0 <= value <= 253402300799999:
            return f'{{"$date": {{"$numberLong": "{value}"}}}}'
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=value)
        fraction = f".{value % 1000:03d}".rstrip("0").rstrip(".")
        return f'{{"$date": "{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"}}'

    def _expression(self) -> str:
        pattern, options = escaped(self._zero_ended()), escaped("".join(sorted(self._zero_ended())))
        if self.mode == "strict":
            return f'{{"$regex": "{pattern}"{self.separator}"$options": "{options}"}}'
        return f'{{"$regularExpression": {{"pattern": "{pattern}"{self.separator}"options": "{options}"}}}}'

    def _pointer(self) -> str:
        name, target = escaped(self._string()), self._bytes(12).hex()
        text = f'{{"$ref": "{name}"{self.separator}"$id": {{"$oid": "{target}"}}}}'
        return f'{{"$dbPointer": {text}}}' if self.mode == "extended" else text

    def _scoped(self) -> str:
        self._number("<i")
        code = escaped(self._string())
        return f'{{"$code": "{code}"{self.separator}"$scope": {self._document()}}}'

    def _timestamp(self) -> str:
        number, seconds = self._number("<I"), self._number("<I")
        return f'{{"$timestamp": {{"t": {seconds}{self.separator}"i": {number}}}}}'

    def _decimal(self) -> str:
        return str(Decimal128.from_bid(self._bytes(16)).to_decimal()).replace("-NaN", "NaN")


def java_text(raw: bytes) -> str:
    """UTF-8 as Java decodes it: what stands for half a surrogate pair is one replacement character."""
    text, at = "", 0
    while at < len(raw):
        if raw[at] == 0xED and at + 1 < len(raw) and 0xA0 <= raw[at + 1] <= 0xBF:
            text += "\ufffd"
            at += 3 if at + 2 < len(raw) and 0x80 <= raw[at + 2] <= 0xBF else 2
        else:
            end = at + 1
            while end < len(raw) and raw[end] != 0xED:
                end += 1
            text += raw[at:end].decode(errors="replace")
            at = end
    return text


def escaped(text: str) -> str:
    """The text as the driver's JSON writer escapes it, one UTF-16 unit at a time."""
    out = []
    for unit in struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le")):
        char = chr(unit)
        plain = char if unicodedata.category(char) in _PLAIN else f"\\u{unit:04x}"
        out.append(_ESCAPES.get(char, plain))
    return "".join(out)


def java_double(value: float) -> str:
    """A finite double as Double.toString writes it."""
    if value == 0:
        return "-0.0" if str(value).startswith("-") else "0.0"
    if 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    significant = "".join(map(str, digits)).rstrip("0") or "0"
    assert isinstance(exponent, int)
    if len(significant) == 1:  # Java writes two digits at least, the nearest ones
        two = f"{abs(value):.1e}"
        if float(two) == abs(value):
            significant = two[0] + two[2]
    mantissa = f"{significant[0]}.{significant[1:].rstrip('0') or '0'}"
    return f"{'-' if sign else ''}{mantissa}E{len(digits) - 1 + exponent}"
