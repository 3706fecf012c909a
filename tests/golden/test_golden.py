"""Every recorded scenario of this folder comes out of the source as it came out of the reference engine.

A slice runs in Spark. The others call the source as Spark calls it, in half the time; `make golden` runs all in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.golden.databases.database import SkippedError
from tests.golden.run import Servers, scenarios
from tests.golden.scenario import DirectStream, Scenario, replay, run

DATABASES = ("postgres", "mongodb", "sqlserver", "db2")
IN_SPARK = ("basic-crud", "restart")
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
    server = servers.of(scenario)
    try:
        if scenario.name.startswith(IN_SPARK):
            differences = run(scenario, server, spark)
        else:
            differences = scenario.differences(replay(scenario, server, DirectStream(server, scenario)))
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert differences == []
