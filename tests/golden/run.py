"""Checks golden scenarios: `python -m tests.golden.run FOLDER`, one line for each, exit status 1 if any differs.

FOLDER is a scenario or holds scenarios. Servers are embedded ones, but that of PostgreSQL may be given by
$TAILRACE_GOLDEN_DSN (a superuser's connection text; its database `golden` is dropped and created again).
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.pipeline.failure import from_spark
from tailrace.pipeline.session import local_session
from tailrace.spark.java_errors import summary
from tests.golden.avro_records import close_registry
from tests.golden.databases.database import GoldenServer, SkippedError
from tests.golden.databases.db2 import GoldenDb2
from tests.golden.databases.mongodb import GoldenMongo
from tests.golden.databases.postgres import GoldenPostgres
from tests.golden.databases.sqlserver import GoldenSqlServer
from tests.golden.scenario import Scenario, run

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def scenarios(folder: Path) -> list[Scenario]:
    """The scenario that the folder is, or those that it holds, by name."""
    if (folder / "connector.json").exists():
        return [Scenario(folder)]
    return [Scenario(file.parent) for file in sorted(folder.glob("*/connector.json"))]


def report(scenario: Scenario, servers: Servers, spark: SparkSession) -> str:
    """Run one scenario, print its line and return what it counts as."""
    try:
        differences = run(scenario, servers.of(scenario), spark)
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


_SERVERS: Mapping[str, Callable[[], GoldenServer]] = {
    "postgres": GoldenPostgres,
    "mongodb": GoldenMongo,
    "sqlserver": GoldenSqlServer,
    "db2": GoldenDb2,
}


class Servers:
    """The servers of the scenarios, each started when the first scenario needs it."""

    def __init__(self) -> None:
        self._started: dict[str, GoldenServer] = {}

    def of(self, scenario: Scenario) -> GoldenServer:
        """The server for a scenario."""
        name = scenario.database
        if name not in self._started:
            self._started[name] = _SERVERS[name]()
        return self._started[name]

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._started.values():
            server.close()
        close_registry()


@contextmanager
def session() -> Iterator[SparkSession]:
    """A Spark session for many short queries."""
    with tempfile.TemporaryDirectory(prefix="tailrace-golden-") as work:
        settings = {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": 2,
            # The JVM's second compiler costs more than it saves.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        }
        spark = local_session("golden", Path(work) / "spark.log", settings)
        yield spark
        spark.stop()


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
    with Servers() as servers, session() as spark:
        outcomes = Counter(report(scenario, servers, spark) for scenario in found)
    skipped = f", {outcomes[SKIPPED]} skipped" if outcomes[SKIPPED] else ""
    print(f"{outcomes[PASSED]} passed, {outcomes[FAILED]} failed{skipped}")
    return 1 if outcomes[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
