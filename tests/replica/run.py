"""Checks replicas: `python -m tests.replica.run FOLDER`, some lines for each case, exit status 1 if any failed.

FOLDER is a case or holds cases (README.md beside this file). A case passes if each table of its source is the same in
the replica in the end, or in a state that the case's `replica.json` allows.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.pipeline.failure import from_spark
from tailrace.spark.java_errors import summary
from tests.conformance.pipelines import command
from tests.golden.databases.database import GoldenServer, SkippedError
from tests.golden.databases.db2 import GoldenDb2
from tests.golden.databases.mongodb import GoldenMongo
from tests.golden.databases.postgres import DATABASE, GoldenPostgres
from tests.golden.databases.sqlserver import GoldenSqlServer
from tests.golden.run import session
from tests.golden.script import Directive
from tests.replica.case import Case, cases
from tests.replica.pipeline import ProcessPipeline, ReplicaPipeline, SessionPipeline
from tests.replica.sources import rows_of_replicas, tables_of
from tests.replica.states import States
from tests.replica.verdict import ASIDE, Verdict, judge

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# What the log does not carry is noticed by queries of the catalogue, some every ten seconds, and then read again.
NOTICED_SECONDS, READ_SECONDS, LOOK_SECONDS = 120, 200, 0.4
_VERSIONS = (16, 18)


@dataclass(frozen=True)
class Outcome:
    """What a case counts as: its tables, what went wrong besides, and the tables that were marked incomplete."""

    verdicts: tuple[Verdict, ...] = ()
    errors: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether all tables pass and nothing else went wrong."""
        return not self.errors and all(verdict.passes for verdict in self.verdicts)

    def lines(self) -> list[str]:
        """A line for each error and each table."""
        return [*(f"FAILED {error}" for error in self.errors), *map(str, self.verdicts)]


class Servers:
    """The servers of the cases, each started when the first case needs it."""

    def __init__(self) -> None:
        self._started: dict[tuple[str, int], GoldenServer] = {}

    def of(self, case: Case) -> GoldenServer:
        """The server for a case. Raises SkippedError if none of its version starts."""
        version = _version(case) if case.database == "postgres" else 0
        key = (case.database, version)
        if key not in self._started:
            self._started[key] = _started(*key)
        return self._started[key]

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._started.values():
            server.close()


def _version(case: Case) -> int:
    """The oldest version that the case runs on."""
    able = [version for version in _VERSIONS if version >= case.server]
    if not able:
        raise SkippedError(f"needs PostgreSQL {case.server}")
    return able[0]


def _started(database: str, version: int) -> GoldenServer:
    if database == "postgres":
        return GoldenPostgres(version)
    others: Mapping[str, Callable[[], GoldenServer]] = {
        "mongodb": GoldenMongo,
        "sqlserver": GoldenSqlServer,
        "db2": GoldenDb2,
    }
    return others[database]()


class Running:
    """One case on its server."""

    def __init__(self, case: Case, server: GoldenServer, spark: SparkSession, work: Path) -> None:
        self._case, self._server, self._lake = case, server, work / "lake"
        self._properties = case.properties(server)
        self._sink = case.sink(self._lake)
        given = (server, work, case.database, self._properties, self._sink)
        self._pipeline: ReplicaPipeline
        self._pipeline = ProcessPipeline(*given) if case.has_process else SessionPipeline(spark, *given)
        self._states = States(self._pipeline.definition, self._pipeline.notifications)

    def outcome(self) -> Outcome:
        """Run the case and judge its tables at the end."""
        errors: list[str] = []
        try:
            try:
                verdicts = self._work()
            except Exception as error:  # whatever goes wrong, the tables are still compared
                errors.append(_told(error))
                verdicts = self._judged()
        finally:
            self._pipeline.stop()
        broken = self._case.marks.broken(self._states.marked)
        errors += [] if broken is None else [broken]
        return Outcome(tuple(verdicts), tuple(errors), tuple(self._states.marked))

    def _work(self) -> list[Verdict]:
        """The verdicts at the end, or at the first check that does not pass."""
        if self._case.has_ddl_triggers:
            assert isinstance(self._server, GoldenPostgres)
            url = self._server.server.url(DATABASE)
            command("init", url, "--ddl", "-o", str(self._lake.with_name("unused.yaml")))
        self._pipeline.start()
        for step in self._server.workload(self._case.folder):
            if step.name == "check":
                verdicts = self._settled()
                if not _is_over(verdicts):
                    return verdicts
            else:
                self._direct(step)
        return self._settled()

    def _direct(self, step: Directive) -> None:
        if step.name in ("wait", "stop"):
            self._pipeline.catch_up()
        if step.name == "stop":
            self._pipeline.stop()
        elif step.name == "start":
            self._pipeline.start()
        elif step.name == "configure":
            changes = json.loads(step.argument)
            self._properties = {name: value for name, value in {**self._properties, **changes}.items() if value}
            self._pipeline.configure(self._properties)
        elif step.name == "sleep":
            time.sleep(float(step.argument))
        elif step.name == "kill":
            self._pipeline.kill()
        elif step.name == "arm":
            assert isinstance(self._pipeline, ProcessPipeline)
            place, nth = step.argument.split()
            self._pipeline.arm(place, int(nth))
        elif step.name != "wait":
            raise ValueError(f"{self._case.folder}: unknown directive @{step.name}")

    def _settled(self) -> list[Verdict]:
        """The verdicts once all is read and every table passes, or when it has been waited for long enough."""
        self._pipeline.catch_up()
        begun, verdicts = time.monotonic(), list[Verdict]()
        due = begun

        def is_settled() -> bool:
            nonlocal due
            if time.monotonic() < due:
                return False
            reads_on = any(state.passes for state in self._states.now().values())
            verdicts[:] = self._judged()
            due = time.monotonic() + LOOK_SECONDS
            return (
                not reads_on and all(verdict.passes or verdict.word == ASIDE for verdict in verdicts)
            ) or time.monotonic() - begun > (READ_SECONDS if reads_on else NOTICED_SECONDS)

        self._pipeline.until(is_settled, "no end", READ_SECONDS + NOTICED_SECONDS)
        return verdicts

    def _judged(self) -> list[Verdict]:
        states = self._states.now()
        tables = tables_of(self._server, self._properties, self._sink)
        replicas = rows_of_replicas(self._lake)
        return judge(self._case, str(self._lake), tables, replicas, states, self._states.marked)


def _told(error: Exception) -> str:
    """The sentence of an error that has one; of others the place as well."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return str(from_spark(error) or "") or f"{type(error).__name__}: {summary(error)} ({place.filename}:{place.lineno})"


def _is_over(verdicts: Sequence[Verdict]) -> bool:
    """Whether waiting changes nothing: a table that is set aside, and not read again, stays so."""
    return all(verdict.passes or verdict.word == ASIDE for verdict in verdicts)


def outcome_of(case: Case, servers: Servers, spark: SparkSession) -> Outcome:
    """Run one case. Raises SkippedError for what the server lacks."""
    server = servers.of(case)
    server.check(case.folder, case.scenario.settings)
    server.prepare(case.folder)
    try:
        with tempfile.TemporaryDirectory(prefix="tailrace-replica-") as work:
            return Running(case, server, spark, Path(work)).outcome()
    finally:
        server.clear()


def result_of(case: Case, servers: Servers, spark: SparkSession) -> Outcome:
    """Run one case; an error outside of its pipeline is one of its outcome. Raises SkippedError."""
    try:
        return outcome_of(case, servers, spark)
    except SkippedError:
        raise
    except Exception as error:  # whatever goes wrong in one case, the others still run
        return Outcome(errors=(_told(error),))


def report(case: Case, servers: Servers, spark: SparkSession) -> tuple[str, int]:
    """Run one case and print its lines; what it counts as, and how many tables were marked incomplete."""
    begun = time.monotonic()
    try:
        found = result_of(case, servers, spark)
    except SkippedError as reason:
        print(f"skipped {case.name}: {reason}", flush=True)
        return SKIPPED, 0
    print(f"{'ok' if found.passes else 'FAILED'} {case.name} ({time.monotonic() - begun:.1f} s)")
    for line in found.lines():
        print(f"    {line}")
    sys.stdout.flush()
    return PASSED if found.passes else FAILED, len(found.marked)


def main(arguments: list[str]) -> int:
    """The exit status: 0 if none failed, 1 if some did, 2 if there was nothing to run."""
    if len(arguments) != 1:
        print("usage: python -m tests.replica.run FOLDER", file=sys.stderr)
        return 2
    found = cases(Path(arguments[0]))
    if not found:
        print(f"{arguments[0]} holds no case (a folder with a connector.json)", file=sys.stderr)
        return 2
    logging.getLogger("tailrace").setLevel(logging.CRITICAL)
    with Servers() as servers, session() as spark:
        reports = [report(case, servers, spark) for case in found]
    outcomes, marked = Counter(result for result, _ in reports), sum(count for _, count in reports)
    skipped = f", {outcomes[SKIPPED]} skipped" if outcomes[SKIPPED] else ""
    print(f"{marked} tables were marked incomplete")
    print(f"{outcomes[PASSED]} passed, {outcomes[FAILED]} failed{skipped}")
    return 1 if outcomes[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
