"""Looks, in this one place, at the version of the running Spark, and has what only some versions have."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING

import pyspark

from tailrace.errors import TailraceError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)

LOWEST = (4, 0)
# The releases that `make spark-versions` runs on; pyproject.toml allows the same.
TRIED = ((4, 0), (4, 1), (4, 2), (4, 3))
# Delta for Spark is made for one release each. The jar of 4.2 fails on 4.3 at the second micro-batch.
_NEWEST_OF_DELTA = (4, 2)
# Iceberg's runtime is made for one release each as well. That of 4.1 does not load on 4.2: its views implement an
# interface that is a class there.
ICEBERG_RUNTIMES = {
    (4, 0): "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    (4, 1): "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}


def release(version: str) -> tuple[int, int]:
    """The release of a version: (4, 2) of `4.2.1`, and of a platform's `4.2.0.dev0`."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        raise TailraceError(
            f"the version of Spark is {version!r}, which names no release", remedy=f"use Spark {_text(TRIED[-1])}"
        )
    return int(match[1]), int(match[2])


def demand(version: str = pyspark.__version__) -> None:
    """Raises TailraceError for a Spark on which the source cannot work; warns once of one that nobody has tried."""
    running = release(version)
    if running < LOWEST:
        raise TailraceError(
            f"Spark {version} has no streaming data sources in Python, which Tailrace is; {_text(LOWEST)} is the first "
            "that has them",
            remedy=f"use a platform's runtime with Spark {_text(LOWEST)} or newer, or pip install 'tailrace[spark]'",
        )
    if running not in TRIED:
        _warn(version)


def demand_delta(version: str) -> None:
    """Raises TailraceError for a Spark that no release of Delta for Spark runs on; `version` is that of its Java."""
    if release(version) > _NEWEST_OF_DELTA:
        raise TailraceError(
            f"Delta for Spark does not run on Spark {version}",
            where="engine: spark",
            remedy=f"set `engine: deltalake`, which needs no jar, or use Spark {_text(_NEWEST_OF_DELTA)}",
        )


def demand_iceberg(version: str) -> str:
    """The package of Iceberg's runtime for a Spark. Raises TailraceError for one that has none."""
    package = ICEBERG_RUNTIMES.get(release(version))
    if package is None:
        releases = " or ".join(map(_text, ICEBERG_RUNTIMES))
        raise TailraceError(
            f"Iceberg has no runtime for Spark {version}, which MERGE needs",
            where="engine: spark",
            remedy=f"leave `engine` out, and pyiceberg writes the tables without a jar; or use Spark {releases}",
        )
    return package


@cache
def _warn(version: str) -> None:
    tried = ", ".join(map(_text, TRIED))
    log.warning(
        "Tailrace was tried on Spark %s, and never on %s, which runs here: compare what it writes", tried, version
    )


def _text(of: tuple[int, int]) -> str:
    return f"{of[0]}.{of[1]}"


def streaming_class(package: str, name: str) -> str:
    """The full name of a class of Spark's streams, which 4.0 has in one package and later releases in several."""
    inner = "" if release(pyspark.__version__) < (4, 1) else f"{package}."
    return f"org.apache.spark.sql.execution.streaming.{inner}{name}"


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """A schema of Spark as Arrow's, with timestamps in UTC, which 4.0 and 4.1 do unasked."""
    from pyspark.sql.pandas import types

    asked = {"timezone": "UTC"} if "timezone" in signature(types.to_arrow_schema).parameters else {}
    return types.to_arrow_schema(schema, **asked)  # type: ignore[arg-type]


try:
    from pyspark.sql.datasource import DataSource as DataSource
    from pyspark.sql.datasource import DataSourceReader as DataSourceReader
    from pyspark.sql.datasource import DataSourceStreamReader as DataSourceStreamReader
    from pyspark.sql.datasource import InputPartition as InputPartition
except ImportError:
    demand()
    raise

# Whether `latestOffset` gets the query's offset and a limit, and AvailableNow is passed on: from 4.2 on, and with some
# platforms' 4.1. Older ones know neither, see older_reader.py.
try:
    from pyspark.sql.streaming.datasource import ReadLimit as ReadLimit
    from pyspark.sql.streaming.datasource import ReadMaxBytes as ReadMaxBytes
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow

    TELLS_START = True
except ImportError:
    TELLS_START = False

    class ReadLimit:  # type: ignore[no-redef]
        """How much a micro-batch may read."""

    @dataclass
    class ReadMaxBytes(ReadLimit):  # type: ignore[no-redef]
        """So many bytes."""

        max_bytes: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A reader that is told of AvailableNow."""
