"""The replica sink for `foreachBatch`: a micro-batch of `arrow` rows, merged into one Delta table per source table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import spark_partition_id

from tailrace.sinks.replica import delta_rs, spark_merge
from tailrace.sinks.replica.batch import MicroBatch, TableReport, summed, table_parts
from tailrace.sinks.replica.fold import fold
from tailrace.sinks.replica.target import read_table, row_count
from tailrace.spark import failpoint

__all__ = ["ReplicaSink", "TableReport", "read_table", "row_count"]

_REPORT = "table string, upserted bigint, deleted bigint, version bigint"
_REPORT_SCHEMA = pa.schema(
    [("table", pa.string()), ("upserted", pa.int64()), ("deleted", pa.int64()), ("version", pa.int64())]
)
# A blob is megabytes, and a batch of Arrow bytes ends at 2 GiB.
_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS_A_BATCH = "16"


@dataclass(frozen=True)
class ReplicaSink:
    """Keeps the Delta tables `<root>/<schema>.<table>` equal to their sources, whatever is replayed.

    `query_id` names the pipeline in the tables' commits: one batch of one query is written once, so it must outlive
    restarts and be no other query's. The engine `deltalake` merges in the executors' tasks; `spark` runs MERGE, for
    tables that outgrow one task, and needs Delta for Spark in the session.
    """

    root: str
    query_id: str
    engine: Literal["deltalake", "spark"] = "deltalake"
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def write(self, frame: DataFrame, batch_id: int) -> dict[str, TableReport]:
        """Merges a micro-batch of `arrow`-shaped rows; what was done by table. Raises SinkError."""
        batch = MicroBatch(self.root, self.query_id, batch_id, dict(self.storage_options))
        session = frame.sparkSession
        usual = session.conf.get(_BATCH_SETTING)
        session.conf.set(_BATCH_SETTING, _ROWS_A_BATCH)
        try:
            if self.engine == "spark":
                return summed(spark_merge.write(_by_table(frame), batch))
            rows = _by_table(frame).mapInArrow(_merging(batch), _REPORT).collect()
            return summed(TableReport(**row.asDict()) for row in rows)
        finally:
            session.conf.set(_BATCH_SETTING, str(usual))


def _by_table(frame: DataFrame) -> DataFrame:
    """A table's rows in one task, in order; `sequence` ascends within a split, and a split is a partition."""
    return (
        frame.withColumn("split", spark_partition_id())
        .repartition("table")
        .sortWithinPartitions("table", "split", "sequence")
        .select("table", "bytes")
    )


def _merging(batch: MicroBatch) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in table_parts(batches):
            table = str(part.batches[0].table.id)
            net = fold(part.batches)
            version = delta_rs.apply(batch.target(table), net, batch.mark(table, part.number, part.epoch))
            failpoint.reach("after-table")
            put, deleted = (0, 0) if version is None else (net.upserted, net.deleted)
            yield pa.RecordBatch.from_pylist([asdict(TableReport(table, put, deleted, version))], _REPORT_SCHEMA)

    return merge
