"""Formats columns of numbers as Java's `Double.toString`, `Float.toString` and `BigDecimal.toString` do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.arrow import indices, join, literal, mask
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.binary import decimal_of

_LOW, _HIGH = 1e-3, 1e7  # between these Java writes no exponent


def float_text(values: pa.Array) -> pa.Array:
    """Each value as JSON: `1.0`, `1.5E10`, and the strings "NaN", "Infinity", "-Infinity"; null stays null.

    The plain range is Arrow's own shortest digits; values outside it go through Python once per distinct value.
    """
    values = values.cast(pa.float32()) if pa.types.is_float16(values.type) else values
    numbers = values.fill_null(pa.scalar(0, values.type)).to_numpy(zero_copy_only=False)
    size = np.abs(numbers)
    plain = ((size >= _LOW) & (size < _HIGH)) | (size == 0)
    whole = plain & (numbers == np.floor(numbers))
    text = pc.cast(values, pa.string())
    if whole.any():
        text = join(text, pc.if_else(mask(whole), literal(".0"), literal("")))
    if plain.all():
        return text
    bits = numbers[~plain].view(np.int64 if numbers.dtype == np.float64 else np.int32)
    distinct, index = np.unique(bits, return_inverse=True)
    odd = pa.array([java_float(number) for number in distinct.view(numbers.dtype)], pa.string())
    return pc.replace_with_mask(text, mask(~plain), odd.take(indices(index)))


def bare_float_text(values: pa.Array) -> pa.Array:
    """Each value as Java's toString has it, NaN and the infinities without quotes; null stays null."""
    return pc.utf8_trim(float_text(values), '"')


def java_float(number: float | np.floating[Any]) -> str:
    """One number as Java writes it in JSON, float32 with its own shortest digits."""
    if not np.isfinite(number):
        return '"NaN"' if np.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'
    if number == 0 or _LOW <= abs(float(number)) < _HIGH:
        return np.format_float_positional(number, unique=True, trim="0")
    kind = np.float32 if isinstance(number, np.float32) else np.float64
    mantissa, exponent = np.format_float_scientific(kind(number), unique=True, trim="0").split("e")
    # Of the decimals with one or two digits that read back as the number Java takes the nearest: 4.9E-324, not 5E-324.
    near, near_exponent = f"{float(number):.1e}".split("e")
    if len(mantissa.lstrip("-")) == 3 and kind(f"{near}e{near_exponent}") == number:
        mantissa, exponent = near, near_exponent
    return f"{mantissa}E{int(exponent)}"


def decimal_text(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """Connect's decimals, small ones with an exponent (1E-7), as Arrow prints them as well; null stays null."""
    if pa.types.is_decimal(values.type):
        return pc.cast(values, pa.string())
    # Wider than Arrow's widest decimal: one by one.
    scale = scale_of(schema)
    return pa.array([None if raw is None else str(decimal_of(raw, scale)) for raw in values.to_pylist()], pa.string())


def scale_of(schema: ConnectSchema) -> int:
    """The scale that the schema of a decimal declares."""
    return int(dict(schema.parameters)["scale"])
