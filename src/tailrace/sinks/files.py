"""Writes Parquet and JSON lines by Spark's own file sink, whose log makes a repeated batch change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_QUOTED = "substring(to_json(array({0})), 2, length(to_json(array({0}))) - 2)"
_JSON_HEADER, _TEXT_HEADER = "cast(h.value AS string)", _QUOTED.format("cast(h.value AS string)")
_HEADERS = (
    "coalesce(concat('{{', array_join(transform(headers, h -> concat("
    + _QUOTED.format("h.key")
    + ", ':', if(h.value IS NULL, 'null', {0}))), ','), '}}'), '{{}}')"
)


def _line(header: str) -> str:
    # Keys and values are JSON texts already: they are set in as they are, not as strings that hold JSON.
    return (
        f"concat('{{\"topic\":', {_QUOTED.format('topic')}, ',\"partition\":', "
        "coalesce(cast(partition AS string), 'null'),"
        " ',\"key\":', coalesce(key, 'null'), ',\"value\":', coalesce(value, 'null'),"
        f" ',\"headers\":', {_HEADERS.format(header)}, '}}')"
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

    A tombstone's value is null; `headers` maps names to texts, or to their JSON if `header.converter` writes it.
    """

    path: str
    has_json_headers: bool = False
    shape: str = "kafka"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer of `frame`, exactly once per batch."""
        line = _line(_JSON_HEADER if self.has_json_headers else _TEXT_HEADER)
        return frame.selectExpr(f"{line} AS value").writeStream.format("text").option("path", self.path)
