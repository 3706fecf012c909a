"""Runs a function of Arrow columns in tasks, in the way of the running Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

# From the chunks of the given columns to arrays of as many items.
Function = Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]]


def applied(frame: DataFrame, function: Function, columns: tuple[str, ...], ddl: str) -> DataFrame:
    """A frame of one column, which the function makes of these columns; `ddl` is its type.

    Each task calls it once, with an iterator. Spark 4.0 has no `arrow_udf`; its mapInArrow loads pandas in each
    worker, which nothing here needs.
    """
    try:
        from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]
    except ImportError:
        return frame.select(*columns).mapInArrow(_on_batches(function), f"made {ddl}")
    # The annotations of `Function` are not those that arrow_udf would read.
    udf: Any = arrow_udf(function, ddl)
    return frame.select(udf(*columns).alias("made"))


def _on_batches(function: Function) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for made in function(tuple(batch.columns) for batch in batches):
            yield pa.record_batch([made], ["made"])

    return run
