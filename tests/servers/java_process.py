"""A Java process whose classes Python calls, by the library that PySpark brings for that."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.java_gateway import JavaGateway

from tailrace.testing.jars import java


def of_pyspark(*patterns: str) -> list[Path]:
    """The jars of PySpark that match."""
    jars = Path(pyspark.__file__).parent / "jars"
    return [path for pattern in patterns for path in sorted(jars.glob(pattern))]


@contextmanager
def java_process(jars: Iterable[Path]) -> Iterator[JavaGateway]:
    """A small Java process with these jars, which ends with the block."""
    (py4j,) = of_pyspark("py4j-*.jar")
    gateway = JavaGateway.launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join(map(str, [*jars, py4j])),
        javaopts=["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        java_path=java(),
        die_on_exit=True,
    )
    try:
        yield gateway
    finally:
        gateway.shutdown()
