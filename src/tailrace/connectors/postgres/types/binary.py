"""How a column comes in binary form, where that is nearer to its value than the server's text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Binary:
    """`select` is what is asked for ({} is the column), `convert` makes values of what the driver reads."""

    select: str
    convert: Callable[[pa.Array], pa.Array]


def _as_is(values: pa.Array) -> pa.Array:
    return values


# Integers, floats and booleans are read as what they become.
AS_IS = Binary("{}", _as_is)
