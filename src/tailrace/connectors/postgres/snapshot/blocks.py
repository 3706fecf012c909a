"""A few MB of a table's rows, in either transfer format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowBlock:
    """So many rows; `images` makes row images of those at some places, and raises DecodeError where it cannot.

    `digest` is that of their bytes, by which they are known when they come again.
    """

    rows: int
    digest: bytes
    images: Callable[[Integers], pa.StructArray]
