"""Starts a query with its trigger, and ends it where AvailableNow should on a Spark that cannot: 4.0 and 4.1.

There AvailableNow is one micro-batch for a source in Python, which may read neither a large snapshot nor the log behind
it. So the query runs by time, its reader goes up to where the log ended at first, and it is stopped when that is read.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from tailrace.spark.source import PACE_OPTION
from tailrace.spark.versions import TELLS_START

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from tailrace.spark.older_reader import Pace

log = logging.getLogger(__name__)

_AVAILABLE_NOW = "availableNow"


def options(trigger: dict[str, Any]) -> dict[str, Pace]:
    """The source's option by which its reader knows how a query of that trigger goes on; see Pace."""
    if _AVAILABLE_NOW in trigger:
        return {PACE_OPTION: "bounded"}
    return {PACE_OPTION: "endless"} if "processingTime" in trigger else {}


def start(writer: DataStreamWriter, trigger: dict[str, Any]) -> StreamingQuery:
    """Start a query whose reader knows its pace."""
    if TELLS_START or _AVAILABLE_NOW not in trigger:
        return writer.trigger(**trigger).start()
    query = writer.trigger(processingTime="0 seconds").start()
    threading.Thread(target=_end, args=[query], name="end of the log", daemon=True).start()
    return query


def _end(query: StreamingQuery) -> None:
    """Stop a query when its reader has nothing more to read."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        query.processAllAvailable()
        query.stop()
    except (PySparkException, Py4JError, ConnectionError) as error:  # awaitTermination raises it to the run as well
        log.debug("the query ended before all was read: %s", error)
