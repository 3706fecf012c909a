"""A lake with orders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sinks.iceberg.lake import Lake, order


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One with the orders 1 to 5."""
    made = Lake(tmp_path)
    made.write(*(("c", None, order(id_)) for id_ in range(1, 6)))
    return made
