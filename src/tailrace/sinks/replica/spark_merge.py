"""The engine for tables that are too large for one task: tasks fold the changes, then Spark's MERGE applies them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tailrace.errors import DecodeError, SinkError, TableError
from tailrace.model.schema_change import DROP, SchemaChange
from tailrace.sinks.replica import aside, merge, spark_sql
from tailrace.sinks.replica.batch import MicroBatch, TableReport, table_parts
from tailrace.sinks.replica.evolve import add_columns, evolution, takes_over
from tailrace.sinks.replica.fold import fold
from tailrace.sinks.replica.marks import USER_METADATA, Extent, Mark, TableProgress
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.renames import Rename, Stop
from tailrace.sinks.replica.reshape import reshaping
from tailrace.sinks.replica.target import Target, arrow_schema
from tailrace.spark import failpoint
from tailrace.spark.java_errors import summary

_FOLDED = "table string, part int, slice int, header string, rows binary"
_FOLDED_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("part", pa.int32()),
        ("slice", pa.int32()),
        ("header", pa.string()),
        ("rows", pa.binary()),
    ]
)
_SLICE_ROWS = 50_000
_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class Folded:
    """A net effect whose rows are a frame; the fields are those of Net."""

    rows: DataFrame
    names: list[str]
    schema: pa.Schema
    key: list[str]
    kept: list[str]
    moves: bool
    cleared: bool


@dataclass(frozen=True)
class Failed:
    """The first part of a table that cannot be written as it is, and why."""

    part: int
    error: str


class Merging:
    """Merges rows (`table`, `bytes`), each table's in one partition and in order. Close it.

    `failed` are the tables to be set aside, which are written up to the part that failed.
    """

    def __init__(self, ordered: DataFrame, batch: MicroBatch) -> None:
        self.failed: dict[str, Failed] = {}
        self._session, self._batch = ordered.sparkSession, batch
        self._folded = ordered.mapInArrow(_folding(batch), _FOLDED).persist()

    @cached_property
    def _heads(self) -> list[Row]:
        return self._folded.where("slice = 0").drop("rows").orderBy("table", "part").collect()

    def advance(self, done: frozenset[Rename]) -> tuple[list[TableReport], list[Stop]]:
        """Write what comes before a rename that is not done; see in_rounds. Raises SinkError."""
        reports, stops = [], []
        for table, parts in groupby(self._heads, key=lambda head: str(head.table)):
            for part in parts:
                head = json.loads(part.header)
                extent = Extent.from_json(head["extent"])
                rename = Rename(**head["rename"]) if "rename" in head else None
                if rename is not None and rename not in done:
                    stops.append(Stop(table, extent, rename))
                    break
                if rename is None and extent.number < self._end(table):
                    try:
                        reports.append(_write_part(self._folded, self._batch, table, extent, head))
                    except TableError as error:
                        if not self._batch.sets_aside:
                            raise
                        self.failed[table] = Failed(extent.number, str(error))
        return reports, stops

    def _end(self, table: str) -> float:
        """The number of the first part that is not written."""
        return self.failed[table].part if table in self.failed else math.inf

    def move(self, old: Stop, new: Stop) -> None:
        """Copy the rows of a table to that of its new name; see in_rounds. Raises SinkError.

        If the first one is set aside, so is the second: its replica would lack changes.
        """
        batch = self._batch
        if old.table in self.failed:
            aside.put(batch, new.table, Part(new.extent), aside.renamed(old.table))
        elif not aside.carry(batch, old.table, new.table, new.extent):
            with _refusals(batch.target(new.table)):
                _copy(self._session, batch, old, new)
                failpoint.reach("after-copy")
                _clear(self._session, batch, old.table, old.extent)
            return
        self.failed[new.table] = Failed(new.extent.number, aside.renamed(old.table))

    def close(self) -> None:
        """Release the rows."""
        self._folded.unpersist()


def _folding(batch: MicroBatch) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table, some in table_parts(batches, batch.layout):
            progress, has_failed = batch.progress(table, batch.target(table).open()), False
            for part in some:
                if has_failed and part.rename is None:
                    continue
                slices = _slices(part, progress)
                try:
                    first = next(slices)
                except (TableError, DecodeError) as error:
                    if not batch.sets_aside:
                        raise
                    first, has_failed = (json.dumps({"extent": asdict(part.extent), "failed": str(error)}), b""), True
                for number, (header, rows) in enumerate(chain([first], slices)):
                    place = {"table": table, "part": part.extent.number, "slice": number}
                    yield pa.RecordBatch.from_pylist([{**place, "header": header, "rows": rows}], _FOLDED_SCHEMA)

    return run


def _slices(part: Part, progress: TableProgress) -> Iterator[tuple[str | None, bytes]]:
    """A part's rows that the table does not hold, some at a time; before the first ones, what else there is to know."""
    metadata = {
        name: asdict(each) for name, each in (("rename", part.rename), ("change", part.change)) if each is not None
    }
    if metadata:
        yield json.dumps({**metadata, "extent": asdict(part.extent)}), b""
        return
    left = part.left(progress)
    if not left:
        yield json.dumps({"extent": asdict(part.extent)}), b""
        return
    net = fold(left)
    header = {
        "extent": asdict(part.extent.without(progress.place)),
        "names": net.table.row_type.names,
        "schema": base64.b64encode(net.rows.schema.serialize().to_pybytes()).decode(),
        "key": net.key,
        "kept": net.kept,
        "moves": net.moves,
        "cleared": net.cleared,
        "upserted": net.upserted,
        "deleted": net.deleted,
    }
    for start in range(0, max(net.rows.num_rows, 1), _SLICE_ROWS):
        yield json.dumps(header) if start == 0 else None, _ipc(net.rows.slice(start, _SLICE_ROWS))


def _ipc(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


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
            version = _alter(folded.sparkSession, batch, table, extent, SchemaChange.from_json(head["change"]))
            return TableReport(table, 0, 0, version)
    if "schema" not in head:
        return TableReport(table, 0, 0, None)
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(head["schema"])))
    kind: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    chosen = (folded.table == table) & (folded.part == extent.number)
    rows = folded.where(chosen).select("rows").mapInArrow(_unpack, kind)
    net = Folded(rows, head["names"], schema, head["key"], head["kept"], head["moves"], head["cleared"])
    with _refusals(place):
        version = _apply(rows.sparkSession, batch, place, net, extent)
    put, deleted = (0, 0) if version is None else (head["upserted"], head["deleted"])
    return TableReport(table, put, deleted, version)


@contextmanager
def _refusals(place: Target) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError, DeltaError) as error:
        raise _failed(place, error) from error


def _failed(place: Target, error: Exception) -> SinkError:
    text = summary(error)
    remedy = f"check {place.uri}, and that the session has Delta for Spark; then start again"
    if "INVALID_CHARACTERS_IN_COLUMN_NAMES" in text:
        remedy = "use the engine deltalake, which writes such names"
    return SinkError(f"the replica could not be written: {text}", where=place.table, remedy=remedy)


def _apply(session: SparkSession, batch: MicroBatch, place: Target, net: Folded, extent: Extent) -> int | None:
    target = place.open()
    progress = batch.progress(place.table, target)
    if progress.has(extent):
        return None
    progress.refuse_overlap(extent)
    mark, fields = progress.mark(extent), pa.schema([net.schema.field(name) for name in net.names])
    if target is None or progress.begins(extent) or takes_over(target, fields):
        _overwrite(place, spark_sql.puts(net.rows, net.names), mark)
    else:
        change = evolution(arrow_schema(target), fields, place.table)
        if change.widened:
            _widen(session, place, change.schema)
        add_columns(place.open() or target, change)
        here = session.read.format("delta").load(place.uri)
        if net.cleared:
            puts = spark_sql.puts(net.rows, net.names)
            _overwrite(place, puts.select(spark_sql.aligned(net.names, here.schema)), mark)
        elif net.key:
            source = spark_sql.keyed_source(net.rows, here, net.names, net.key, net.kept, net.moves)
            _merge(session, place, source, mark, merge.same_key(net.key), merge.updates(here.columns, net.kept))
        else:
            source = spark_sql.bag_source(net.rows, here, net.names)
            _merge(session, place, source, mark, spark_sql.same_row(here.schema, net.names), None)
    return _version(place)


def _alter(session: SparkSession, batch: MicroBatch, table: str, extent: Extent, change: SchemaChange) -> int | None:
    """See delta_rs._alter."""
    place = batch.target(table)
    target = place.open()
    progress = batch.progress(table, target)
    if target is None or progress.has(extent):
        return None
    if change.kind == DROP:
        return None if batch.keeps_dropped else _clear(session, batch, table, extent)
    shape = reshaping(arrow_schema(target), change)
    if shape is None:
        return None
    here = session.read.format("delta").load(place.uri)
    columns = [here[merge.quoted(old)].alias(new) for old, new in zip(shape.names, shape.schema.names, strict=True)]
    _overwrite(place, here.select(columns), progress.mark(extent))
    return _version(place)


def _copy(session: SparkSession, batch: MicroBatch, old: Stop, new: Stop) -> None:
    """See delta_rs.copy."""
    source, place = batch.target(old.table), batch.target(new.table)
    progress = batch.progress(new.table, place.open())
    if source.open() is not None and not progress.has(new.extent):
        _overwrite(place, session.read.format("delta").load(source.uri), progress.mark(new.extent))


def _clear(session: SparkSession, batch: MicroBatch, table: str, extent: Extent) -> int | None:
    """See delta_rs.clear."""
    place = batch.target(table)
    target = place.open()
    progress = batch.progress(table, target)
    if target is None or progress.has(extent):
        return None
    _overwrite(place, session.read.format("delta").load(place.uri).limit(0), progress.mark(extent))
    return _version(place)


def _version(place: Target) -> int | None:
    written = place.open()
    return None if written is None else int(written.version())


def _overwrite(place: Target, rows: DataFrame, mark: Mark) -> None:
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer = writer.option("txnAppId", mark.app).option("txnVersion", str(mark.version))
    writer.option(USER_METADATA, mark.text).save(place.uri)


def _widen(session: SparkSession, place: Target, schema: pa.Schema) -> None:
    kind: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    here = session.read.format("delta").load(place.uri)
    wider = here.select([here[merge.quoted(name)].cast(kind[name].dataType).alias(name) for name in here.columns])
    wider.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(place.uri)


def _merge(
    session: SparkSession, place: Target, source: DataFrame, mark: Mark, condition: str, updates: dict[str, str] | None
) -> None:
    """One MERGE; without updates, matched rows are deleted ones."""
    source.createOrReplaceTempView("tailrace_net")
    columns = merge.inserts([name for name in source.columns if not name.startswith("_tailrace_")])
    clauses = [f"MERGE INTO delta.{merge.quoted(place.uri)} t USING tailrace_net s ON {condition}"]
    clauses.append(f"WHEN MATCHED AND {merge.DELETES} THEN DELETE")
    if updates is not None:
        clauses.append("WHEN MATCHED THEN UPDATE SET " + ", ".join(f"{name} = {to}" for name, to in updates.items()))
    clauses.append(
        f"WHEN NOT MATCHED AND {merge.PUTS} THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"
    )
    settings = {_APP: mark.app, _VERSION: str(mark.version), _METADATA: mark.text}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        session.sql("\n".join(clauses))
    finally:
        for name in settings:
            session.conf.unset(name)
