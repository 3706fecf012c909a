"""The replica sink for `foreachBatch`: a micro-batch of `arrow` rows, merged into one table per source table."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from tailrace.sinks.replica import again, aside, contents, spark_merge
from tailrace.sinks.replica.batch import MicroBatch, table_parts
from tailrace.sinks.replica.layout import ReplicaLayout
from tailrace.sinks.replica.modes import CHANGES
from tailrace.sinks.replica.renames import Done, Stop, in_rounds, renamed
from tailrace.sinks.replica.reports import TableReport, summed
from tailrace.sinks.replica.roots import Engine
from tailrace.sinks.replica.states import SeenVersion
from tailrace.sinks.replica.table_writer import TableWriter
from tailrace.sinks.replica.target import read_table, row_count
from tailrace.sinks.replica.upkeep import Upkeep
from tailrace.spark import failpoint
from tailrace.spark.garbage import freeze_imports
from tailrace.spark.sessions import few_rows, query_id

log = logging.getLogger(__name__)
Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

__all__ = ["ReplicaSink", "TableReport", "read_table", "row_count"]

# What was done to a part's table; or where its task stopped for a rename, as JSON; or how its maintenance failed.
_RESULT = "table string, report string, stop string, failure string"
_RESULT_SCHEMA = pa.schema([(name, pa.string()) for name in ("table", "report", "stop", "failure")])


@dataclass(frozen=True)
class KnownTables:
    """What is known of a replica's tables before a micro-batch: see MicroBatch."""

    seen: Mapping[str, SeenVersion] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    put_aside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplicaSink:
    """Keeps the tables `<root>/<schema>.<table>` equal to their sources, whatever is replayed.

    `query_id` names the pipeline in the tables' commits: one batch of one query is written once, so it must outlive
    restarts and be no other query's; None: the id of the query that calls `write`. The engine `spark` runs MERGE, for
    tables that outgrow one task, and needs Delta or Iceberg for Spark in the session; any other one writes in the
    executors' tasks.
    `on_drop`: a table that was dropped at its source loses its rows, or keeps them. `upkeep`: how small files are
    joined, and replaced versions of a table removed; None: neither is done. `on_error`: a table whose rows cannot be
    written as they are fails the micro-batch (`stop`), or is set `aside`, see aside.py. `layout`: names, and columns
    about the last change.
    """

    root: str
    query_id: str | None = None
    engine: Engine = "deltalake"
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    on_drop: Literal["clear", "keep"] = "clear"
    upkeep: Upkeep | None = field(default_factory=Upkeep)
    on_error: Literal["stop", "aside"] = "stop"
    layout: ReplicaLayout = field(default_factory=ReplicaLayout)

    def write(
        self, frame: DataFrame, batch_id: int, *, repeats: bool | None = None, known: KnownTables | None = None
    ) -> dict[str, TableReport]:
        """Merges a micro-batch of `arrow`-shaped rows; what was done by table. Raises SinkError.

        `repeats`: whether another run has begun this very micro-batch, None if that is unknown. It matters for tables
        whose own log another writer has cleaned. `known` is what the caller has stored of the reports before.
        """
        options = dict(self.storage_options)
        letters, sets_aside = aside.folders(self.root, options), self.on_error == "aside"
        stored = known or KnownTables()
        batch = MicroBatch(
            *(
                self.root,
                query_id(frame, self.query_id),
                batch_id,
                options,
                self.on_drop == "keep",
                repeats,
                self.upkeep,
                letters,
                sets_aside,
            ),
            layout=self.layout,
            copies=again.folders(self.root, options),
            known=stored.seen,
            gone=stored.gone,
            put_aside=stored.put_aside,
        )
        with few_rows(frame.sparkSession):
            if self.engine == "spark":
                return summed(_by_spark(_by_table(frame), batch))
            return summed(_merge(_by_table(frame), batch))


def _by_table(frame: DataFrame) -> DataFrame:
    """A table's rows in one task, in order; `sequence` ascends within a split, and a split is a partition."""
    return (
        frame.withColumn("split", spark_partition_id())
        .repartition("table")
        .sortWithinPartitions("table", "split", "sequence")
        .select("table", "bytes")
    )


def _merge(ordered: DataFrame, batch: MicroBatch) -> list[TableReport]:
    def advance(done: Done) -> tuple[list[TableReport], list[Stop]]:
        if done.renames and not ordered.is_cached:
            ordered.persist()  # the log is decoded once more, and then no more
        return _advanced(ordered, batch, done)

    def move(old: Stop, new: Stop) -> list[TableReport]:
        ordered.sparkSession.range(0, 1, 1, 1).mapInArrow(_moving(batch, old, new), "id bigint").collect()
        return renamed(old, new, lacks_rows=batch.layout.mode.kind == CHANGES)

    try:
        return in_rounds(advance, move)
    finally:
        ordered.unpersist()


def _advanced(ordered: DataFrame, batch: MicroBatch, done: Done) -> tuple[list[TableReport], list[Stop]]:
    """Write the tables in tasks, up to renames that are not done; see in_rounds."""
    return _run(ordered, _merging(batch, done))


def _run(frame: DataFrame, task: Task) -> tuple[list[TableReport], list[Stop]]:
    """What tasks report, and where they stopped; failures of maintenance are logged."""
    rows = [row.asDict() for row in frame.mapInArrow(task, _RESULT).collect()]
    for row in rows:
        if row["failure"] is not None:
            log.warning("%s", row["failure"])
    return (
        [TableReport(**json.loads(row["report"])) for row in rows if row["report"] is not None],
        [Stop.from_json(json.loads(row["stop"])) for row in rows if row["stop"] is not None],
    )


def _by_spark(ordered: DataFrame, batch: MicroBatch) -> list[TableReport]:
    """The same with Spark's MERGE. Tables that are set aside or read again go the other way, until that has ended."""
    readable = sorted(
        {
            *(each.table for each in aside.tables_set_aside(batch.root, batch.storage_options, batch.layout.names)),
            *again.tables(batch.root, batch.storage_options),
        }
    )
    others = ordered.where(~ordered.table.isin(readable)) if readable else ordered
    with closing(spark_merge.Merging(others, batch)) as merging:

        def advance(done: Done) -> tuple[list[TableReport], list[Stop]]:
            reports, stops = merging.advance(done)
            some = _advanced(ordered.where(ordered.table.isin(readable)), batch, done) if readable else ([], [])
            return [*reports, *some[0]], [*stops, *some[1]]

        reports = in_rounds(advance, merging.move)
    _keep(ordered.sparkSession, [report for report in reports if report.table not in readable], batch)
    left = {table: first for table, first in merging.others.items() if table not in readable}
    if left:
        some = ordered.where(ordered.table.isin(list(left)))
        reports += _run(some, _finishing(batch, left))[0]
    return reports


def _finishing(batch: MicroBatch, others: dict[str, spark_merge.Otherwise]) -> Task:
    """What a task does with the parts that MERGE does not write: the first one may set its table aside."""

    def put(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table, parts in table_parts(batches, batch.layout):
            first, reports, writer = others[table], [], TableWriter(batch, table)
            for part in parts:
                if part.rename is not None or part.extent.number < first.part:
                    continue
                if part.extent.number == first.part and first.error is not None:
                    reports.append(aside.put(batch, table, part, first.error))
                    writer.is_aside = True
                else:
                    reports.append(writer.write(part))
                yield _reported(reports[-1])
            yield from _kept(batch, table, reports)

    return put


def _merging(batch: MicroBatch, done: Done) -> Task:
    def merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table, parts in table_parts(batches, batch.layout):
            reports: list[TableReport] = []
            writer = TableWriter(batch, table)
            for part in parts:
                if done.has(table, part.extent.number):
                    writer.is_aside = True  # if the other name was
                    continue
                if part.rename is not None:
                    stop = Stop(table, part.extent, part.rename, part.at)
                    yield _result(table=table, stop=json.dumps(asdict(stop)))
                    break
                reports.append(writer.write(part))
                failpoint.reach("after-table")
            yield from map(_reported, reports)
            yield from _kept(batch, table, reports)
        freeze_imports()

    return merge


def _kept(batch: MicroBatch, table: str, reports: list[TableReport]) -> Iterator[pa.RecordBatch]:
    """Maintain what a task has written of a table."""
    for failure in aside.keep(batch, table, reports):
        yield _result(table=table, failure=failure)


def _reported(report: TableReport) -> pa.RecordBatch:
    return _result(table=report.table, report=json.dumps(asdict(report)))


def _result(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([columns], _RESULT_SCHEMA)


def _keep(session: SparkSession, reports: list[TableReport], batch: MicroBatch) -> None:
    """Maintain the tables of the reports, each in a task."""
    tables = [
        (table, list(some))
        for table, some in groupby(sorted(reports, key=lambda each: each.table), key=lambda each: each.table)
    ]

    def keep(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for each in batches:
            for number in each.column("id").to_pylist():
                yield from _kept(batch, *tables[number])

    if tables:
        _run(session.range(0, len(tables), 1, len(tables)), keep)


def _moving(batch: MicroBatch, old: Stop, new: Stop) -> Task:
    def move(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        again.forget(batch, old.table, new.table)
        if aside.carry(batch, old.table, new.table, new.extent):
            yield from batches
            return
        contents.copy(batch, old, new)
        failpoint.reach("after-copy")
        contents.clear(batch, old.table, old.extent, new.at)
        yield from batches

    return move
