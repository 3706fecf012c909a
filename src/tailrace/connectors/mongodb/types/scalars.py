"""Formats scalar values as JSON text, one column for each BSON type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.mongodb.types import layout
from tailrace.connectors.mongodb.types.decimals import decimal_text
from tailrace.connectors.mongodb.types.layout import Buffer, Bytes, Ints, broken
from tailrace.connectors.mongodb.types.strings import byte_slices, slices, string_column
from tailrace.javalike.escapes import escape
from tailrace.model.arrow import indices, join, literal, mask, repeat
from tailrace.model.text.binary import base64
from tailrace.model.text.numbers import float_text

_HEX = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)  # two digits for each byte
_CAPITAL_HEX = np.frombuffer(bytes(range(256)).hex().upper().encode(), np.uint16)
_OLD_BINARY = 2
_LAST_DATE = 253402300799999  # the end of the year 9999, in milliseconds


class ValueMode(Enum):
    """How values are written that JSON has no type for: the `JsonMode`s of the driver."""

    STRICT = "strict"
    RELAXED = "relaxed"
    EXTENDED = "extended"


@dataclass(frozen=True)
class ValueStyle:
    """A mode, and what separates members: "," or ", "."""

    mode: ValueMode
    separator: str = ","


@dataclass(frozen=True)
class ScalarTexts:
    """Texts with what stands before and after each; one text for all rows is in `left`."""

    left: str
    texts: pa.Array | None = None
    right: str = ""

    def whole(self, rows: int) -> pa.Array:
        """The complete texts."""
        if self.texts is None:
            return repeat(self.left, rows)
        return join(self.left, self.texts, self.right) if self.left or self.right else self.texts


Writer = Callable[[Buffer, Ints, ValueStyle], ScalarTexts]


def fragment(buffer: Buffer, kind: int, starts: Ints, style: ValueStyle) -> ScalarTexts:
    """The JSON of values of one kind, which is no document, array or code with a scope."""
    return _WRITERS[kind](buffer, starts, style)


def _double(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    numbers = buffer.float64[starts]
    finite = np.isfinite(numbers)
    texts = float_text(pa.array(np.where(finite, numbers, 0.0)))
    if not finite.all():
        odd = np.where(np.isnan(numbers[~finite]), "NaN", np.where(numbers[~finite] > 0, "Infinity", "-Infinity"))
        names = pa.array(odd.tolist(), pa.string())
        names = join('{"$numberDouble": "', names, '"}') if style.mode is ValueMode.RELAXED else names
        texts = pc.replace_with_mask(texts.cast(pa.string()), mask(~finite), names)
    if style.mode is ValueMode.EXTENDED:
        return ScalarTexts('{"$numberDouble": "', texts, '"}')
    return ScalarTexts("", texts)


def _string(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    return ScalarTexts('"', escape(string_column(buffer, starts)), '"')


def _binary(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    text = base64(binary_column(buffer, starts))
    subtypes = _fixed(_CAPITAL_HEX[buffer.uint8[starts + 4][:, None]].view(np.uint8))
    if style.mode is ValueMode.STRICT:
        return ScalarTexts('{"$binary": "', join(text, f'"{style.separator}"$type": "', subtypes), '"}')
    between = f'"{style.separator}"subType": "'
    return ScalarTexts('{"$binary": {"base64": "', join(text, between, subtypes), '"}}')


def binary_column(buffer: Buffer, starts: Ints) -> pa.Array:
    """Binary data without its subtype; the old subtype 2 has a second length before the data."""
    ends = starts + 5 + buffer.int32[starts]
    return byte_slices(buffer, starts + 5 + 4 * (buffer.uint8[starts + 4] == _OLD_BINARY), ends)


def _object_id(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    return ScalarTexts('{"$oid": "', object_id_text(buffer, starts), '"}')


def object_id_text(buffer: Buffer, starts: Ints) -> pa.Array:
    """Object ids as 24 hexadecimal digits."""
    return _fixed(_HEX[buffer.uint8[starts[:, None] + np.arange(12)]].view(np.uint8))


def _boolean(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    flags = buffer.uint8[starts]
    if flags.size and flags.max() > 1:
        raise broken(buffer, int(starts[flags.argmax()]), "a boolean")
    return ScalarTexts("", pc.if_else(mask(flags == 1), literal("true"), literal("false")))


def _date(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    times = buffer.int64[starts]
    if style.mode is ValueMode.STRICT:
        return ScalarTexts('{"$date": ', _digits(times), "}")
    if style.mode is ValueMode.EXTENDED:
        return ScalarTexts('{"$date": {"$numberLong": "', _digits(times), '"}}')
    iso = (times >= 0) & (times <= _LAST_DATE)
    texts = join('"', iso_text(np.where(iso, times, 0)), '"')
    if not iso.all():
        numbers = join('{"$numberLong": "', _digits(times[~iso]), '"}')
        texts = pc.replace_with_mask(texts, mask(~iso), numbers)
    return ScalarTexts('{"$date": ', texts, "}")


@cache
def _fractions() -> pa.Array:
    """The thousandths of a second, without zeros at the end; made late, as PyArrow loads pandas at its first value."""
    return pa.array([f".{part:03d}".rstrip("0") if part else "" for part in range(1000)], pa.string())


def iso_text(times: Ints) -> pa.Array:
    """Milliseconds since 1970 as `2026-07-03T17:59:45.729Z`, without zeros at the end of the fraction."""
    seconds = pc.cast(pa.array(times // 1000).cast(pa.timestamp("s")), pa.string())
    text = np.frombuffer(seconds.buffers()[2], np.uint8)[: 19 * len(times)].reshape(-1, 19).copy()
    text[:, 10] = ord("T")
    return join(_fixed(text), _fractions().take(indices(times % 1000)), "Z")


def _expression(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    pattern_ends = buffer.zero_from(starts)
    pattern = escape(slices(buffer, starts, pattern_ends))
    options = slices(buffer, pattern_ends + 1, buffer.zero_from(pattern_ends + 1)).to_pylist()
    sorted_ = escape(pa.array(["".join(sorted(text)) for text in options], pa.string()))
    if style.mode is ValueMode.STRICT:
        return ScalarTexts('{"$regex": "', join(pattern, f'"{style.separator}"$options": "', sorted_), '"}')
    between = f'"{style.separator}"options": "'
    return ScalarTexts('{"$regularExpression": {"pattern": "', join(pattern, between, sorted_), '"}}')


def _pointer(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    name = escape(string_column(buffer, starts))
    target = object_id_text(buffer, starts + 4 + buffer.int32[starts])
    texts = join(name, f'"{style.separator}"$id": {{"$oid": "', target)
    if style.mode is ValueMode.EXTENDED:
        return ScalarTexts('{"$dbPointer": {"$ref": "', texts, '"}}}')
    return ScalarTexts('{"$ref": "', texts, '"}}')


def _code(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    return ScalarTexts('{"$code": "', escape(string_column(buffer, starts)), '"}')


def _symbol(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    return ScalarTexts('{"$symbol": "', escape(string_column(buffer, starts)), '"}')


def _int32(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    digits = _digits(buffer.int32[starts])
    return (
        ScalarTexts('{"$numberInt": "', digits, '"}') if style.mode is ValueMode.EXTENDED else ScalarTexts("", digits)
    )


def _int64(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    digits = _digits(buffer.int64[starts])
    return (
        ScalarTexts("", digits) if style.mode is ValueMode.RELAXED else ScalarTexts('{"$numberLong": "', digits, '"}')
    )


def _timestamp(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    seconds, number = _digits(buffer.uint32[starts + 4]), _digits(buffer.uint32[starts])
    return ScalarTexts('{"$timestamp": {"t": ', join(seconds, f'{style.separator}"i": ', number), "}}")


def _decimal(buffer: Buffer, starts: Ints, style: ValueStyle) -> ScalarTexts:
    return ScalarTexts('{"$numberDecimal": "', decimal_text(buffer, starts), '"}')


def _constant(text: str) -> Writer:
    return lambda buffer, starts, style: ScalarTexts(text)


def _digits(numbers: npt.NDArray[np.integer[Any]]) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string())


def _fixed(rows: Bytes) -> pa.Array:
    """Texts of one width from rows of characters."""
    count, width = rows.shape
    offsets = np.arange(0, count * width + 1, width, dtype=np.int32) if width else np.zeros(count + 1, np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(rows)])


_WRITERS: dict[int, Writer] = {
    layout.DOUBLE: _double,
    layout.STRING: _string,
    layout.BINARY: _binary,
    layout.UNDEFINED: _constant('{"$undefined": true}'),
    layout.OBJECT_ID: _object_id,
    layout.BOOLEAN: _boolean,
    layout.DATE: _date,
    layout.NULL: _constant("null"),
    layout.REGEX: _expression,
    layout.DB_POINTER: _pointer,
    layout.CODE: _code,
    layout.SYMBOL: _symbol,
    layout.INT32: _int32,
    layout.TIMESTAMP: _timestamp,
    layout.INT64: _int64,
    layout.DECIMAL128: _decimal,
    layout.MIN_KEY: _constant('{"$minKey": 1}'),
    layout.MAX_KEY: _constant('{"$maxKey": 1}'),
}
