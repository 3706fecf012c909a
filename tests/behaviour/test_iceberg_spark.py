"""Spark SQL, by Iceberg's runtime for Spark 4.1, reads the Iceberg tables of a replica: now, and as of a snapshot."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tailrace.sinks.replica.form import FormatVersion
from tests.behaviour.test_spark_versions import python
from tests.servers.iceberg_java import runtime, why_not_here
from tests.unit.sinks.iceberg.lake import BAG, ORDERS, Lake, order, write_newer_metadata

pytestmark = pytest.mark.long
RELEASE = "4.1"
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
jar, location, *snapshots = sys.argv[1:]
session = SparkSession.builder.master("local[1]").config("spark.jars", jar).config("spark.ui.enabled", False)
spark = session.getOrCreate()
reader = spark.read.format("iceberg")
older = (spark.read.format("iceberg").option("versionAsOf", each) for each in snapshots)
frames = [each.load(location) for each in (reader, *older)]
rows = [sorted([row.asDict() for row in frame.collect()], key=repr) for frame in frames]
print("rows: " + json.dumps([*rows, frames[0].count()]))
"""


def by_spark(location: str, *snapshots: int) -> list[Any]:
    """The rows as they are now and as of some snapshots, in some order; and how many Spark counts by its own way."""
    command = [python(RELEASE), "-c", PROGRAM, str(runtime()), location, *map(str, snapshots)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("rows: ")] or [run.stderr[-3000:]]
    found: list[Any] = json.loads(line.removeprefix("rows: "))
    return found


@pytest.mark.parametrize(("is_bag", "version"), [(False, 2), (True, 2), (False, 3)], ids=["key", "bag", "vectors"])
def test_spark_reads_what_the_replica_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_bag: bool, version: FormatVersion
) -> None:
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    write_newer_metadata(monkeypatch)
    lake = Lake(tmp_path, version)
    schema = BAG if is_bag else ORDERS
    lake.write(*(("c", None, order(number, f"note {number}")) for number in range(10)), schema=schema)
    first, before = lake.table.current_snapshot(), lake.rows()
    lake.write(("u", order(1, "note 1"), order(1, None)), ("d", order(2, "note 2"), None), schema=schema)
    lake.write(("u", order(3, "note 3"), order(30, "moved")), ("c", None, order(2, "again")), schema=schema)
    assert first is not None
    now, then, count = by_spark(lake.table.metadata_location, first.snapshot_id)
    assert now == sorted(lake.rows(), key=repr)
    assert then == sorted(before, key=repr)
    assert count == len(now)
