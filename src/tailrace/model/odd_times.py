"""Writes dates and timestamps as ISO 8601, also those that no lakehouse type holds: odd years and infinities.

Years are counted as ISO 8601 does, so that 1 BC is the year 0000; those outside 0 to 9999 have a sign.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# The numbers that stand for infinity: those that the reference engine's driver makes of its largest and smallest
# instant, and of nanoseconds the outermost ones.
INFINITY_US = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
INFINITY_DAYS = {"infinity": -2_147_472_692, "-infinity": -2_147_472_691}
# What a lakehouse table holds: the years 1 to 9999, in days since 1970.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY_US = 86_400_000_000
_LAST_FOUR_DIGITS = np.datetime64("9999-12-31T23:59:59.999999", "us")

Unit = Literal["ms", "us", "ns"]
INFINITIES: dict[Unit, dict[str, int]] = {
    "ms": {name: number // 1000 for name, number in INFINITY_US.items()},
    "us": INFINITY_US,
    "ns": {"infinity": 2**63 - 1, "-infinity": -(2**63)},
}


def dates(days: pa.Array) -> pa.Array:
    """Days since 1970 as `2018-06-20`."""
    return _text(days.cast(pa.int64()), "D", INFINITY_DAYS)


def timestamps(values: pa.Array, unit: Unit) -> pa.Array:
    """Timestamps since 1970 as `2018-06-20T13:37:03.5`, with no more digits than it takes."""
    text = _text(values.cast(pa.int64()), unit, INFINITIES[unit])
    return pc.replace_substring_regex(text, r"\.?0+$", "") if len(text) else text


def _text(values: pa.Array, unit: Literal["D"] | Unit, infinities: dict[str, int]) -> pa.Array:
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    infinite = np.isin(numbers, list(infinities.values()))
    moments = np.where(infinite, 0, numbers).view(f"datetime64[{unit}]")
    text = np.datetime_as_string(moments).astype(object)
    if unit != "ns":  # 64 bits of nanoseconds end in 2262
        late = moments > _LAST_FOUR_DIGITS.astype(f"datetime64[{unit}]")
        text[late] = "+" + text[late]
    for place in np.flatnonzero(moments.astype("datetime64[Y]") < np.datetime64("0000")):  # numpy writes `-043`
        year, _, rest = text[place][1:].partition("-")
        text[place] = f"-{year.zfill(4)}-{rest}"
    for name, number in infinities.items():
        text[numbers == number] = name
    return pa.array(text, pa.string(), mask=~valid)
