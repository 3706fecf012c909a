"""Formats single values as Kafka Connect's Values.convertToString does: texts of headers, and of Cast to string."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from tailrace.javalike.date_format import DAY, DateFormat
from tailrace.model.arrow import mask
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.binary import base64
from tailrace.model.text.numbers import bare_float_text, decimal_text

_LOGICAL = "org.apache.kafka.connect.data."
DECIMAL = _LOGICAL + "Decimal"
_DAYS, _CLOCK = _LOGICAL + "Date", _LOGICAL + "Time"
_TIMES = (_DAYS, _CLOCK, _LOGICAL + "Timestamp")
_DATE, _TIME = DateFormat.of("yyyy-MM-dd"), DateFormat.of("HH:mm:ss.SSS'Z'")
_TIMESTAMP = DateFormat.of("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
# As Java's Date.toString; the reference's is in the time zone of its process.
_JAVA_DATE = DateFormat.of("EEE MMM dd HH:mm:ss z y")


def value_texts(values: pa.Array, schema: ConnectSchema, lacks_dates: bool) -> pa.Array:
    """Bytes in base64, times in ISO 8601, numbers as Java prints them (`NaN` and `1.0E10`); null stays null.

    A timestamp at midnight is its date. With `lacks_dates` what is before 1970-01-02 has no date, as in Kafka Connect.
    """
    if schema.type == "string":
        return values
    if schema.name == DECIMAL:
        return decimal_text(values, schema)
    if schema.type == "bytes":
        return base64(values)
    if schema.name in _TIMES:
        return _time_texts(values, schema.name, lacks_dates)
    return bare_float_text(values) if pt.is_floating(values.type) else values.cast(pa.string())


def java_texts(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """As `toString` of the values' Java classes, but bytes in base64: theirs is the address of an object."""
    if schema.name in _TIMES:
        return _JAVA_DATE.format(_millis(values, schema.name))
    return value_texts(values, schema, False)


def _time_texts(values: pa.Array, name: str, lacks_dates: bool) -> pa.Array:
    millis = _millis(values, name)
    numbers = millis.fill_null(0).to_numpy(zero_copy_only=False)
    dated = pc.if_else(mask(np.mod(numbers, DAY) == 0), _DATE.format(millis), _TIMESTAMP.format(millis))
    clock_only = numbers < DAY if lacks_dates else np.full(len(numbers), name == _CLOCK)
    return pc.if_else(mask(clock_only), _TIME.format(millis), dated)


def _millis(values: pa.Array, name: str) -> pa.Array:
    """Values of Connect's Date, Time or Timestamp as milliseconds since 1970."""
    wide = values.cast(pa.int64())
    return pc.multiply(wide, DAY) if name == _DAYS else wide
