"""Types without a mapping, carried as the bytes of their text when `include.unknown.datatypes` asks for them."""

from __future__ import annotations

import re

import pyarrow as pa

from tailrace.model.text.numbers import java_float

# Of these the reference engine prints what its driver makes of them: every number as a Java double.
GEOMETRIC = ("line", "lseg", "box", "path", "polygon", "circle")

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|Infinity|NaN)", re.IGNORECASE)


def java_numbers(text: pa.Array) -> pa.Array:
    """Geometric values with their numbers as Java prints doubles. Taken value by value: they are rare."""
    return pa.array(
        [
            None if value is None else _NUMBER.sub(lambda number: java_float(float(number[0])).strip('"'), value)
            for value in text.to_pylist()
        ],
        pa.string(),
    )
