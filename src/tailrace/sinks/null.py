"""Encodes every event and discards it, to measure a pipeline without a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True)
class NullSink:
    """Nowhere."""

    shape: str = "kafka"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that reads all of `frame` and keeps nothing."""
        return frame.writeStream.format("noop")
