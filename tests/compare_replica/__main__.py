"""Compares replicas with their sources after random cases: `python -m tests.compare_replica DATABASE SEEDS [FOLDER]`.

SEEDS is a list of numbers and ranges: `1-20,35`. A seed always makes the same case. The case of a seed that fails is
kept in FOLDER (.work/compare-replica/<database>/<seed>), where `make replica SCENARIOS=...` runs it again, and
`python -m tests.compare_replica.reduce` looks for a shorter one. The exit status is 0 if every seed passes.
"""

from __future__ import annotations

import importlib
import logging
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from pyspark.sql import SparkSession

from tests.compare.__main__ import seeds_of
from tests.compare_replica.told import told
from tests.golden.run import session
from tests.replica.case import Case
from tests.replica.run import FAILED, PASSED, Servers, result_of

DATABASES = ("postgres", "mongodb", "sqlserver", "db2")


class Generator(Protocol):
    """The module `tests.compare_replica.<database>`."""

    def write(self, seed: int, folder: Path) -> None:
        """Write the case of a seed into the empty folder (tests/replica/README.md); the same seed, the same case."""


def outcome(generator: Generator, seed: str, kept: Path, servers: Servers, spark: SparkSession) -> tuple[str, int]:
    """Run one seed and print what came of it; what it counts as, and how many tables were marked incomplete."""
    folder = kept / seed
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    generator.write(int(seed), folder)
    begun = time.monotonic()
    found = result_of(Case(folder), servers, spark)
    seconds = time.monotonic() - begun
    print(
        f"seed {seed}: {PASSED if found.passes else FAILED}, {len(found.verdicts)} tables, {seconds:.1f} s", flush=True
    )
    if found.passes:
        shutil.rmtree(folder)
        return PASSED, len(found.marked)
    for line in told(folder, found):
        print(f"  {line}")
    print(f"  again: make replica SCENARIOS={folder}", flush=True)
    return FAILED, len(found.marked)


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 if all seeds pass, 1 if some fail, 2 if nothing can be run."""
    if len(arguments) not in (2, 3) or arguments[0] not in DATABASES:
        print(f"usage: python -m tests.compare_replica {{{','.join(DATABASES)}}} SEEDS [FOLDER]", file=sys.stderr)
        return 2
    logging.getLogger("tailrace").setLevel(logging.CRITICAL)
    database, seeds, *folder = arguments
    kept = Path(folder[0] if folder else ".work/compare-replica") / database
    generator = cast("Generator", importlib.import_module(f"tests.compare_replica.{database}"))
    with Servers() as servers, session() as spark:
        results = [outcome(generator, seed, kept, servers, spark) for seed in seeds_of(seeds, ())]
    counts, marked = Counter(result for result, _ in results), sum(count for _, count in results)
    print(f"{marked} tables were marked incomplete")
    print(f"{counts[PASSED]} passed, {counts[FAILED]} failed")
    return 1 if counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
