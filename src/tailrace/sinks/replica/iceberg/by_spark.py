"""Merges net effects into Iceberg tables by Spark's MERGE; all else is written by pyiceberg, as few rows move then.

The rows that replace a table's come from one part of a micro-batch, so the driver can write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.table.snapshots import Snapshot
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tailrace.model.table import TableSchema
from tailrace.override import override
from tailrace.sinks.replica import spark_sql, writing
from tailrace.sinks.replica.evolve import aligned
from tailrace.sinks.replica.iceberg import staging
from tailrace.sinks.replica.iceberg.commits import MARK, summary_of
from tailrace.sinks.replica.iceberg.errors import translated
from tailrace.sinks.replica.iceberg.spark_catalog import in_spark
from tailrace.sinks.replica.iceberg.table import Iceberg
from tailrace.sinks.replica.latest import puts
from tailrace.sinks.replica.reshape import Reshaping
from tailrace.sinks.replica.spark_fold import unpacked
from tailrace.sinks.replica.spark_tables import Folded, SparkMerge, SparkTables
from tailrace.sinks.replica.streams import streamed
from tailrace.sinks.replica.table import Mark, Table
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.writing import Work
from tailrace.spark import failpoint
from tailrace.spark.java_errors import with_causes

_SUMMARY = "spark.sql.iceberg.snapshot-property."
_CONFLICT = re.compile(r"\.(ValidationException|CommitFailedException|CommitStateUnknownException)\b")
# Of Iceberg's clients of catalogs and storages, of JDBC, and of Hive's.
_AWAY = re.compile(
    r"\.(RESTException|ServiceUnavailableException|ServiceFailureException|UncheckedSQLException|UncheckedIOException|"
    r"SdkClientException|TTransportException|ConnectException|UnknownHostException)\b"
)


@dataclass(frozen=True)
class IcebergMerge(SparkMerge):
    """Implements SparkMerge: Spark writes a branch, which then becomes the table."""

    session: SparkSession
    table: Iceberg
    name: str
    before: Snapshot

    @property
    @override
    def rows(self) -> DataFrame:
        return self.session.table(self.name)

    @override
    def run(self, source: DataFrame, mark: Mark, condition: str, updates: dict[str, str] | None, inserted: str) -> int:
        spark_sql.run_merge(self.name, source, condition, updates, inserted, {_SUMMARY + MARK: mark.text})
        failpoint.reach("after-merge")
        return self._published(mark)

    @translated
    def _published(self, mark: Mark) -> int:
        """A row that is changed is a deletion and a row that is added."""
        made = staging.publish(self.table.table, self.before, mark)
        return int(summary_of(made).get("added-records", 0))


@dataclass(frozen=True)
class IcebergBySpark(SparkTables):
    """Implements SparkTables."""

    session: SparkSession

    @override
    def overwrite(self, work: Work, net: Folded, mark: Mark, *, reshapes: bool) -> None:
        schema = net.fields if reshapes else work.there.schema

        def rows() -> Iterator[pa.RecordBatch]:
            for row in net.slices.toLocalIterator():
                some = puts(unpacked(row[0]), net.names)
                yield from (some if reshapes else aligned(some, schema)).to_batches()

        work.overwrite(pa.RecordBatchReader.from_batches(schema, rows()), mark, reshapes=reshapes)

    @override
    def evolve(self, work: Work, fields: pa.Schema, described: TableSchema | None) -> str | None:
        assert described is not None
        return writing.evolve(work.batch, work.place, work.there, described, fields)[0]

    @override
    def merge(self, place: Target, target: Table) -> SparkMerge:
        assert isinstance(target, Iceberg)
        before = _begun(target)
        return IcebergMerge(self.session, target, in_spark(place.uri, place.name, staging.BRANCH), before)

    @override
    def reshape(self, place: Target, target: Table, shape: Reshaping, mark: Mark) -> None:
        target.reshape(shape, mark)

    @override
    def copy(self, work: Work, source: Target, mark: Mark) -> None:
        original = source.open()
        assert original is not None
        work.overwrite(streamed(original, original.schema), mark, reshapes=True)

    @override
    def clear(self, place: Target, target: Table, mark: Mark) -> None:
        target.overwrite(target.schema.empty_table(), mark, reshapes=False)

    @override
    def is_conflict(self, error: Exception) -> bool:
        return _CONFLICT.search(with_causes(error)) is not None

    @override
    def is_away(self, error: Exception) -> bool:
        return _AWAY.search(with_causes(error)) is not None

    @override
    def is_of_the_table(self, error: Exception) -> bool:
        return isinstance(error, AnalysisException)

    @override
    def remedy(self, error: Exception) -> str | None:
        return None


@translated
def _begun(target: Iceberg) -> Snapshot:
    return staging.begin(target.table)
