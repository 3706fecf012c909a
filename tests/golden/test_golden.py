"""Every recorded scenario of this folder comes out of the Spark source as it came out of the reference engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.testing.postgres import PostgresServer
from tests.golden.run import golden_server, scenarios
from tests.golden.scenario import Scenario, SkippedError, run

RECORDED = scenarios(Path(__file__).parent / "postgres")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """The server the recordings are repeated on."""
    with golden_server() as server:
        yield server


def test_there_are_recordings() -> None:
    assert RECORDED


@pytest.mark.parametrize("scenario", RECORDED, ids=lambda scenario: scenario.name)
def test_scenario(scenario: Scenario, server: PostgresServer, spark: SparkSession) -> None:
    try:
        differences = run(scenario, server, spark)
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert differences == []
