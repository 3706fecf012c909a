"""Describes the newest changes of a chunk without any of their values, for people who look whether something arrives.

Nothing else of a row leaves the process that reads it: names of tables and columns, and which values are null.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from heapq import nlargest
from typing import Any

import pyarrow as pa

from tailrace.model.change import ChangeBatch

# So many changes, and columns of each: guessed. It takes 80 µs a chunk, whatever the number of its rows.
MOST, _COLUMNS = 5, 20
MASK = "***"
_NAMES = {"c": "create", "u": "update", "d": "delete", "r": "read", "t": "truncate", "m": "message"}


def newest(batches: Sequence[ChangeBatch]) -> str | None:
    """The newest changes as JSON, in their order; None where there are none."""
    data = [batch for batch in batches if batch.schema_change is None and len(batch)]
    if not data:
        return None
    last = nlargest(MOST, data, key=lambda batch: int(batch.rows.column("order")[-1].as_py()))
    places = sorted((order, place, row) for place, batch in enumerate(last) for order, row in _last_rows(batch))
    return json.dumps([_described(last[place], row) for _, place, row in places[-MOST:]])


def _last_rows(batch: ChangeBatch) -> list[tuple[int, int]]:
    """The places of the last rows among all changes, and in the batch."""
    first = max(0, len(batch) - MOST)
    orders = batch.rows.column("order").slice(first).to_pylist()
    return [(order, row) for row, order in enumerate(orders, first)]


def _described(batch: ChangeBatch, row: int) -> dict[str, Any]:
    operation, time = (batch.rows.column(name)[row].as_py() for name in ("op", "ts_us"))
    change = {"ts_us": time, "op": _NAMES.get(operation, operation), "table": str(batch.table.id)}
    return {**change, "row": _masked(batch, row)}


def _masked(batch: ChangeBatch, row: int) -> dict[str, str | None]:
    """The image after a change, or else before it: a mask for each value, None for null."""
    images = [each for each in map(batch.column, ("after", "before")) if each is not None and each[row].is_valid]
    if not images:
        return {}
    image: pa.StructArray = images[0]
    unchanged = batch.column("unchanged")
    hidden = {} if unchanged is None else unchanged[row].as_py() or {}
    fields = list(image.type)
    masks = {
        field.name: MASK if image.field(place)[row].is_valid or hidden.get(field.name) else None
        for place, field in enumerate(fields[:_COLUMNS])
    }
    left = len(fields) - _COLUMNS
    return {**masks, f"and {left} more": MASK} if left > 0 else masks
