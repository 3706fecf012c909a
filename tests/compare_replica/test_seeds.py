"""Random cases of replicas: a seed makes one case, its parts are those of a case, and a failing one gets shorter."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.compare_replica.__main__ import DATABASES
from tests.compare_replica.chances import CHECK, START, STOP, interrupted
from tests.compare_replica.reduce import Reduction
from tests.replica.case import Case
from tests.replica.run import Servers, outcome_of


def write(database: str, seed: int, folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True)
    importlib.import_module(f"tests.compare_replica.{database}").write(seed, folder)
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


@pytest.mark.parametrize("database", DATABASES)
def test_a_seed_always_makes_the_same_case(database: str, tmp_path: Path) -> None:
    for seed in (1, 8):
        first, again = (write(database, seed, tmp_path / where / str(seed)) for where in ("first", "again"))
        assert first == again
        case = Case(tmp_path / "first" / str(seed))
        assert case.database == database
        assert case.has_process is (seed == 8)
        assert any("check" in text for text in first.values())
    assert write(database, 2, tmp_path / "2") != first


def test_a_stop_ends_at_the_end_of_the_phase() -> None:
    class Always:
        def randrange(self, most: int) -> int:
            return most - 1

        def random(self) -> float:
            return 1.0

    lines = interrupted(Always(), [["a"], ["b"]], [STOP])  # type: ignore[arg-type]
    assert [*lines, CHECK] == ["a", STOP, "b", START, CHECK]


def test_a_case_is_reduced_to_what_fails() -> None:
    tried: list[tuple[list[Any], list[Any]]] = []

    def fails(setup: Any, work: Any) -> bool:
        tried.append((list(setup), list(work)))
        return "table" in setup and {"insert", "alter"} <= {*work}

    noise = [f"noise {number}" for number in range(20)]
    setup, work = Reduction(fails, 200).reduced(["table", *noise], [*noise, "insert", *noise, "alter"])
    assert (setup, work) == (["table"], ["insert", "alter"])
    assert len(tried) <= 200


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """The servers of the cases."""
    with Servers() as servers:
        yield servers


@pytest.mark.long
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("seed", [1, 2, 8])
def test_a_seed_passes(database: str, seed: int, servers: Servers, spark: SparkSession, tmp_path: Path) -> None:
    write(database, seed, tmp_path / str(seed))
    outcome = outcome_of(Case(tmp_path / str(seed)), servers, spark)
    assert outcome.passes, "\n".join(outcome.lines())
