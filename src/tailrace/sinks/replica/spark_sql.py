"""Spark's MERGE of net effects, whose source is a DataFrame, joined with what it needs from the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, StructType

from tailrace.sinks.replica.fold import COUNT, FROM, KEEP
from tailrace.sinks.replica.merge import DELETES, inserts, quoted


def puts(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows to be there when the target was empty, each as often as it is counted."""
    some = rows.where(F.col(COUNT) > 0)
    return some.withColumn(COUNT, F.explode(F.sequence(F.lit(1), F.col(COUNT)))).select(_columns(names))


def aligned(names: Sequence[str], schema: StructType) -> list[Column]:
    """The target's columns from the source's, null where the source has none."""
    return [
        (F.col(quoted(field.name)) if field.name in names else F.lit(None)).cast(field.dataType).alias(field.name)
        for field in schema
    ]


def keyed_source(
    rows: DataFrame, target: DataFrame, names: Sequence[str], key: Sequence[str], kept: Sequence[str], moves: bool
) -> DataFrame:
    """Puts and deletions by key; a row under a new key gets the values it keeps from the target's old row."""
    keeps = [KEEP + name for name in kept]
    if moves:
        old = target.select([F.col(quoted(name)).alias(f"_tailrace_old_{name}") for name in {*key, *kept}])
        same = [rows[quoted(FROM + name)] == old[quoted(f"_tailrace_old_{name}")] for name in key]
        moved = F.col(quoted(FROM + key[0])).isNotNull()
        rows = rows.join(old, same, "left")
        for name in kept:
            taken = moved & F.col(quoted(KEEP + name))
            rows = rows.withColumn(name, F.when(taken, F.col(quoted(f"_tailrace_old_{name}"))).otherwise(_column(name)))
        # A value that the target does not have is still missing: MERGE leaves the row out, which is noticed.
        met = moved & F.col(quoted(f"_tailrace_old_{key[0]}")).isNotNull()
        rows = rows.withColumns({name: F.col(quoted(name)) & ~met for name in keeps})
    return rows.select(*aligned(names, target.schema), COUNT, *_columns(keeps))


def bag_source(rows: DataFrame, target: DataFrame, names: Sequence[str]) -> DataFrame:
    """Images to be deleted (all equal rows are), and the rows to be put: the equal ones that stay, and the new ones."""
    gone = rows.where(F.col(COUNT) < 0)
    deletions = gone.select(*aligned(names, target.schema), COUNT)
    images = gone.select(
        *[_comparable(_column(name), target.schema[name].dataType).alias(f"_tailrace_is_{name}") for name in names],
        (-F.col(COUNT)).alias("_tailrace_taken"),
    )
    equal = [
        _comparable(target[quoted(name)], target.schema[name].dataType).eqNullSafe(
            images[quoted(f"_tailrace_is_{name}")]
        )
        for name in names
    ]
    alike = Window.partitionBy(*[F.col(quoted(f"_tailrace_is_{name}")) for name in names]).orderBy(F.lit(1))
    staying = target.join(images, equal).withColumn("_tailrace_rank", F.row_number().over(alike))
    staying = staying.where("_tailrace_rank > _tailrace_taken").select(_columns(target.columns))
    new = puts(rows, names).select(aligned(names, target.schema))
    added = staying.unionAll(new).withColumn(COUNT, F.lit(1).cast("bigint"))
    return deletions.unionAll(added)


def same_row(schema: StructType, names: Sequence[str]) -> str:
    """The condition that a target's row is one of those to be deleted."""
    equal = [
        f"{_sql(f't.{quoted(n)}', schema[n].dataType)} <=> {_sql(f's.{quoted(n)}', schema[n].dataType)}" for n in names
    ]
    return " AND ".join([DELETES, *equal])


def run_merge(
    table: str,
    source: DataFrame,
    condition: str,
    updates: dict[str, str] | None,
    inserted: str,
    settings: Mapping[str, str],
) -> list[Row]:
    """Run MERGE into a table, with settings of the session that hold for this commit alone; what it returns.

    Without updates, matched rows are deleted ones.
    """
    session = source.sparkSession
    source.createOrReplaceTempView("tailrace_net")
    columns = inserts([name for name in source.columns if not name.startswith("_tailrace_")])
    clauses = [f"MERGE INTO {table} t USING tailrace_net s ON {condition}", f"WHEN MATCHED AND {DELETES} THEN DELETE"]
    if updates is not None:
        clauses.append("WHEN MATCHED THEN UPDATE SET " + ", ".join(f"{name} = {to}" for name, to in updates.items()))
    clauses.append(
        f"WHEN NOT MATCHED AND {inserted} THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"
    )
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        return session.sql("\n".join(clauses)).collect()
    finally:
        for name in settings:
            session.conf.unset(name)


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _columns(names: Sequence[str]) -> list[Column]:
    return [_column(name) for name in names]


def _comparable(column: Column, kind: DataType) -> Column:
    """Spark compares no maps: their entries then, which keep their order."""
    return F.map_entries(column) if isinstance(kind, MapType) else column


def _sql(text: str, kind: DataType) -> str:
    return f"map_entries({text})" if isinstance(kind, MapType) else text
