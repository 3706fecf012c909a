"""Encodes every event and discards it, to measure a pipeline without a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tailrace.sinks.counts import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass
class NullSink:
    """Nowhere. Events are encoded and discarded where they are read; `written` counts them by batch."""

    shape: str = "count"
    written: Counts = field(default_factory=Counts)

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that reads all of `frame` and keeps its number of events."""
        return frame.writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        self.written[batch_id] = sum(row["records"] for row in frame.collect())
