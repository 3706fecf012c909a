"""Every recorded scenario of this folder comes out of the Spark source as it came out of the reference engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.golden.databases.database import SkippedError
from tests.golden.run import Servers, scenarios
from tests.golden.scenario import Scenario, run

DATABASES = ("postgres", "mongodb", "sqlserver", "db2")
RECORDED = [each for database in DATABASES for each in scenarios(Path(__file__).parent / database)]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """The servers the recordings are repeated on."""
    with Servers() as servers:
        yield servers


def test_there_are_recordings() -> None:
    assert RECORDED


@pytest.mark.parametrize("scenario", RECORDED, ids=lambda scenario: f"{scenario.database}-{scenario.name}")
def test_scenario(scenario: Scenario, servers: Servers, spark: SparkSession) -> None:
    try:
        differences = run(scenario, servers.of(scenario), spark)
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert differences == []
