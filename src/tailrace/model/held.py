"""Columns whose type cannot hold all values of the source: a value, and beside it the text of one that does not fit.

Events have null there, as Debezium's have. A table that is to equal its source keeps the text: such a column becomes
one of texts when the first such value comes, see `native.py`. Texts of values that fit are those of `texts`.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_VALUE, _TEXT = "tailrace.value", "tailrace.text"
_WIDE = pa.decimal256(76, 0)


def held_type(arrow: pa.DataType) -> pa.StructType:
    """The type of a column of such values."""
    return pa.struct([(_VALUE, arrow), (_TEXT, pa.string())])


def is_held(arrow: pa.DataType) -> bool:
    """Whether a type is one of these."""
    return bool(pa.types.is_struct(arrow)) and [field.name for field in arrow] == [_VALUE, _TEXT]


def held(values: pa.Array, text: pa.Array | None) -> pa.StructArray:
    """Values, with the text of those that are null because they do not fit."""
    text = pa.nulls(len(values), pa.string()) if text is None else text
    mask = pc.and_(values.is_null(), text.is_null())
    return pa.StructArray.from_arrays([values, text], fields=list(held_type(values.type)), mask=mask)


def value_of(column: pa.StructArray) -> pa.Array:
    """The values, null where they do not fit."""
    return column.flatten()[0]


def text_of(column: pa.StructArray) -> pa.Array:
    """The texts of values that do not fit."""
    return column.flatten()[1]


def texts(values: pa.Array) -> pa.Array:
    """Values of native types as a column of texts has them: numbers in plain notation, lists as JSON."""
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_decimal(kind):
        return without_zeros(plain(values))
    if pa.types.is_nested(kind):
        # One by one: such columns are rare, and have values that no list holds.
        return pa.array([None if each is None else json_text(each) for each in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def json_text(value: Any) -> str:
    """A value, or lists of values, as JSON."""
    return json.dumps(_plain_value(value), ensure_ascii=False, separators=(",", ":"))


def _plain_value(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain_value(each) for name, each in value.items()}
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else str(value)  # -0.0 and 0.0 are equal
    if isinstance(value, Decimal):
        return format(value.normalize() if value else Decimal(0), "f")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def plain(values: pa.Array) -> pa.Array:
    """Decimals in plain notation; Arrow prints an exponent where a number has more than six zeros behind the point."""
    scale = values.type.scale
    if 0 <= scale <= 6:
        return values.cast(pa.string())
    widest = values.cast(pa.decimal256(76, scale))
    unscaled = pa.Array.from_buffers(_WIDE, len(widest), widest.buffers(), offset=widest.offset)
    digits = unscaled.cast(pa.string())
    if scale < 0:
        zeros = pc.if_else(pc.equal(digits, "0"), "", "0" * -scale)
        return pc.binary_join_element_wise(digits, zeros, "")
    return with_point(digits, np.full(len(values), scale))


def with_point(digits: pa.Array, scales: np.ndarray) -> pa.Array:
    """Integers as text with the decimal point put in, per scale as there are few."""
    out = digits
    for scale in np.unique(scales[scales > 0]):
        negative = pc.starts_with(digits, "-")
        padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), int(scale) + 1, "0")
        whole, fraction = pc.utf8_slice_codeunits(padded, 0, -int(scale)), pc.utf8_slice_codeunits(padded, -int(scale))
        sign = pc.if_else(negative, "-", "")
        point = pc.binary_join_element_wise(pc.binary_join_element_wise(sign, whole, ""), fraction, ".")
        out = pc.if_else(pa.array(scales == scale), point, out)
    return out


def without_zeros(text: pa.Array) -> pa.Array:
    """Numbers without zeros behind the last digit of a fraction, as decimals without a scale have none."""
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
    return pc.if_else(pc.match_substring(text, "."), trimmed, text)
