"""Writes Parquet and JSON lines by Spark's own file sink, whose log makes a repeated batch change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_QUOTED = "substring(to_json(array({0})), 2, length(to_json(array({0}))) - 2)"
_HEADERS = (
    "coalesce(concat('{', array_join(transform(headers, h -> concat("
    + _QUOTED.format("h.key")
    + ", ':', coalesce(cast(h.value AS string), 'null'))), ','), '}'), '{}')"
)
# Keys and values are JSON texts already: they are set in as they are, not as strings that hold JSON.
_LINE = (
    f"concat('{{\"topic\":', {_QUOTED.format('topic')}, ',\"partition\":', coalesce(cast(partition AS string), 'null'),"
    f" ',\"key\":', coalesce(key, 'null'), ',\"value\":', coalesce(value, 'null'), ',\"headers\":', {_HEADERS}, '}}')"
)


@dataclass(frozen=True)
class ParquetSink:
    """Parquet files below `path`, a folder `topic=<topic>` each, with the columns of the `event` shape."""

    path: str
    shape: str = "event"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer of `frame`, exactly once per batch."""
        return frame.writeStream.format("parquet").option("path", self.path).partitionBy("topic")


@dataclass(frozen=True)
class JsonLinesSink:
    """Text files below `path`, a record a line: `{"topic","partition","key","value","headers"}`.

    A tombstone's value is null; `headers` maps names to their JSON.
    """

    path: str
    shape: str = "kafka"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer of `frame`, exactly once per batch."""
        return frame.selectExpr(f"{_LINE} AS value").writeStream.format("text").option("path", self.path)
