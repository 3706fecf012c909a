"""Converts dates and times from the server's binary form (big-endian integers since 2000)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.postgres.types import temporal
from tailrace.connectors.types.temporal import DAY_US, LARGEST, SMALLEST
from tailrace.connectors.value_type import Binary
from tailrace.model.arrow import mask

Integers = npt.NDArray[np.int64]

_EPOCH_DAYS = 10_957
_EPOCH_US = _EPOCH_DAYS * DAY_US


def days(octets: pa.Array) -> pa.Array:
    """DATE as days since 1970."""
    values, nulls = _integers(octets, ">i4")
    result = values + _EPOCH_DAYS
    result[values == 2**31 - 1] = temporal.INFINITY_DAYS["infinity"]
    result[values == -(2**31)] = temporal.INFINITY_DAYS["-infinity"]
    return pa.array(result.astype(np.int32), pa.int32(), mask=nulls)


def timestamp_us(octets: pa.Array) -> pa.Array:
    """TIMESTAMP as microseconds since 1970, at most what an int64 holds."""
    values, nulls = _integers(octets, ">i8")
    result = np.minimum(values, LARGEST - _EPOCH_US) + _EPOCH_US
    return pa.array(_with_infinities(values, result, 1), pa.int64(), mask=nulls)


def timestamp_ms(octets: pa.Array) -> pa.Array:
    """TIMESTAMP as milliseconds since 1970, rounded towards the past."""
    values, nulls = _integers(octets, ">i8")
    result = np.floor_divide(values, 1000) + _EPOCH_US // 1000
    return pa.array(_with_infinities(values, result, 1000), pa.int64(), mask=nulls)


def time_us(octets: pa.Array) -> pa.Array:
    """TIME as microseconds of the day."""
    values, nulls = _integers(octets, ">i8")
    return pa.array(values, pa.int64(), mask=nulls)


def time_ms(octets: pa.Array) -> pa.Array:
    """TIME as milliseconds of the day."""
    values, nulls = _integers(octets, ">i8")
    return pa.array(np.floor_divide(values, 1000).astype(np.int32), pa.int32(), mask=nulls)


def _with_infinities(values: Integers, result: Integers, unit_us: int) -> Integers:
    result[values == LARGEST] = temporal.INFINITY_US["infinity"] // unit_us
    result[values == SMALLEST] = temporal.INFINITY_US["-infinity"] // unit_us
    return result


def _integers(octets: pa.Array, form: str) -> tuple[Integers, npt.NDArray[np.bool_] | None]:
    """The integers of a binary array, zero where it is null, and where it is."""
    nulls = None
    if octets.null_count:
        nulls = octets.is_null().to_numpy(zero_copy_only=False)
        octets = pc.replace_with_mask(octets, mask(nulls), pa.scalar(bytes(np.dtype(form).itemsize), octets.type))
    _, offsets, data = octets.buffers()
    if len(octets) == 0:
        return np.empty(0, np.int64), nulls
    places = np.frombuffer(offsets, np.int32)[octets.offset : octets.offset + len(octets) + 1]
    return np.frombuffer(data, np.uint8)[places[0] : places[-1]].view(form).astype(np.int64), nulls


# The binary road to what a conversion of text gives; the server's text is read where there is none.
BINARY: dict[Callable[[pa.Array], pa.Array], Binary] = {
    temporal.days: Binary("date_send({})", days),
    temporal.timestamp_us: Binary("timestamp_send({})", timestamp_us),
    temporal.timestamp_ms: Binary("timestamp_send({})", timestamp_ms),
    temporal.time_us: Binary("time_send({})", time_us),
    temporal.time_ms: Binary("time_send({})", time_ms),
}
