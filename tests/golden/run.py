"""Checks golden scenarios: `python -m tests.golden.run FOLDER`, one line for each, exit status 1 if any differs.

FOLDER is a scenario or holds scenarios. The server is the one of $TAILRACE_GOLDEN_DSN (a superuser's connection text;
its database `golden` is dropped and made anew), otherwise an embedded PostgreSQL 16.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.pipeline.failure import from_spark, summary
from tailrace.pipeline.session import local_session
from tailrace.testing.postgres import EmbeddedPostgres, PostgresServer
from tests.golden.scenario import Scenario, SkippedError, run

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def scenarios(folder: Path) -> list[Scenario]:
    """The scenario that the folder is, or those that it holds, by name."""
    if (folder / "connector.json").exists():
        return [Scenario(folder)]
    return [Scenario(file.parent) for file in sorted(folder.glob("*/connector.json"))]


def report(scenario: Scenario, server: PostgresServer, spark: SparkSession) -> str:
    """Run one scenario, print its line and return what it counts as."""
    try:
        differences = run(scenario, server, spark)
    except SkippedError as reason:
        outcome, line = SKIPPED, f"skipped {scenario.name}: {reason}"
    except Exception as error:  # whatever goes wrong in one scenario, the others still run
        outcome, line = FAILED, f"failed {scenario.name}: {from_spark(error) or summary(error)}"
    else:
        outcome = FAILED if differences else PASSED
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        line = f"differs {scenario.name}: {differences[0]}{more}" if differences else f"ok {scenario.name}"
    print(line, flush=True)
    return outcome


@contextmanager
def golden_server() -> Iterator[PostgresServer]:
    """The server of $TAILRACE_GOLDEN_DSN, or one of our own."""
    dsn = os.environ.get("TAILRACE_GOLDEN_DSN")
    if dsn:
        yield PostgresServer.from_dsn(dsn)
    else:
        with EmbeddedPostgres(16) as server:
            yield server


def main(arguments: list[str]) -> int:
    """The exit status: 0 if none failed, 1 if some did, 2 if there was nothing to run."""
    if len(arguments) != 1:
        print("usage: python -m tests.golden.run FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    found = scenarios(folder)
    if not found:
        print(f"{folder} holds no scenario (a folder with a connector.json)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="tailrace-golden-") as work, golden_server() as server:
        # Many short queries: the JVM's second compiler costs more than it saves.
        settings = {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": 2,
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        }
        spark = local_session("golden", Path(work) / "spark.log", settings)
        outcomes = Counter(report(scenario, server, spark) for scenario in found)
        spark.stop()
    skipped = f", {outcomes[SKIPPED]} skipped" if outcomes[SKIPPED] else ""
    print(f"{outcomes[PASSED]} passed, {outcomes[FAILED]} failed{skipped}")
    return 1 if outcomes[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
