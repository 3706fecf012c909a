"""Random BSON: values of every type, names of fields, keys, and the bytes of documents."""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from random import Random
from typing import Any

import bson
from bson import Binary, Code, DatetimeMS, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

Document = dict[str, Any]

_HEADER = 4 + 1  # a document's length, and the type of its first element
_PLAIN_NAMES = ("a", "b", "c", "name", "n", "list", "sub", "total", "flag", "when")
_ODD_NAMES = (
    "",
    "x.y",
    "$cash",
    "naïve",
    "名",
    "a b",
    'q"q',
    "back\\slash",
    "0",
    "_id",
    "id",
    "A",
    "tab\t",
    "emoji😀",
    "<b>",
)
_TEXTS = (
    "",
    "x",
    "plain text",
    "héllo 世界",
    "😀",
    'q"uote',
    "back\\slash",
    "line\nline",
    "\t\r\b\f",
    "\x00nul",
    "\x7f\x80",
    "</s>",
    "\u2028\u2029",
    "$oid",
    "{}",
    "null",
    "a" * 300,
    "\ufeffbom",
    "\ud7ff\ue000",
    "'",
)
_DOUBLES = (
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1e-3,
    1e7,
    9999999.0,
    12345678.9,
    1e22,
    2e-3,
    1e-7,
    1e16,
    1e17,
    1.1e21,
    5e-324,
    1.7976931348623157e308,
    2.2250738585072014e-308,
    123456789012345680.0,
    4.35,
    0.3,
    100.0,
    2.0**53,
    2.0**63,
    float("nan"),
    float("inf"),
    float("-inf"),
)
_INTS = (0, 1, -1, 7, 2**31 - 1, -(2**31))
_LONGS = (0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
_DECIMALS = (
    "0",
    "-0",
    "1.50",
    "1E+30",
    "1E-30",
    "NaN",
    "Infinity",
    "-Infinity",
    "0E-6176",
    "9.999999999999999999999999999999999E+6144",
    "-12345678901234567890.1234",
    "0.000001",
    "1E-7",
    "0.00",
    "1E+1",
    "123E+3",
)
_DATES = (
    0,
    1,
    -1,
    1582979696789,
    -2177452800000,
    253402300799999,
    253402300800000,
    -62135596800000,
    -62135596800001,
    1580000000000,
    999,
    2**53,
    -(2**53),
    2**63 - 1,
    -(2**63),
    1600000000120,
    1600000000100,
)
_SUBTYPES = (0, 1, 2, 3, 4, 5, 6, 8, 128, 200, 255)
_REGEXES = (("^a.*b$", "imx"), ("", ""), ("a/b", "s"), ('"\\d"', "u"), ("é", "l"))


@dataclass(frozen=True)
class Odd:
    """A value of a type that the driver does not write: the number of the type and the bytes."""

    kind: int
    data: bytes


def to_bson(document: Document | list[Any]) -> bytes:
    """The bytes of a document, or of an array, whose values may be Odd."""
    items = (
        document.items() if isinstance(document, dict) else ((str(index), item) for index, item in enumerate(document))
    )
    elements = b"".join(_element(name, value) for name, value in items)
    return struct.pack("<i", len(elements) + 5) + elements + b"\0"


def _element(name: str, value: Any) -> bytes:
    if isinstance(value, Odd):
        return bytes([value.kind]) + name.encode() + b"\0" + value.data
    if isinstance(value, dict | list):
        return bytes([3 if isinstance(value, dict) else 4]) + name.encode() + b"\0" + to_bson(value)
    encoded = bson.encode({"v": value})
    return encoded[4:5] + name.encode() + b"\0" + encoded[_HEADER + 2 : -1]


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<i", len(encoded) + 1) + encoded + b"\0"


class Values:
    """Values by one source of chance.

    `plain` leaves out what the transforms of documents refuse; `numbers` makes all keys numbers.
    """

    def __init__(self, chance: Random, *, plain: bool, numbers: bool) -> None:
        self._chance, self._plain, self._numbers = chance, plain, numbers

    def document(self, depth: int = 0) -> Document:
        """A document of up to eight fields, without `_id`."""
        count = self._chance.randrange(9 if depth == 0 else 4)
        return {self.name(): self.value(depth) for _ in range(count)}

    def name(self) -> str:
        """The name of a field."""
        if not self._plain and self._chance.random() < 0.12:
            return self._chance.choice(_ODD_NAMES)
        return self._chance.choice(_PLAIN_NAMES)

    def value(self, depth: int = 0) -> Any:
        """A value of any type."""
        if depth < 3 and self._chance.random() < 0.25:
            return self.document(depth + 1) if self._chance.random() < 0.5 else self.array(depth + 1)
        return self.scalar()

    def array(self, depth: int = 1) -> list[Any]:
        """An array; of one type if it has to be plain."""
        count = self._chance.randrange(5)
        if not self._plain:
            return [self.value(depth) for _ in range(count)]
        of = self._chance.choice((self.integer, self.text, self.boolean))
        return [of() for _ in range(count)]

    def integer(self) -> int:
        return self._chance.choice(_INTS)

    def boolean(self) -> bool:
        return self._chance.random() < 0.5

    def text(self) -> str:
        if self._chance.random() < 0.3:
            return "".join(chr(self._chance.choice((self._chance.randrange(1, 0x250), 0x1F600))) for _ in range(8))
        return self._chance.choice(_TEXTS)

    def double(self) -> float:
        chance = self._chance
        if chance.random() < 0.5:
            return chance.choice(_DOUBLES)
        # Few digits: Java 17, which the reference may run on, writes some numbers with more digits than they need.
        return round(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-3, 9), 4)

    def date(self) -> DatetimeMS:
        chance = self._chance
        return DatetimeMS(chance.choice(_DATES) if chance.random() < 0.7 else chance.randrange(-(10**13), 10**13))

    def object_id(self) -> ObjectId:
        return ObjectId(self._chance.randbytes(12))

    def binary(self) -> Binary:
        subtype = self._chance.choice(_SUBTYPES)
        return Binary(self._chance.randbytes(16 if subtype in (3, 4, 5) else self._chance.randrange(6)), subtype)

    def scalar(self) -> Any:
        """A value that is neither document nor array."""
        chance = self._chance
        common = (
            self.integer,
            self.boolean,
            self.text,
            self.double,
            self.date,
            self.object_id,
            self.long,
            self.decimal,
        )
        if self._plain or chance.random() < 0.7:
            return chance.choice(common)()
        return chance.choice((self.binary, self.timestamp, self.regex, self.code, self.rare, lambda: None))()

    def long(self) -> Int64:
        return Int64(self._chance.choice(_LONGS))

    def decimal(self) -> Decimal128:
        return Decimal128(self._chance.choice(_DECIMALS))

    def timestamp(self) -> Timestamp:
        return Timestamp(self._chance.choice((1, 1580000000, 2**31, 2**32 - 1)), self._chance.choice((1, 7, 2**32 - 1)))

    def regex(self) -> Any:
        return Regex(*self._chance.choice(_REGEXES)) if self._chance.random() < 0.2 else self._odd_regex()

    def code(self) -> Code:
        return Code("return x;", self._chance.choice((None, {}, {"x": 1, "y": Int64(5)})))

    def rare(self) -> Any:
        """The types that hardly anybody uses."""
        chance = self._chance
        reference = DBRef("other", chance.choice((1, self.object_id())), chance.choice((None, "elsewhere")))
        undefined, symbol = Odd(6, b""), Odd(14, _text("symbol"))
        pointer = Odd(12, _text("inventory.docs") + self.object_id().binary)
        return chance.choice((reference, undefined, symbol, pointer, MinKey(), MaxKey()))

    def key(self, number: int) -> Any:
        """An `_id` that no other number gets."""
        chance = self._chance
        if self._numbers or chance.random() < 0.4:
            return number
        made = (
            Int64(number),
            Int64(2**53 + number),
            number + 0.5,
            f"key {number}",
            f'q"{number}\\é😀',
            ObjectId(struct.pack(">iq", 7, number)),
            {"a": number, "b": "two"},
            {"x": {"y": number}, "at": DatetimeMS(number)},
            Binary(struct.pack(">i", number)),
            Binary(uuid.UUID(int=number).bytes, 4),
            Binary(struct.pack(">i", number), 200),
            DatetimeMS(number * 10**10),
            DatetimeMS(-number),
            DatetimeMS(253402300800000 + number),
            Decimal128(f"{number}.50"),
            Timestamp(number, 7),
            {"a": Int64(number)},
            1e10 * number,
        )
        return chance.choice(made)

    def _odd_regex(self) -> Odd:
        pattern, options = self._chance.choice(_REGEXES)
        return Odd(11, pattern.encode() + b"\0" + options.encode() + b"\0")
