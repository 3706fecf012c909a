"""Pipelines of the conformance suite: their files, their runs in the shared Spark session, what they have written."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.connectors.offset import STREAM
from tailrace.errors import TailraceError
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.sink import read_table
from tests.conformance.subject import KEY, Row, Source, Subject

PREFIX = "shop"
PATIENCE_S = 200
STARTS = 5
# Exit codes of `check` for a pipeline that can run: no finding, or warnings.
READY = (0, 3)
Record = dict[str, Any]


class Line:
    """One pipeline: its file, its runs and what its sink has."""

    def __init__(
        self,
        subject: Subject,
        source: Source,
        folder: Path,
        sink: dict[str, Any] | None = None,
        tables: Sequence[str] = (),
        properties: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        self.subject, self.source, self.folder = subject, source, folder
        self.name = re.sub(r"\W", "_", folder.name).lower()
        folder.mkdir(parents=True, exist_ok=True)
        config = {**source.properties(self.name), "topic.prefix": PREFIX, "signal.poll.interval.ms": "100"}
        config["errors.max.retries"], config["retriable.restart.connector.wait.ms"] = "1", "100"
        if tables:
            config[subject.package.include_list] = ",".join(re.escape(source.id(table).filtered) for table in tables)
        self.content: dict[str, Any] = {
            "name": self.name,
            "source": {"connector": subject.connector, "config": {**config, **(properties or {})}},
            "sink": sink or {"json": {"path": "out"}},
            "checkpoint": "state",
            "trigger": "100ms",
            **more,
        }
        self.file = folder / "pipeline.yaml"
        self.write()

    def write(self, **properties: str) -> None:
        """Write the file, with more properties."""
        self.content["source"]["config"].update(properties)
        self.file.write_text(yaml.safe_dump(self.content, sort_keys=False), encoding="utf-8")

    def once(self, spark: SparkSession) -> None:
        """Read all that is there now."""
        self.starts(spark).to_end()

    def starts(self, spark: SparkSession) -> Started:
        """Read all that is there now, in the background."""
        self.source.settle()
        definition = load(self.file).model_copy(update={"trigger": "availableNow"})
        return Started(Pipeline(definition, spark))

    def fails(self, spark: SparkSession) -> TailraceError:
        """The error that a run ends with."""
        try:
            self.once(spark)
        except TailraceError as error:
            return error
        raise AssertionError("the pipeline does not fail")

    @contextmanager
    def running(self, spark: SparkSession, phase: str = STREAM) -> Iterator[Run]:
        """Run until the block ends, which begins when a batch of that phase of an offset is done: the log is read."""
        started = Started(Pipeline(load(self.file), spark))
        try:
            started.retrying(
                lambda: self.until(lambda: started.run.progress().offset.get("phase") == phase, started.run)
            )
            yield started.run
        finally:
            started.run.stop()

    def until(self, condition: Callable[[], Any], run: Run) -> Any:
        """What the condition gives once it is true. An error of the pipeline ends the wait."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            assert time.monotonic() < deadline, f"waited in vain; the last records: {self.records()[-5:]}"
            assert not run.await_(0.1), "the pipeline has ended"
        return found

    def topic(self, table: str) -> str:
        """The topic of a table's events."""
        return f"{PREFIX}.{self.source.id(table)}"

    def records(self, topic: str | None = None) -> list[Record]:
        """The records in the order of batches, without schemas; those of one topic, or all."""
        out = self.folder / "out"
        found = [_plain(json.loads(line)) for file in _written(out) for line in file.read_text("utf-8").splitlines()]
        return [record for record in found if topic in (None, record["topic"])]

    def events(self, table: str) -> list[Record]:
        """The envelopes of a table's changes, without tombstones."""
        return [record["value"] for record in self.records(self.topic(table)) if record["value"] is not None]

    def changes(self, table: str) -> list[tuple[str, Row | None, Row | None]]:
        """Operation and row images of a table's changes; before is None for what is new."""
        image = self.source.image
        return [(value["op"], image(value["before"]), image(value["after"])) for value in self.events(table)]

    def keys(self, table: str) -> list[tuple[str, int]]:
        """Operation and key of a table's changes."""
        return [(op, (after or before or {})[KEY]) for op, before, after in self.changes(table)]

    def stored(self, table: str, folder: str = "") -> pa.Table:
        """All rows of a table's replica, or of what lies in a folder beside it. Raises SinkError when there is none."""
        target = load(self.file).sink.replica
        assert target is not None
        return read_table(f"{target.root}{folder}", self.source.id(table), target.options)

    def replica(self, table: str) -> list[Row]:
        """The rows of a table's replica, by key; none as long as there is no replica."""
        try:
            found = self.stored(table)
        except TailraceError:
            return []
        return by_key([self.source.image(row) or {} for row in found.to_pylist()])

    def equals(self, *tables: str) -> bool:
        """Whether the replica of each table has the rows of its source."""
        return all(self.replica(table) == by_key(self.source.rows(table)) for table in tables)

    def differences(self, *tables: str) -> dict[str, tuple[list[Row], list[Row]]]:
        """The rows of each table that its replica alone has, and those that its source alone has."""
        pairs = {table: (self.replica(table), by_key(self.source.rows(table))) for table in tables}
        return {
            table: ([row for row in kept if row not in rows], [row for row in rows if row not in kept])
            for table, (kept, rows) in pairs.items()
        }

    def command(self, name: str, *arguments: object, code: int | Container[int] = 0) -> str:
        """What a command prints for this pipeline."""
        return command(name, self.file, *arguments, code=code)

    def json(self, name: str, *arguments: object, code: int | Container[int] = 0) -> Any:
        """The JSON line that a command prints for this pipeline."""
        return json.loads(self.command(name, *arguments, "--json", code=code).splitlines()[-1])


class Started:
    """A pipeline that was started."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.run = pipeline.start()

    def to_end(self) -> None:
        """Wait for its end. Raises what it fails with."""
        try:
            self.retrying(self._await_end)
        finally:
            self.run.stop()

    def retrying(self, step: Callable[[], object]) -> None:
        """Take a step; again, with a new start, where a busy machine took longer than Spark waits for a process."""
        for attempt in range(STARTS):
            try:
                step()
                return
            except TailraceError as error:  # noqa: PERF203  # the loop is the retrying
                if "too busy" not in error.what or attempt == STARTS - 1:
                    raise
                self.run.stop()
                self.run = self._pipeline.start()

    def _await_end(self) -> None:
        assert self.run.await_(PATIENCE_S), "the pipeline does not end"


def command(name: str, *arguments: object, code: int | Container[int] = 0, env: dict[str, str] | None = None) -> str:
    """What a command prints, the error it ends with included. Commands that run a pipeline need a process."""
    done = CliRunner().invoke(app, [name, *map(str, arguments)], env=env)
    error = done.exception
    if error is not None and not isinstance(error, TailraceError | SystemExit):
        raise error
    expected = (code,) if isinstance(code, int) else code
    assert done.exit_code in expected, (done.output, error)
    return done.output + ("" if error is None or isinstance(error, SystemExit) else f"{error} {_remedy(error)}")


def _remedy(error: BaseException) -> str:
    return getattr(error, "remedy", None) or ""


def by_key(rows: Sequence[Row]) -> list[Row]:
    """Rows in an order of their values."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def _written(out: Path) -> list[Path]:
    """The files of a file sink in the order of batches: its log names them; a part's number is its place."""
    log = out / "_spark_metadata"
    if not log.is_dir():
        return []
    # Every tenth batch has the files of all before it.
    found: dict[str, int] = {}
    for file in log.iterdir():
        if not re.fullmatch(r"\d+(\.compact)?", file.name):
            continue
        for line in file.read_text(encoding="utf-8").splitlines()[1:]:
            path, number = json.loads(line)["path"], int(file.name.split(".")[0])
            found[path] = min(number, found.get(path, number))
    paths = {path: out / path.rpartition("/")[2] for path in found}
    return [paths[path] for path in sorted(found, key=lambda path: (found[path], paths[path].name))]


def _plain(record: Record) -> Record:
    """A record whose key and value are their payloads."""
    parts = {name: record[name] and record[name].get("payload", record[name]) for name in ("key", "value")}
    return {**record, **parts}
