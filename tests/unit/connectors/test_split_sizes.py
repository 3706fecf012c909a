"""Which snapshots the reference engine reads in chunks, and when it orders tables by their rows."""

from __future__ import annotations

import pytest

from tailrace.connectors.split_sizes import is_chunked, order_by_rows
from tests.unit.postgres.test_values import config

_ORDER = {"snapshot.tables.order.by.row.count": "descending"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, False),
        ({"snapshot.max.threads": "2"}, True),
        ({"snapshot.max.threads.multiplier": "2"}, True),
        ({"snapshot.max.threads.multiplier.public.t": "2"}, True),
        ({"snapshot.max.threads": "2", "legacy.snapshot.max.threads": "true"}, False),
    ],
)
def test_chunks(given: dict[str, str], expected: bool) -> None:
    assert is_chunked(config(given)) == expected
    assert order_by_rows(config({**given, **_ORDER})) == "descending"
    there = config({**given, **_ORDER, "compat.faults": "true"})
    assert order_by_rows(there) == ("descending" if expected else "disabled")
