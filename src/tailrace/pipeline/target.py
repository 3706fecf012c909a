"""Creates the writer of a definition's sink: which row shape it reads and how it is attached to a stream."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Protocol

from tailrace.config import Config
from tailrace.config.converter_names import JSON
from tailrace.config.filters import tables_of_signals
from tailrace.config.options.events import TRANSFORM_NAMES
from tailrace.connectors.notifications import REPLICA, SET_ASIDE, Notice, notify
from tailrace.errors import ConfigError
from tailrace.events.converter import Converter
from tailrace.events.forms import are_json
from tailrace.model.change import ChangeBatch, from_ipc
from tailrace.pipeline.complete import Completeness
from tailrace.pipeline.definition import Definition, FileTarget, KafkaTarget, ReplicaTarget
from tailrace.pipeline.engines import demand_engine
from tailrace.pipeline.registrar import Registrar
from tailrace.pipeline.table_states import TableStates, shown
from tailrace.sinks.console import ConsoleSink
from tailrace.sinks.counts import Counts
from tailrace.sinks.files import JsonLinesSink, ParquetSink
from tailrace.sinks.kafka.sink import KafkaSink
from tailrace.sinks.null import NullSink
from tailrace.sinks.replica.aside import SetAside, tables_set_aside
from tailrace.sinks.replica.complete import ALL
from tailrace.sinks.replica.complete import write as write_complete
from tailrace.sinks.replica.others import other_tables
from tailrace.sinks.replica.sink import ReplicaSink, TableReport
from tailrace.sinks.replica.upkeep import Upkeep
from tailrace.spark import failpoint
from tailrace.spark.sessions import query_id
from tailrace.transforms import parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


log = logging.getLogger(__name__)

WATCHED = 20  # guessed


class SinkTarget(Protocol):
    """A sink as the runner sees it. Those that count for themselves have `written`, events by batch id."""

    @property
    def shape(self) -> str:
        """The shape of rows it reads."""

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer of the stream `frame`, whose rows have that shape; trigger and checkpoint are not its business."""


def build(definition: Definition, config: Config) -> SinkTarget:
    """The target that the definition's sink names."""
    target = definition.sink.target
    if isinstance(target, KafkaTarget):
        properties = {**target.properties, "bootstrap.servers": target.bootstrap_servers}
        steps = parse(definition.steps_text())
        names = target.transactional_id_prefix, target.state_topic
        return KafkaSink(properties, config, definition.package().source_block(config), steps, target.delivery, *names)
    if isinstance(target, ReplicaTarget):
        if config[TRANSFORM_NAMES]:
            log.warning("transforms: no effect on a replica, which holds tables; they work on records")
        aside = tuple(table.unique for table in tables_of_signals(config))
        return ReplicaOutput(target, aside=aside, notify=lambda notice: notify(config, [notice]))
    if isinstance(target, FileTarget):
        if definition.sink.kind == "parquet":
            return ParquetSink(target.path)
        if not are_json(config):
            raise ConfigError(
                "lines of JSON cannot hold keys or values that are not JSON",
                where="sink.json",
                remedy="take the sink kafka, or remove key.converter and value.converter",
            )
        return JsonLinesSink(target.path, Converter.of(config, "header").kind == JSON)
    return ConsoleSink() if definition.sink.kind == "console" else NullSink()


@dataclass
class ReplicaOutput:
    """The replica sink, hooked into a stream. `written` counts the rows it changed by batch, `rows` by table.

    `watch` is shown, on the driver, the first WATCHED batches of changes of every micro-batch, once they are written.
    The tables of signals, `aside`, are none of the replica's. `repeated` is the micro-batch that this run repeats.
    `notify` gets a notification of each table that is set aside. `states` are those of the tables, and `registrar`
    keeps them in a catalogue.
    """

    target: ReplicaTarget
    watch: Callable[[ChangeBatch], None] | None = None
    aside: tuple[str, ...] = ()
    repeated: int | None = None
    _: KW_ONLY
    notify: Callable[[Notice], object] | None = None
    set_aside: tuple[SetAside, ...] = ()
    states: TableStates = field(default_factory=TableStates)
    registrar: Registrar | None = None
    written: Counts = field(default_factory=Counts)
    rows: Counter[str] = field(default_factory=Counter)
    shape: str = "arrow"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that merges each micro-batch of `frame` into the tables. Raises TailraceError for the engine."""
        if self.target.engine == "spark":
            demand_engine(self.target, frame.sparkSession)
        self.set_aside = tables_set_aside(self.target.root, self.target.options, self.target.names)
        for name in self.aside:
            frame = frame.where(~frame["table"].eqNullSafe(name))
        return frame.writeStream.foreachBatch(self._write if self.watch is None else self._write_watched)

    def others(self, query_id: str, captured: Iterable[str]) -> list[str]:
        """The tables that the query has written, without those of these unique names. Raises SinkError."""
        return other_tables(self.target.root, self.target.options, self.target.names, query_id, captured)

    def publish(self, pipeline: str, complete: Completeness) -> None:
        """Write up to which time the tables are complete into a table beside them. Raises SinkError."""
        until = {ALL: complete.until(), **{shown(name): complete.until(name) for name in complete.tables}}
        failure = write_complete(self.target.root, self.target.options, pipeline, until)
        if failure is not None:
            log.warning("%s", failure)

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        target = self.target
        upkeep = Upkeep(target.retention_minutes) if target.maintenance else None
        sink = ReplicaSink(
            *(target.root, query_id(frame), target.engine, target.options, target.on_drop, upkeep),
            on_error=target.on_error,
            layout=target.layout,
        )
        reports = sink.write(frame, batch_id, repeats=batch_id == self.repeated, known=self.states.known)
        self._tell(reports.values())
        self.states.written(batch_id, reports.values())
        if self.registrar is not None:
            names = (*reports, *(each.renamed_from for each in reports.values() if each.renamed_from is not None))
            self.registrar.written(names)
        self.set_aside = tables_set_aside(target.root, target.options, target.names)
        failpoint.reach("after-write")
        changed = {table: report.upserted + report.deleted for table, report in reports.items()}
        self.written[batch_id] = sum(changed.values())
        self.rows = self.rows + Counter(changed)  # another object, as others read the one before

    def _tell(self, reports: Iterable[TableReport]) -> None:
        for report in reports:
            if report.aside is None:
                continue
            cure = "It is read again" if self._is_cured(report) else "When the cause is fixed, run `tailrace retry`"
            said = "%s is set aside, the other tables go on. Its changes are stored in %s/_aside. %s. %s"
            log.error(said, report.table, self.target.root, cure, report.aside)
            if self.notify is not None:
                self.notify(Notice(REPLICA, SET_ASIDE, (("table", report.table), ("error", report.aside))))

    def _is_cured(self, report: TableReport) -> bool:
        return report.is_cured and self.target.on_incomplete == "read_again"

    def _write_watched(self, frame: DataFrame, batch_id: int) -> None:
        # Kept, as reading the rows twice would decode the log twice.
        kept = frame.persist()
        try:
            self._write(kept, batch_id)
            for row in kept.orderBy("sequence").limit(WATCHED).collect():
                batch = from_ipc(row["bytes"])
                if not isinstance(batch, ChangeBatch) or batch.schema_change is not None:
                    continue
                if self.watch is not None and len(batch):
                    self.watch(batch)
        finally:
            kept.unpersist()
