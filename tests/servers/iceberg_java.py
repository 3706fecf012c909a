"""Reads Iceberg tables by Iceberg's own Java code, as Spark, Trino and Flink do: no pyiceberg and no Spark in it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from py4j.java_collections import JavaList, JavaMap
from py4j.java_gateway import JavaGateway, JavaObject

from tailrace.errors import TailraceError
from tailrace.testing.jars import resolve_jars
from tests.servers.java_process import java_process, of_pyspark

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
# Its reader registers ORC files as well; Hadoop's client comes with PySpark.
_READER = tuple(f"org.apache.iceberg:iceberg-{part}:1.11.0" for part in ("data", "parquet", "orc"))
_HADOOP = ("hadoop-client-*.jar", "slf4j-api-*.jar", "jcl-over-slf4j-*.jar")
# Columns of Iceberg's own.
_ADDED = ("_pos", "_deleted")
# Of java.time, by the names of their classes; their texts are those of ISO 8601.
_TIMES = {
    "LocalDate": datetime.date.fromisoformat,
    "LocalDateTime": datetime.datetime.fromisoformat,
    "OffsetDateTime": lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")),
}


@cache
def runtime() -> Path:
    """The jar of Iceberg's runtime for Spark; downloaded once, 50 MB. Raises TailraceError."""
    (jar,) = resolve_jars([RUNTIME], transitive=False)
    return jar


@cache
def why_not_here() -> str | None:
    """Why Iceberg's Java code cannot be had on this machine; None once it is in the cache."""
    try:
        runtime()
        resolve_jars(_READER)
    except TailraceError as error:
        return str(error)
    return None


class JavaReader:
    """Iceberg's reader in a Java process."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._java = gateway.jvm

    def rows(self, metadata: str) -> list[dict[str, Any]]:
        """The rows of the table whose newest metadata file this is."""
        iceberg = self._java.org.apache.iceberg
        files = iceberg.hadoop.HadoopFileIO(self._java.org.apache.hadoop.conf.Configuration())
        table = iceberg.BaseTable(iceberg.StaticTableOperations(metadata, files), "table")
        records = iceberg.data.IcebergGenerics.read(table).build()
        try:
            return [_fields(record) for record in _iterated(records)]
        finally:
            records.close()


@contextmanager
def java_reader() -> Iterator[JavaReader]:
    """A reader, in a process that ends with the block."""
    with java_process([*resolve_jars(_READER), *of_pyspark(*_HADOOP)]) as gateway:
        yield JavaReader(gateway)


def _iterated(values: JavaObject) -> Iterator[JavaObject]:
    iterator = values.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _fields(record: JavaObject) -> dict[str, Any]:
    fields = record.struct().fields()
    # A reader that applies deletes adds the position of a row.
    return {field.name(): _value(record.get(place)) for place, field in enumerate(fields) if field.name() not in _ADDED}


def _value(value: Any) -> Any:
    if isinstance(value, JavaList):
        return [_value(each) for each in value]
    if isinstance(value, JavaMap):
        return {key: _value(each) for key, each in value.items()}
    if not isinstance(value, JavaObject):
        return Decimal(value) if isinstance(value, Decimal) else value
    kind = value.getClass().getSimpleName()
    if kind in _TIMES:
        return _TIMES[kind](value.toString())  # type: ignore[no-untyped-call]
    if "ByteBuffer" in kind:
        return bytes(value.array())
    return _fields(value)
