"""Fixtures that several of the behaviour tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.pipeline.session import local_session
from tests.behaviour.engines import BY_SPARK, merging
from tests.behaviour.replicas import Replica
from tests.conformance.sqlserver import SqlServerSource
from tests.conftest import Database
from tests.servers.sqlserver.server import SqlServer


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The shared session, or for an engine of Spark one with what that needs."""
    if not BY_SPARK:
        yield request.getfixturevalue("spark")
        return
    folder = tmp_path_factory.mktemp("merging")
    conf = {**merging(), "spark.sql.warehouse.dir": str(folder)}
    session = local_session("replica", folder / "spark.log", conf)
    yield session
    session.stop()


@pytest.fixture
def replica(session: SparkSession, tmp_path: Path) -> Replica:
    """An empty replica."""
    return Replica(session, tmp_path)


@pytest.fixture(params=[18, 16])
def any_database(request: pytest.FixtureRequest) -> Database:
    """A database on each of the servers."""
    name = "database" if request.param == 18 else "database16"
    found = request.getfixturevalue(name)
    assert isinstance(found, Database)
    return found


@pytest.fixture
def sqlserver_source(sqlserver: SqlServer, request: pytest.FixtureRequest) -> Iterator[SqlServerSource]:
    """A database of the stand-in, with a table `orders`."""
    source = SqlServerSource(sqlserver, f"b{abs(hash(request.node.name)) % 10**8}")
    source.create("orders")
    yield source
    source.close()
