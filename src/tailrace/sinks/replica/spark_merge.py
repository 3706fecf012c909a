"""The engine for tables that are too large for one task: tasks fold the changes, then Spark's MERGE applies them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tailrace.errors import DecodeError, SinkAwayError, SinkError, TableError
from tailrace.model.schema_change import DROP, SchemaChange
from tailrace.model.table import TableSchema
from tailrace.sinks.replica import again, aside, descriptions, failures, merge, notes, spark_sql, spark_write, writing
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.evolve import evolution, takes_over
from tailrace.sinks.replica.health import why_not_ours
from tailrace.sinks.replica.marks import Extent
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.renames import Done, Rename, Stop, renamed
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.spark_fold import FOLDED, folding
from tailrace.sinks.replica.table import Table
from tailrace.sinks.replica.target import Target
from tailrace.spark import failpoint
from tailrace.spark.java_errors import JAVA_IS_AWAY, summary

# Conditions of Delta's and of MERGE's errors about what a table holds.
_OF_THE_TABLE = ("DELTA_", "MERGE_CARDINALITY_VIOLATION", "CAST_", "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
_REFUSALS: tuple[type[Exception], ...] = (PySparkException, DeltaError, *JAVA_IS_AWAY)


@dataclass(frozen=True)
class Folded:
    """A net effect whose rows are a frame; the fields are those of Net. `types`: of its columns; none without rows."""

    rows: DataFrame
    names: list[str]
    schema: pa.Schema
    key: list[str]
    _: KW_ONLY
    kept: list[str]
    moves: bool
    cleared: bool
    types: dict[str, str]


@dataclass(frozen=True)
class Otherwise:
    """The first part of a table that MERGE does not write: why it cannot be written, or None where tasks can."""

    part: int
    error: str | None = None


class Merging:
    """Merges rows (`table`, `bytes`), each table's in one partition and in order. Close it.

    `others` are the tables to be set aside, and those with parts that tasks write: MERGE has written them up to there.
    """

    def __init__(self, ordered: DataFrame, batch: MicroBatch) -> None:
        self.others: dict[str, Otherwise] = {}
        self._begun: set[str] = set()
        self._session, self._batch = ordered.sparkSession, batch
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
                        lacking = self._examined(table)
                        report = _write_part(self._folded, self._batch, table, extent, head)
                        reports.append(replace(report, lacking=lacking or report.lacking))
                    except (TableError, DecodeError) as error:
                        if not self._batch.sets_aside:
                            raise
                        self.others[table] = Otherwise(extent.number, str(error))
        return reports, stops

    def _examined(self, table: str) -> str | None:
        """Why a table may not be as it was written last, before it is written the first time."""
        if table in self._begun:
            return None
        self._begun.add(table)
        return why_not_ours(self._batch.target(table).open(), self._batch.known.get(table), self._batch.query_id)

    def _end(self, table: str) -> float:
        """The number of the first part that is not written."""
        return self.others[table].part if table in self.others else math.inf

    def move(self, old: Stop, new: Stop) -> list[TableReport]:
        """Copy the rows of a table to that of its new name; see in_rounds. Raises SinkError.

        If the first one is set aside, so is the second: its replica would lack changes.
        """
        batch = self._batch
        again.forget(batch, old.table, new.table)
        if old.table in self.others and self.others[old.table].error is not None:
            aside.put(batch, new.table, Part(new.extent), aside.renamed(old.table))
        elif not aside.carry(batch, old.table, new.table, new.extent):
            with _refusals(batch.target(new.table)):
                _copy(self._session, batch, old, new)
                failpoint.reach("after-copy")
                _clear(self._session, batch, old.table, old.extent)
            return renamed(old, new)
        self.others[new.table] = Otherwise(new.extent.number, aside.renamed(old.table))
        return renamed(old, new)

    def close(self) -> None:
        """Release the rows."""
        self._folded.unpersist()


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column("rows"):
            with pa.ipc.open_stream(blob.as_buffer()) as reader:
                yield from reader


def _write_part(folded: DataFrame, batch: MicroBatch, table: str, extent: Extent, head: dict[str, Any]) -> TableReport:
    place = batch.target(table)
    if "failed" in head:
        raise TableError(head["failed"])
    if "change" in head:
        with _refusals(place):
            change = SchemaChange.from_json(head["change"])
            version = _alter(folded.sparkSession, batch, table, extent, change)
            return TableReport(table, version=version, table_id=_table_id(place), is_gone=change.kind == DROP)
    if "lacking" in head:
        return notes.of_reason(table, head["lacking"], extent.read)
    target = place.open()
    outdated = None if target is None else descriptions.outdated(target, head.get("oldest_us"))
    if "schema" not in head:
        return TableReport(table, lacking=outdated, is_there=True)
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(head["schema"])))
    kind: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    chosen = (folded.table == table) & (folded.part == extent.number)
    rows = folded.where(chosen).select("rows").mapInArrow(_unpack, kind)
    net = Folded(
        *(rows, head["names"], schema, head["key"]),
        kept=head["kept"],
        moves=head["moves"],
        cleared=head["cleared"],
        types=head["types"] if head["upserted"] else {},
    )
    described = TableSchema.from_json(head["table"]) if "table" in head else None
    with _refusals(place):
        applied = _apply(rows.sparkSession, batch, place, net, extent, described)
    if applied is None:
        return TableReport(table, lacking=outdated, is_there=True)
    absent = 0 if applied.put is None else head["upserted"] - applied.put
    return TableReport(
        table,
        head["upserted"],
        head["deleted"],
        _version(place),
        lacking=applied.lacking or head["loses"] or writing.missing_values(absent) or outdated,
        snapshot=None if extent.read is None else extent.read.snapshot,
        table_id=_table_id(place),
        is_there=True,
    )


@contextmanager
def _refusals(place: Target) -> Iterator[None]:
    try:
        yield
    except _REFUSALS as error:
        raise _failed(place, error) from error


def _failed(place: Target, error: Exception) -> SinkError:
    """What an error of Spark's means: Delta names those of a table, and of another program that writes it meanwhile."""
    if isinstance(error, DeltaError):
        return failures.failed(place, error)
    text, condition = summary(error), (error.getCondition() if isinstance(error, PySparkException) else None) or ""
    remedy = f"check {place.uri}, and that the session has Delta for Spark; then start again"
    if "INVALID_CHARACTERS_IN_COLUMN_NAMES" in text:
        remedy = "use the engine deltalake, which writes such names"
    kind = SinkError
    if condition.startswith("DELTA_CONCURRENT"):
        kind, remedy = SinkAwayError, "let no other program write this table; the batch is written again"
    elif isinstance(error, AnalysisException) or condition.startswith(_OF_THE_TABLE):
        kind = TableError
    return kind(f"the replica could not be written: {text}", where=place.table, remedy=remedy)


@dataclass(frozen=True)
class Applied:
    """What a MERGE did: how many rows it put (None: all), and why the table's rows may differ from the source's."""

    put: int | None = None
    lacking: str | None = None


def _apply(
    session: SparkSession, batch: MicroBatch, place: Target, net: Folded, extent: Extent, described: TableSchema | None
) -> Applied | None:
    """Bring a net effect into a table; None where the table holds it."""
    target = place.open()
    progress = batch.progress(place.table, target)
    if progress.has(extent):
        return None
    progress.refuse_overlap(extent)
    writing.stored_as_wanted(target, batch, place)
    mark, fields = progress.mark(extent), pa.schema([net.schema.field(name) for name in net.names])
    if target is not None and net.cleared:
        descriptions.emptied(target, writing.repeated(target, batch, place.table))
    if target is not None and net.types:
        at, before = writing.repeated(target, batch, place.table), target
        descriptions.begun(target, net.types, at, lambda: net.cleared or before.count() == 0)
    if target is not None and progress.begins(extent):
        descriptions.cured(target, writing.repeated(target, batch, place.table))
    if target is None or progress.begins(extent) or takes_over(target, fields):
        spark_write.overwrite(place, spark_sql.puts(net.rows, net.names), mark)
        writing.stored_as_wanted(place.open(), batch, place)
        return Applied()
    lacking = _evolve(session, batch, place, target, fields, described)
    current = session.read.format("delta").load(place.uri)
    put = None
    if net.cleared:
        puts = spark_sql.puts(net.rows, net.names)
        spark_write.overwrite(place, puts.select(spark_sql.aligned(net.names, current.schema)), mark)
    elif net.key:
        source = spark_sql.keyed_source(net.rows, current, net.names, net.key, net.kept, net.moves)
        updates = merge.updates(current.columns, net.kept)
        put = spark_write.merge_into(
            session, place, source, mark, merge.same_key(net.key), updates, merge.inserted(net.kept)
        )
    else:
        source = spark_sql.bag_source(net.rows, current, net.names)
        spark_write.merge_into(
            session, place, source, mark, spark_sql.same_row(current.schema, net.names), None, merge.PUTS
        )
    return Applied(put, lacking)


def _evolve(
    session: SparkSession,
    batch: MicroBatch,
    place: Target,
    target: Table,
    fields: pa.Schema,
    described: TableSchema | None,
) -> str | None:
    """Give a table the columns of a batch, where older rows get values by writing.evolve; why its rows may differ."""
    if described is not None:
        return writing.evolve(batch, place, target, described, fields)[0]
    change = evolution(target.schema, fields, place.table)
    if change.widened:
        spark_write.widen(session, place, change.schema, writing.repeated(target, batch, place.table).text)
    (place.open() or target).add_columns(change.added)
    return None


def _alter(session: SparkSession, batch: MicroBatch, table: str, extent: Extent, change: SchemaChange) -> int | None:
    """Follow a schema change in one commit; the table's version then, None where there was nothing to do."""
    place = batch.target(table)
    target = place.open()
    progress = batch.progress(table, target)
    if target is None or progress.has(extent):
        return None
    descriptions.altered(target, change, writing.repeated(target, batch, table))
    if change.kind == DROP:
        return None if batch.keeps_dropped else _clear(session, batch, table, extent)
    shape = reshaping(target.schema, change)
    if shape is None:
        return None
    current = session.read.format("delta").load(place.uri)
    columns = [current[merge.quoted(old)].alias(new) for old, new in zip(shape.names, shape.schema.names, strict=True)]
    spark_write.overwrite(place, current.select(columns), progress.mark(extent))
    return _version(place)


def _copy(session: SparkSession, batch: MicroBatch, old: Stop, new: Stop) -> None:
    """Make one table what another is, once; one that is not there has no rows."""
    source, place = batch.target(old.table), batch.target(new.table)
    progress = batch.progress(new.table, place.open())
    if source.open() is None:
        _clear(session, batch, new.table, new.extent)
    elif not progress.has(new.extent):
        spark_write.overwrite(place, session.read.format("delta").load(source.uri), progress.mark(new.extent))
        written, origin = place.open(), source.open()
        assert written is not None
        assert origin is not None
        descriptions.moved(written, origin, writing.repeated(written, batch, new.table))


def _clear(session: SparkSession, batch: MicroBatch, table: str, extent: Extent) -> int | None:
    """Take all rows from a table, once; its version then."""
    place = batch.target(table)
    target = place.open()
    progress = batch.progress(table, target)
    if target is None or progress.has(extent):
        return None
    spark_write.overwrite(place, session.read.format("delta").load(place.uri).limit(0), progress.mark(extent))
    return _version(place)


def _version(place: Target) -> int | None:
    written = place.open()
    return None if written is None else written.version


def _table_id(place: Target) -> str | None:
    written = place.open()
    return None if written is None else written.id
