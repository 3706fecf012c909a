"""Writes a replica's Delta table by Spark: its rows are replaced, its types widened, or a net effect is merged."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tailrace.sinks.replica import merge
from tailrace.sinks.replica.delta.table import USER_METADATA
from tailrace.sinks.replica.table import Mark
from tailrace.sinks.replica.target import Target

_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def overwrite(place: Target, rows: DataFrame, mark: Mark) -> None:
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer = writer.option("txnAppId", str(mark.app)).option("txnVersion", str(mark.version))
    writer.option(USER_METADATA, mark.text).save(place.uri)


def widen(session: SparkSession, place: Target, schema: pa.Schema, text: str) -> None:
    kind: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    rows = session.read.format("delta").load(place.uri)
    wider = rows.select([rows[merge.quoted(name)].cast(kind[name].dataType).alias(name) for name in rows.columns])
    writer = wider.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.option(USER_METADATA, text).save(place.uri)


def merge_into(
    session: SparkSession,
    place: Target,
    source: DataFrame,
    mark: Mark,
    condition: str,
    updates: dict[str, str] | None,
    inserted: str,
) -> int:
    """One MERGE; without updates, matched rows are deleted ones. How many rows were updated or inserted."""
    source.createOrReplaceTempView("tailrace_net")
    columns = merge.inserts([name for name in source.columns if not name.startswith("_tailrace_")])
    clauses = [f"MERGE INTO delta.{merge.quoted(place.uri)} t USING tailrace_net s ON {condition}"]
    clauses.append(f"WHEN MATCHED AND {merge.DELETES} THEN DELETE")
    if updates is not None:
        clauses.append("WHEN MATCHED THEN UPDATE SET " + ", ".join(f"{name} = {to}" for name, to in updates.items()))
    clauses.append(
        f"WHEN NOT MATCHED AND {inserted} THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"
    )
    settings = {_APP: str(mark.app), _VERSION: str(mark.version), _METADATA: mark.text}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        counts = session.sql("\n".join(clauses)).collect()[0]
    finally:
        for name in settings:
            session.conf.unset(name)
    return int(counts["num_updated_rows"]) + int(counts["num_inserted_rows"])
