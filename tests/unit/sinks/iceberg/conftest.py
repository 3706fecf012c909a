"""A lake with orders, in a catalog of SQLite and in one that is asked by HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.iceberg_rest import RestCatalog, why_not_here
from tests.unit.sinks.iceberg.lake import Lake, order


@pytest.fixture(scope="session")
def rest_catalog() -> Iterator[RestCatalog]:
    """A REST catalog; a test is skipped where none can be had."""
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with RestCatalog() as server:
        yield server


@pytest.fixture(params=["sql", pytest.param("rest", marks=pytest.mark.long)])
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """One with the orders 1 to 5."""
    made = Lake(tmp_path)
    if request.param == "rest":
        server: RestCatalog = request.getfixturevalue("rest_catalog")
        server.start()
        server.clear()
        made.options, made.folder = server.options, server.warehouse
    made.write(*(("c", None, order(id_)) for id_ in range(1, 6)))
    return made
