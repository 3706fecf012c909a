"""Types that every connector shares: chunks of changes, keys, and offsets as Spark stores them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.marks import MARKS


@dataclass(frozen=True)
class Chunk:
    """Part of a read: batches by table, the transaction marks among them (MARKS), and records of control topics.

    Without `tells_empty_transactions` its transactions are whole, and those without an event have no BEGIN and no END.
    """

    batches: list[ChangeBatch]
    marks: pa.RecordBatch = field(default_factory=lambda: pa.RecordBatch.from_pylist([], schema=MARKS))
    controls: tuple[ControlBatch, ...] = ()
    tells_empty_transactions: bool = True


Offset = dict[str, Any]
"""An offset as Spark stores it, ready for JSON."""

Key = tuple[str, ...]
"""The values of a key's columns as texts that the database reads."""
