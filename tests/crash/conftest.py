"""Fixtures of the crash tests: a server that may be killed, pipelines that run, pipelines that were never started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from tailrace.testing.postgres import EmbeddedPostgres
from tests.crash.rig import Rig
from tests.crash.traffic import SCHEMA


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder are for `make crash`; the default suite kills pipelines in tests/conformance."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.crash)


# A replica of many small files grows slow, so a pipeline serves so many cases.
CASES_A_RIG = 20


@pytest.fixture(scope="package")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of these tests alone, as they kill it."""
    with EmbeddedPostgres(18) as server:
        yield server


class Rigs:
    """The pipeline that cases share; one that a case failed with is replaced."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.current: Rig | None = None
        self.cases = 0

    def take(self) -> Rig:
        """The present pipeline, running, or a fresh one."""
        if self.current is None or self.cases >= CASES_A_RIG:
            self.close()
            self.current, self.cases = created(self.server, self.folder), 0
            self.current.start()
            self.current.await_all_read()
        self.cases += 1
        return self.current

    def close(self) -> None:
        """End the present pipeline and drop its database."""
        if self.current is not None:
            removed(self.current)
            self.current = None


def created(server: EmbeddedPostgres, folder: Path) -> Rig:
    """A database with the tables of the traffic, and a pipeline for it that does not run yet."""
    name = f"crash_{uuid4().hex[:8]}"
    (folder / name).mkdir()
    server.create_database(name)
    rig = Rig(server, name, folder / name)
    with rig.connect() as connection:
        connection.execute(SCHEMA.encode())
    return rig


def removed(rig: Rig) -> None:
    """End a pipeline and drop its database."""
    rig.close()
    rig.server.drop_database(rig.database)


@pytest.fixture(scope="package")
def rigs(server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rigs]:
    """Pipelines that run, one after another."""
    with closing(Rigs(server, tmp_path_factory.mktemp("crash"))) as rigs:
        yield rigs


@pytest.fixture
def rig(rigs: Rigs, request: pytest.FixtureRequest) -> Iterator[Rig]:
    """A running pipeline that equals its source; thrown away if the case fails."""
    failed = request.session.testsfailed
    yield rigs.take()
    if request.session.testsfailed > failed:
        rigs.close()


@pytest.fixture
def new_rig(server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Rig]:
    """A pipeline that was never started."""
    rig = created(server, tmp_path)
    try:
        yield rig
    finally:
        removed(rig)
