"""A pipeline into a Delta replica without Spark: the connector, the sink's engine, a checkpoint as Spark's."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from tailrace.capture.capture import Capture
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.signaling import send
from tailrace.sinks.replica import again, aside
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.parts import parts
from tailrace.sinks.replica.table_writer import TableWriter
from tailrace.sinks.replica.target import read_table
from tailrace.spark.shapes import Shaper
from tests.behaviour import streams_here
from tests.behaviour.engines import place, sink
from tests.conftest import Database

streams_here.install()


class Following:
    """One pipeline that goes on in a thread. `folder` holds its replica and its checkpoint."""

    def __init__(
        self, database: Database, folder: Path, properties: dict[str, str], steps: Sequence[dict[str, Any]]
    ) -> None:
        self.database, self.folder = database, folder
        given = {"topic.prefix": "t", "slot.name": f"slot_{database.name}", "signal.poll.interval.ms": "1"}
        self.definition: Definition = from_content(
            {
                "source": {"config": {**database.properties, **given, **properties}},
                "sink": {"replica": sink(folder)},
                "checkpoint": "checkpoint",
                "steps": list(steps),
            },
            base=folder,
            where="test",
        )
        self.failure: BaseException | None = None
        # Seconds between the commits of a micro-batch to one table, and about how many rows a commit has.
        self.pause, self.rows = 0.0, 500_000
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def signal(self, type_: str, data: dict[str, Any]) -> str:
        """Send a signal, and wait until it is taken; its id."""
        sent = send(self.definition, type_, data)
        while Path(sent.file).exists():
            time.sleep(0.01)
        return sent.id

    def replica(self, table: str) -> pa.Table:
        """The rows of the replica of a table of the schema public."""
        root, options = place(self.folder)
        return read_table(root, f"public.{table}", options)

    def start(self) -> None:
        """Go on from where the checkpoint is."""
        self._ended.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Stop between two batches; raises what the pipeline failed with."""
        self._ended.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        config = {**self.definition.properties(), "shape": "arrow"}
        package = self.definition.package()
        capture = Capture(package.connector(package.resolve(config)))
        try:
            self._follow(capture)
        except BaseException as error:
            self.failure = error
        finally:
            capture.close()

    def _follow(self, capture: Capture) -> None:
        checkpoint = Path(self.definition.checkpoint)
        for folder in ("offsets", "commits"):
            (checkpoint / folder).mkdir(parents=True, exist_ok=True)
        _put(checkpoint / "metadata", '{"id":"query"}')
        done = [int(file.name) for file in (checkpoint / "commits").iterdir()]
        offset = capture.begin()
        if done:
            offset = json.loads((checkpoint / "offsets" / str(max(done))).read_text().splitlines()[2])
        for number in count(max(done, default=-1) + 1):
            while (end := capture.head(offset, None, None)) == offset:
                if self._ended.wait(0.05):
                    break
            if self._ended.is_set():
                break
            _put(checkpoint / "offsets" / str(number), f"v1\n{{}}\n{json.dumps(end)}")
            self._write(capture, number, offset, end)
            _put(checkpoint / "commits" / str(number), "v1\n{}")
            offset = end
        streams_here.forget(f"tailrace {offset['pipeline']}")

    def _write(self, capture: Capture, number: int, start: dict[str, Any], end: dict[str, Any]) -> None:
        blobs: dict[str, list[Any]] = {}
        for split in capture.plan(start, end):
            shaper = Shaper(capture, StructType(), self.definition.steps_text(), "run")
            for chunk in capture.read(split):
                for row in shaper.rows(chunk):
                    blobs.setdefault(row.column("table")[0].as_py(), []).append(row.column("bytes")[0].as_buffer())
        root, options = place(self.folder)
        known = {"copies": again.folders(root, options), "aside": aside.folders(root, options)}
        batch = MicroBatch(root, "query", number, options, False, sets_aside=True, **known)  # type: ignore[arg-type]
        for table, found in blobs.items():
            writer = TableWriter(batch, table)
            for part in parts(iter(found), self.rows):
                time.sleep(self.pause)
                writer.write(part)


def _put(file: Path, text: str) -> None:
    """Write a file whole or not at all, as Spark does."""
    draft = file.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(file)


@contextmanager
def following(
    database: Database, folder: Path, steps: Sequence[dict[str, Any]] = (), **properties: str
) -> Iterator[Following]:
    """A pipeline that runs; a property's dots may be written as two underscores."""
    given = {name.replace("__", "."): value for name, value in properties.items()}
    pipeline = Following(database, folder, given, steps)
    pipeline.start()
    try:
        yield pipeline
    finally:
        pipeline.stop()
