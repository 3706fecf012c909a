"""Which snapshots the reference engine reads in chunks."""

from __future__ import annotations

import pytest

from tailrace.connectors.split_sizes import is_chunked
from tests.unit.postgres.test_values import config


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
