"""The readers that Spark calls: the stream with its offsets, splits and limits, and the bounded read.

A stream reader lives in three places: a long process on the driver plans (initialOffset, latestOffset, partitions,
commit), and copies pickled for each task read. A copy needs only the config.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from tailrace.config.options.spark import MAX_BYTES_PER_TRIGGER
from tailrace.connectors.ahead import ahead
from tailrace.errors import SourceAwayError, TailraceError
from tailrace.override import override
from tailrace.spark import failpoint
from tailrace.spark.garbage import freeze_imports
from tailrace.spark.labels import batch_label
from tailrace.spark.logs import write_to_stderr
from tailrace.spark.recipe import Recipe
from tailrace.spark.versions import (
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from tailrace.capture.capture import Capture
    from tailrace.connectors.base import Offset


@dataclass
class TaskSplit(InputPartition):
    """A connector's split for one task, and its label.

    The label is `<batch>/<place>/<splits>`. Two splits have the same label only if they hold the same changes, so a
    sink can skip a split that it has written, whatever Spark's number of the micro-batch is.
    """

    value: Any
    label: str = ""


def labelled(capture: Capture, start: Offset, end: Offset) -> list[TaskSplit]:
    """The splits of a micro-batch with their labels."""
    splits = capture.plan(start, end)
    snapshots = sorted({name for split in splits if (name := capture.snapshot_of(split)) is not None})
    batch = batch_label(start, end, snapshots)
    return [TaskSplit(split, f"{batch}/{place}/{len(splits)}") for place, split in enumerate(splits)]


@contextmanager
def _passing(capture: Capture) -> Iterator[None]:
    """Marks an error that may go away by itself: Spark passes on only its class and text, which must tell this."""
    try:
        yield
    except Exception as error:
        if not capture.is_passing(error):
            raise
        if isinstance(error, TailraceError):
            raise SourceAwayError(error.what, where=error.where, remedy=error.remedy) from error
        raise SourceAwayError(f"the connection was lost: {str(error).partition(chr(10))[0]}") from error


class _Rows:
    """What both readers share: a capture, made at its first use, and the rows of a split in the chosen shape."""

    def __init__(self, capture: Capture | Recipe, schema: StructType, steps: str, run_id: str) -> None:
        self._capture = capture
        self.schema = schema
        self.steps = steps
        self.run_id = run_id

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        write_to_stderr()

    @property
    def capture(self) -> Capture:
        """The capture, which belongs to this process."""
        if isinstance(self._capture, Recipe):
            self._capture = self._capture.capture()
        return self._capture

    def close(self) -> None:
        """Close connections."""
        if not isinstance(self._capture, Recipe):
            self._capture.close()

    def rows(self, partition: TaskSplit) -> Iterator[pa.RecordBatch]:
        """Arrow batches of a split's rows, encoded one ahead of those Spark takes."""
        with _passing(self.capture):
            yield from ahead(self._encoded(partition))
        freeze_imports()
        failpoint.reach("after-read")

    def _encoded(self, partition: TaskSplit) -> Iterator[pa.RecordBatch]:
        """The same, of chunks received and decoded one ahead of this one."""
        # The planner has this class as well, and makes no events: each import here is one more at every start.
        from tailrace.spark.shapes import Shaper

        shaper = Shaper(self.capture, self.schema, self.steps, self.run_id, partition.label)
        for chunk in ahead(self.capture.read(partition.value)):
            yield from shaper.rows(chunk)


class SnapshotReader(_Rows, DataSourceReader):
    """`spark.read`: every captured table as of one moment."""

    @override
    def partitions(self) -> Sequence[InputPartition]:
        """One split holds all tables: the snapshot it reads under cannot outlive this call in another process."""
        return [InputPartition(None)]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Plan and read in the task, which holds the exported snapshot meanwhile."""
        try:
            for split in self.capture.snapshot():
                yield from self.rows(TaskSplit(split))
        finally:
            self.close()


class StreamReader(_Rows, DataSourceStreamReader):
    """What the readers of `spark.readStream` share: offsets as the capture gives them."""

    def __init__(
        self, capture: Capture | Recipe, schema: StructType, steps: str, run_id: str, pause_seconds: float = 0.0
    ) -> None:
        super().__init__(capture, schema, steps, run_id)
        self._until: Any = None
        self._bounded = False
        self._pause_seconds = pause_seconds
        self._planned: tuple[dict[str, Any], float] | None = None

    @override
    def initialOffset(self) -> dict[str, Any]:
        """Where a new query starts; touches nothing on the server."""
        return self.capture.begin()

    def head(self, start: dict[str, Any], most: int | None) -> dict[str, Any]:
        """Where the next micro-batch ends, after at most so many bytes of log.

        `start` itself when there is nothing new, or a pause is not over.
        """
        if self._pauses(start):
            return start
        with _passing(self.capture):
            if self._bounded and self._until is None:
                self._until = self.capture.horizon(start)
            end = self.capture.head(start, most, self._until)
        if end != start:
            self._planned = end, time.monotonic()
        return end

    def _pauses(self, start: dict[str, Any]) -> bool:
        """Whether the micro-batch that ends at `start` was planned just now, and only the log is to be read."""
        if self._bounded or self._planned is None or self._planned[0] != start:
            return False
        return time.monotonic() - self._planned[1] < self._pause_seconds and not self.capture.has_snapshot(start)

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The splits of a micro-batch."""
        failpoint.reach("after-plan")
        with _passing(self.capture):
            return labelled(self.capture, start, end)

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split; runs on an executor."""
        assert isinstance(partition, TaskSplit)
        yield from self.rows(partition)

    @override
    def commit(self, end: dict[str, Any]) -> None:
        """Spark has committed up to `end`. Reading the next range, which begins there, confirms it to the server."""
        failpoint.reach("after-commit")

    @override
    def stop(self) -> None:
        """The query ends."""
        self.close()


class ChangeReader(StreamReader, SupportsTriggerAvailableNow):
    """The reader of a Spark that tells `latestOffset` the query's offset and a limit."""

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        """Bytes of log a micro-batch may span."""
        return ReadMaxBytes(self.capture.config[MAX_BYTES_PER_TRIGGER])

    @override
    def prepareForTriggerAvailableNow(self) -> None:
        """Batches until where the log ends at the first planning."""
        self._bounded = True

    @override
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next micro-batch ends; `start` itself when there is nothing to read."""
        return self.head(start, limit.max_bytes if isinstance(limit, ReadMaxBytes) else None)

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Where the log ends and what is left of it behind the micro-batch: `latestOffset` in Spark's progress."""
        return self.capture.latest()
