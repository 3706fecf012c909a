"""Starts the query of a pipeline, from what its checkpoint and its sink hold."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.pipeline import pace
from tailrace.pipeline.ahead import numbers, refuse_ahead, remove_unfinished
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.failure import sentences
from tailrace.pipeline.query_id import demand_id
from tailrace.pipeline.target import ReplicaOutput, SinkTarget
from tailrace.sinks.files import JsonLinesSink, ParquetSink
from tailrace.spark.latest_file import LatestFile
from tailrace.spark.observed import observe
from tailrace.spark.source import LATEST_OPTION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class QueryStart:
    """What a pipeline's query is started from, at first and again after an error that passes.

    `log` is where Spark's lines go. `replaces_sink`: the target is the caller's, and the definition's sink is not used.
    `latest` is where the source says how far its log goes, on a Spark that does not ask for it; None on others.
    """

    definition: Definition
    session: SparkSession
    target: SinkTarget
    log: Path
    replaces_sink: bool
    latest: LatestFile | None = None

    def begin(self) -> StreamingQuery:
        """Start the query from what the checkpoint and the sink hold. Raises TailraceError."""
        session, target, checkpoint = self.session, self.target, self.definition.checkpoint
        with self.sentences():
            batch_numbers = numbers(session, checkpoint)
            if batch_numbers.planned < 0:
                remove_unfinished(session, checkpoint)
            else:
                demand_id(session, self.definition)
            if isinstance(target, ParquetSink | JsonLinesSink):
                refuse_ahead(session, target.path, batch_numbers.planned)
            if isinstance(target, ReplicaOutput):
                target.repeated = batch_numbers.repeated
            return self._query()

    def sentences(self) -> AbstractContextManager[None]:
        """Turns what Spark, or the connection to its Java process, fails with in the block into a TailraceError."""
        sink = None if self.replaces_sink else self.definition.sink.path
        return sentences(self.definition.checkpoint, str(self.log), sink)

    def _query(self) -> StreamingQuery:
        definition, target = self.definition, self.target
        # This module alone knows how a query ends.
        own, given = definition.package().stop_property, definition.properties()
        properties = {key: text for key, text in given.items() if not own or key.lower().replace("_", ".") != own.name}
        trigger = definition.trigger_options()
        frame = (
            self.session.readStream.format(definition.entry.format)
            .option("tailrace.properties", json.dumps(properties))
            .option("tailrace.steps", definition.steps_text())
            .option("tailrace.pause.seconds", definition.pause_seconds)
            .options(**pace.options(trigger))
            .options(**({} if self.latest is None else {LATEST_OPTION: str(self.latest.path)}))
            .option("shape", target.shape)
            .load()
        )
        # Of other shapes each row would be looked at, or does not say what it is.
        counted = observe(frame) if target.shape == "arrow" else frame
        writer = target.attach(counted).queryName(definition.name).option("checkpointLocation", definition.checkpoint)
        return pace.start(writer, trigger)
