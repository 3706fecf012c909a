"""Replicas equal their sources after each case of this folder, or the case says which table does not, and why.

Some cases of every kind are in the default suite; `make replica` runs all of them, and so does `make long`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.golden.databases.database import SkippedError
from tests.replica.case import Case, cases
from tests.replica.run import Servers, outcome_of

ALL = cases(Path(__file__).parent / "cases")
DEFAULT = {
    *("types", "fold-chains", "rename-column", "swap-table-ddl", "truncate-cascade", "m-values-columns"),
    "m-key-shapes",
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """The servers of the cases."""
    with Servers() as servers:
        yield servers


def test_the_default_cases_are_there() -> None:
    assert {case.name for case in ALL} >= DEFAULT


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=[] if case.name in DEFAULT else pytest.mark.long) for case in ALL],
)
def test_case(case: Case, servers: Servers, spark: SparkSession) -> None:
    try:
        outcome = outcome_of(case, servers, spark)
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert outcome.passes, "\n".join(outcome.lines())
