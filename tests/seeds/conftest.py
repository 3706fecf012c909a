"""Fixtures for PostgreSQL's specification; the tests of other specifications override them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.behaviour.capture import Capture
from tests.conftest import Database
from tests.seeds.postgresql import ERAS, customers


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """Each shape of records."""
    return str(request.param)


@pytest.fixture
def capture(database: Database, era: str) -> Iterator[Capture]:
    """A pipeline over the document's table."""
    with customers(database, era) as capture:
        yield capture
