"""The engine for tables that are too large for one task: tasks fold the changes, then Spark's MERGE applies them.

What depends on the format of the tables is behind SparkTables.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tailrace.errors import DecodeError, SinkAwayError, SinkError, TableError
from tailrace.model.schema_change import DROP, SchemaChange
from tailrace.model.table import TableSchema
from tailrace.sinks.replica import again, aside, descriptions, failures, merge, notes, spark_sql, writing
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.delta.by_spark import DeltaBySpark
from tailrace.sinks.replica.evolve import takes_over
from tailrace.sinks.replica.health import why_not_ours
from tailrace.sinks.replica.marks import Extent
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.renames import Done, Rename, Stop, renamed
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.roots import ICEBERG
from tailrace.sinks.replica.spark_fold import FOLDED, folding, unpacked
from tailrace.sinks.replica.spark_tables import Folded, SparkMerge, SparkTables
from tailrace.sinks.replica.table import LostRaceError, Mark
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.writing import Work
from tailrace.spark import failpoint
from tailrace.spark.java_errors import JAVA_IS_AWAY, summary

# Conditions of MERGE's errors about what a table holds.
_OF_THE_TABLE = ("MERGE_CARDINALITY_VIOLATION", "CAST_", "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
_OF_SPARK: tuple[type[Exception], ...] = (PySparkException, *JAVA_IS_AWAY)
T = TypeVar("T")


def tables_of(session: SparkSession, batch: MicroBatch) -> SparkTables:
    """How Spark writes the tables of a micro-batch's root, for which the session is prepared. Raises ConfigError."""
    if not batch.root.startswith(ICEBERG):
        return DeltaBySpark(session)
    from tailrace.sinks.replica.iceberg.by_spark import IcebergBySpark  # loads pyiceberg, which is optional
    from tailrace.sinks.replica.iceberg.spark_catalog import configure

    configure(session, batch.storage_options)
    return IcebergBySpark(session)


@dataclass(frozen=True)
class Otherwise:
    """The first part of a table that MERGE does not write: why it cannot be written, or None where tasks can."""

    part: int
    error: str | None = None


class Merging:
    """Merges rows (`table`, `bytes`), each table's in one partition and in order. Close it. Raises ConfigError.

    `others` are the tables to be set aside, and those with parts that tasks write: MERGE has written them up to there.
    """

    def __init__(self, ordered: DataFrame, batch: MicroBatch) -> None:
        self.others: dict[str, Otherwise] = {}
        self._begun: set[str] = set()
        self._batch, self._tables = batch, tables_of(ordered.sparkSession, batch)
        self._folded = ordered.mapInArrow(folding(batch), FOLDED).persist()

    @cached_property
    def _heads(self) -> list[Row]:
        return self._folded.where("slice = 0").drop("rows").orderBy("table", "part").collect()

    def advance(self, done: Done) -> tuple[list[TableReport], list[Stop]]:
        """Write what comes before a rename that is not done; see in_rounds. Raises SinkError."""
        reports: list[TableReport] = []
        stops: list[Stop] = []
        for table, parts in groupby(self._heads, key=lambda head: str(head.table)):
            for part in parts:
                head = json.loads(part.header)
                extent = Extent.from_json(head["extent"])
                rename = Rename(**head["rename"]) if "rename" in head else None
                if done.has(table, extent.number):
                    continue
                if rename is not None:
                    stops.append(Stop(table, extent, rename))
                    break
                if "tasks" in head or table in self._batch.put_aside:
                    self.others.setdefault(table, Otherwise(extent.number))
                if extent.number < self._end(table):
                    try:
                        reports.append(self._written(table, extent, head))
                    except (TableError, DecodeError) as error:
                        if not self._batch.sets_aside:
                            raise
                        self.others[table] = Otherwise(extent.number, str(error))
        return reports, stops

    def _written(self, table: str, extent: Extent, head: dict[str, Any]) -> TableReport:
        """Write a part, whatever of it is not written yet."""
        place = self._batch.target(table)
        attempt = partial(_write_part, self._folded, self._batch, self._tables, table, extent, head)
        lacking = attempted(self._tables, place, partial(self._examined, table))
        report = attempted(self._tables, place, attempt)
        return replace(report, lacking=lacking or report.lacking)

    def _examined(self, table: str) -> str | None:
        """Why a table may not be as it was written last, before it is written the first time."""
        if table in self._begun:
            return None
        found = why_not_ours(self._batch.target(table).open(), self._batch.known.get(table), self._batch.query_id)
        self._begun.add(table)
        return found

    def _end(self, table: str) -> float:
        """The number of the first part that is not written."""
        return self.others[table].part if table in self.others else math.inf

    def move(self, old: Stop, new: Stop) -> list[TableReport]:
        """Copy the rows of a table to that of its new name; see in_rounds. Raises SinkError.

        If the first one is set aside, so is the second: its replica would lack changes.
        """
        batch, tables = self._batch, self._tables
        again.forget(batch, old.table, new.table)
        if old.table in self.others and self.others[old.table].error is not None:
            aside.put(batch, new.table, Part(new.extent), aside.renamed(old.table))
        elif not aside.carry(batch, old.table, new.table, new.extent):
            attempted(tables, batch.target(new.table), lambda: _copy(tables, batch, old, new))
            failpoint.reach("after-copy")
            attempted(tables, batch.target(old.table), lambda: _clear(tables, batch, old.table, old.extent))
            return renamed(old, new)
        self.others[new.table] = Otherwise(new.extent.number, aside.renamed(old.table))
        return renamed(old, new)

    def close(self) -> None:
        """Release the rows."""
        self._folded.unpersist()


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column("rows"):
            yield from unpacked(blob.as_buffer()).to_batches()


def _write_part(
    folded: DataFrame, batch: MicroBatch, tables: SparkTables, table: str, extent: Extent, head: dict[str, Any]
) -> TableReport:
    place = batch.target(table)
    if "failed" in head:
        raise TableError(head["failed"])
    if "change" in head:
        change = SchemaChange.from_json(head["change"])
        version = _alter(tables, batch, table, extent, change)
        report = TableReport(table, is_gone=change.kind == DROP)
        return report if version is None else writing.identified(report, place.open())
    if "lacking" in head:
        return notes.of_reason(table, head["lacking"], extent.read)
    target = place.open()
    outdated = None if target is None else descriptions.outdated(target, head.get("oldest_us"))
    if "schema" not in head:
        return TableReport(table, lacking=outdated, is_there=True)
    chosen = (folded.table == table) & (folded.part == extent.number)
    described = TableSchema.from_json(head["table"]) if "table" in head else None
    applied = _apply(tables, batch, place, _net(folded.where(chosen).select("rows"), head), extent, described)
    if applied is None:
        return TableReport(table, lacking=outdated, is_there=True)
    absent = 0 if applied.put is None else head["upserted"] - applied.put
    lacking = applied.lacking or head["loses"] or writing.missing_values(absent) or outdated
    snapshot = None if extent.read is None else extent.read.snapshot
    report = TableReport(table, head["upserted"], head["deleted"], lacking=lacking, snapshot=snapshot, is_there=True)
    return writing.identified(report, place.open())


def _net(slices: DataFrame, head: dict[str, Any]) -> Folded:
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(head["schema"])))
    kind: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return Folded(
        *(slices.mapInArrow(_unpack, kind), slices, head["names"], schema),
        key=head["key"],
        kept=head["kept"],
        moves=head["moves"],
        cleared=head["cleared"],
        types=head["types"] if head["upserted"] else {},
    )


def attempted(tables: SparkTables, place: Target, attempt: Callable[[], T]) -> T:
    """The result of the attempt, which is repeated where another program has written meanwhile. Raises SinkError."""

    def once() -> T:
        try:
            return attempt()
        except _OF_SPARK as error:
            raise _meaning(tables, place, error) from error

    return failures.retried(place, once)


def _meaning(tables: SparkTables, place: Target, error: Exception) -> Exception:
    """What an error of Spark's means."""
    text, kind = summary(error), SinkError
    condition = (error.getCondition() if isinstance(error, PySparkException) else None) or ""
    remedy = tables.remedy(error) or f"check {place.uri}, and the jars and settings of the session; then start again"
    if tables.is_conflict(error):
        return LostRaceError(text)
    if tables.is_away(error):
        kind, remedy = SinkAwayError, f"check {place.uri}; the batch is written again when it answers"
    elif tables.is_of_the_table(error) or condition.startswith(_OF_THE_TABLE):
        kind = TableError
    return kind(f"the replica could not be written: {text}", where=place.table, remedy=remedy)


@dataclass(frozen=True)
class Applied:
    """What a MERGE did: how many rows it put (None: all), and why the table's rows may differ from the source's."""

    put: int | None = None
    lacking: str | None = None


def _apply(
    tables: SparkTables, batch: MicroBatch, place: Target, net: Folded, extent: Extent, described: TableSchema | None
) -> Applied | None:
    """Bring a net effect into a table; None where the table holds it."""
    target = place.open()
    progress = batch.progress(place.table, target)
    if progress.has(extent):
        return None
    progress.refuse_overlap(extent)
    writing.stored_as_wanted(target, batch, place)
    work, mark = Work(batch, place, target, progress), progress.mark(extent)
    if target is not None and net.cleared:
        descriptions.emptied(target, writing.repeated(target, batch, place.table))
    if target is not None and net.types:
        at, before = writing.repeated(target, batch, place.table), target
        descriptions.begun(target, net.types, at, lambda: net.cleared or before.count() == 0)
    if target is not None and progress.begins(extent):
        descriptions.cured(target, writing.repeated(target, batch, place.table))
    if target is None or progress.begins(extent) or takes_over(target, net.fields):
        tables.overwrite(work, net, mark, reshapes=True)
        return Applied()
    lacking = tables.evolve(work, net.fields, described)
    if net.cleared:
        tables.overwrite(work, net, mark, reshapes=False)
        return Applied(None, lacking)
    return Applied(_merged(tables.merge(place, target), net, mark), lacking)


def _merged(merging: SparkMerge, net: Folded, mark: Mark) -> int | None:
    """Merge a net effect; how many rows were put, None where each change puts one."""
    current = merging.rows
    if not net.key:
        source = spark_sql.bag_source(net.rows, current, net.names)
        merging.run(source, mark, spark_sql.same_row(current.schema, net.names), None, merge.PUTS)
        return None
    source = spark_sql.keyed_source(net.rows, current, net.names, net.key, net.kept, net.moves)
    updates = merge.updates(current.columns, net.kept)
    return merging.run(source, mark, merge.same_key(net.key), updates, merge.inserted(net.kept))


def _alter(tables: SparkTables, batch: MicroBatch, table: str, extent: Extent, change: SchemaChange) -> int | None:
    """Follow a schema change in one commit; the table's version then, None where there was nothing to do."""
    place = batch.target(table)
    target = place.open()
    progress = batch.progress(table, target)
    if target is None or progress.has(extent):
        return None
    descriptions.altered(target, change, writing.repeated(target, batch, table))
    if change.kind == DROP:
        return None if batch.keeps_dropped else _clear(tables, batch, table, extent)
    shape = reshaping(target.schema, change)
    if shape is None:
        return None
    tables.reshape(place, target, shape, progress.mark(extent))
    return _version(place)


def _copy(tables: SparkTables, batch: MicroBatch, old: Stop, new: Stop) -> None:
    """Make one table what another is, once; one that is not there has no rows."""
    source, place = batch.target(old.table), batch.target(new.table)
    target = place.open()
    progress = batch.progress(new.table, target)
    if source.open() is None:
        _clear(tables, batch, new.table, new.extent)
    elif not progress.has(new.extent):
        tables.copy(Work(batch, place, target, progress), source, progress.mark(new.extent))
        written, origin = place.open(), source.open()
        assert written is not None
        assert origin is not None
        descriptions.moved(written, origin, writing.repeated(written, batch, new.table))


def _clear(tables: SparkTables, batch: MicroBatch, table: str, extent: Extent) -> int | None:
    """Take all rows from a table, once; its version then."""
    place = batch.target(table)
    target = place.open()
    progress = batch.progress(table, target)
    if target is None or progress.has(extent):
        return None
    tables.clear(place, target, progress.mark(extent))
    return _version(place)


def _version(place: Target) -> int | None:
    written = place.open()
    return None if written is None else written.version
