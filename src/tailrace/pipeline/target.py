"""From a definition's sink to the object that writes: which row shape it reads and how it hooks into a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tailrace.config import Config
from tailrace.connectors.postgres.position import SOURCE
from tailrace.pipeline.definition import Definition, FileTarget, KafkaTarget, ReplicaTarget
from tailrace.sinks.console import ConsoleSink
from tailrace.sinks.files import JsonLinesSink, ParquetSink
from tailrace.sinks.kafka import KafkaSink
from tailrace.sinks.null import NullSink
from tailrace.sinks.replica.sink import ReplicaSink
from tailrace.transforms import parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Target(Protocol):
    """A sink as the runner sees it. Those that count for themselves have `written`, events by batch id."""

    @property
    def shape(self) -> str:
        """The shape of rows it reads."""

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer of the stream `frame`, whose rows have that shape; trigger and checkpoint are not its business."""


def build(definition: Definition, config: Config) -> Target:
    """The target that the definition's sink names."""
    target = definition.sink.target
    if isinstance(target, KafkaTarget):
        properties = {**target.properties, "bootstrap.servers": target.bootstrap_servers}
        return KafkaSink(properties, config, SOURCE, parse(definition.steps_text()))
    if isinstance(target, ReplicaTarget):
        return Replica(target)
    if isinstance(target, FileTarget):
        kind = ParquetSink if definition.sink.kind == "parquet" else JsonLinesSink
        return kind(target.path)
    return ConsoleSink() if definition.sink.kind == "console" else NullSink()


@dataclass
class Replica:
    """The replica sink, hooked into a stream. `written` counts the rows it changed by batch."""

    target: ReplicaTarget
    written: dict[int, int] = field(default_factory=dict)
    shape: str = "arrow"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        return frame.writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        # The query's id lives in the checkpoint: a new checkpoint begins anew and is not taken for a replay.
        query_id = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        sink = ReplicaSink(self.target.path, self.target.engine, self.target.storage_options, query_id)
        reports = sink.write(frame, batch_id)
        self.written[batch_id] = sum(report.upserted + report.deleted for report in reports.values())
