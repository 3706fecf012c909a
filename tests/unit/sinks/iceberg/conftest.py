"""A lake with orders, in a catalog of SQLite and in one that is asked by HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.iceberg_rest import RestCatalog, why_not_here
from tests.unit.sinks.iceberg.lake import Lake, order, write_newer_metadata


@pytest.fixture(scope="session")
def rest_catalog() -> Iterator[RestCatalog]:
    """A REST catalog; a test is skipped where none can be had."""
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with RestCatalog() as server:
        yield server


@pytest.fixture
def newer_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    write_newer_metadata(monkeypatch)


@pytest.fixture(
    params=["sql-2", *(pytest.param(each, marks=pytest.mark.long) for each in ("sql-3", "rest-2", "rest-3"))]
)
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """One with the orders 1 to 5; its tables have the version 2 or 3 of the format."""
    return made(tmp_path, request)


@pytest.fixture(params=["sql-2", pytest.param("rest-2", marks=pytest.mark.long)])
def written_by_others(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """One that pyiceberg can write as well, which writes no files of version 3."""
    return made(tmp_path, request)


def made(folder: Path, request: pytest.FixtureRequest) -> Lake:
    kind, _, version = request.param.partition("-")
    lake = Lake(folder, 2 if version == "2" else 3)
    if lake.version == 3 and kind == "sql":
        request.getfixturevalue("newer_metadata")
    if kind == "rest":
        server: RestCatalog = request.getfixturevalue("rest_catalog")
        server.start()
        server.clear()
        lake.options, lake.folder = server.options, server.warehouse
    lake.write(*(("c", None, order(id_)) for id_ in range(1, 6)))
    return lake
