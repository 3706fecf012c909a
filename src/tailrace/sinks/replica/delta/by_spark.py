"""Writes a replica's Delta tables by Spark: rows are replaced, types widened, or a net effect is merged."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tailrace.model.table import TableSchema
from tailrace.override import override
from tailrace.sinks.replica import merge, spark_sql, writing
from tailrace.sinks.replica.delta.table import USER_METADATA
from tailrace.sinks.replica.evolve import evolution
from tailrace.sinks.replica.reshape import Reshaping
from tailrace.sinks.replica.spark_tables import Folded, SparkMerge, SparkTables
from tailrace.sinks.replica.table import Mark, Table
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.writing import Work

_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
# Conditions of Delta's errors: about what a table holds, and of another program that writes it meanwhile.
_OF_THE_TABLE, _CONFLICT = "DELTA_", "DELTA_CONCURRENT"


@dataclass(frozen=True)
class DeltaMerge(SparkMerge):
    """Implements SparkMerge."""

    place: Target
    current: DataFrame

    @property
    @override
    def rows(self) -> DataFrame:
        return self.current

    @override
    def run(self, source: DataFrame, mark: Mark, condition: str, updates: dict[str, str] | None, inserted: str) -> int:
        settings = {_APP: str(mark.app), _VERSION: str(mark.version), _METADATA: mark.text}
        table = f"delta.{merge.quoted(self.place.uri)}"
        counts = spark_sql.run_merge(table, source, condition, updates, inserted, settings)[0]
        return int(counts["num_updated_rows"]) + int(counts["num_inserted_rows"])


@dataclass(frozen=True)
class DeltaBySpark(SparkTables):
    """Implements SparkTables."""

    session: SparkSession

    @override
    def overwrite(self, work: Work, net: Folded, mark: Mark, *, reshapes: bool) -> None:
        puts = spark_sql.puts(net.rows, net.names)
        if not reshapes:
            puts = puts.select(spark_sql.aligned(net.names, self._rows(work.place).schema))
        self._overwrite(work.place, puts, mark)
        writing.stored_as_wanted(work.place.open(), work.batch, work.place)

    @override
    def evolve(self, work: Work, fields: pa.Schema, described: TableSchema | None) -> str | None:
        place, target = work.place, work.there
        if described is not None:
            return writing.evolve(work.batch, place, target, described, fields)[0]
        change = evolution(target.schema, fields, place.table)
        if change.widened:
            self._widen(place, change.schema, writing.repeated(target, work.batch, place.table).text)
        (place.open() or target).add_columns(change.added)
        return None

    @override
    def merge(self, place: Target, target: Table) -> SparkMerge:
        return DeltaMerge(place, self._rows(place))

    @override
    def reshape(self, place: Target, target: Table, shape: Reshaping, mark: Mark) -> None:
        current = self._rows(place)
        pairs = zip(shape.names, shape.schema.names, strict=True)
        self._overwrite(place, current.select([current[merge.quoted(old)].alias(new) for old, new in pairs]), mark)

    @override
    def copy(self, work: Work, source: Target, mark: Mark) -> None:
        self._overwrite(work.place, self._rows(source), mark)

    @override
    def clear(self, place: Target, target: Table, mark: Mark) -> None:
        self._overwrite(place, self._rows(place).limit(0), mark)

    @override
    def is_conflict(self, error: Exception) -> bool:
        return _condition(error).startswith(_CONFLICT)

    @override
    def is_away(self, error: Exception) -> bool:
        return False

    @override
    def is_of_the_table(self, error: Exception) -> bool:
        return isinstance(error, AnalysisException) or _condition(error).startswith(_OF_THE_TABLE)

    @override
    def remedy(self, error: Exception) -> str | None:
        if "INVALID_CHARACTERS_IN_COLUMN_NAMES" in str(error):
            return "use the engine deltalake, which writes such names"
        return None

    def _rows(self, place: Target) -> DataFrame:
        return self.session.read.format("delta").load(place.uri)

    def _overwrite(self, place: Target, rows: DataFrame, mark: Mark) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer = writer.option("txnAppId", str(mark.app)).option("txnVersion", str(mark.version))
        writer.option(USER_METADATA, mark.text).save(place.uri)

    def _widen(self, place: Target, schema: pa.Schema, text: str) -> None:
        kind: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        rows = self._rows(place)
        wider = rows.select([rows[merge.quoted(name)].cast(kind[name].dataType).alias(name) for name in rows.columns])
        writer = wider.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.option(USER_METADATA, text).save(place.uri)


def _condition(error: Exception) -> str:
    return (error.getCondition() if isinstance(error, PySparkException) else None) or ""
