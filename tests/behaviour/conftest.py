"""Fixtures that several of the behaviour tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tailrace.pipeline.session import local_session
from tests.behaviour.engines import DELTA, ENGINE


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The shared session, or for the `spark` engine one with Delta for Spark."""
    if ENGINE == "deltalake":
        yield request.getfixturevalue("spark")
        return
    folder = tmp_path_factory.mktemp("delta")
    try:
        session = local_session("replica", folder / "spark.log", {**DELTA, "spark.sql.warehouse.dir": str(folder)})
    except (PySparkException, RuntimeError) as error:
        pytest.skip(f"Delta for Spark's jars cannot be had: {error}")
    yield session
    session.stop()
