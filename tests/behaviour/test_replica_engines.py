"""The replica's tests once more with Spark's MERGE, Iceberg tables and a database's, in processes of their own.

A session with Spark's MERGE needs Delta's jars, or Iceberg's on a Spark that Iceberg has a runtime for. `make long`
runs those about rows that move, `make big` all of them; those with the other formats are in `make long`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.behaviour.test_spark_versions import python

MERGES = "changed_key or renamed_table"


SPARK = ("test_replica.py", "test_replica_ddl.py", "test_rewound.py", "test_odd_names.py")
# The release of Spark that Iceberg's newest runtime is made for.
WITH_RUNTIME = "4.1"
# Which leaves sockets to the garbage collector.
QUIET = ["-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning"]
ICEBERG = (*SPARK, "test_incomplete.py", "test_hard_keys.py")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("engine", "chosen", "files"),
    [
        pytest.param("spark", MERGES, SPARK, marks=pytest.mark.long, id="spark-merges"),
        pytest.param("spark", "", SPARK, marks=pytest.mark.big, id="spark-all"),
        pytest.param("iceberg", "", ICEBERG, marks=pytest.mark.long, id="iceberg"),
        pytest.param("iceberg-spark", MERGES, SPARK, marks=pytest.mark.long, id="iceberg-spark-merges"),
        pytest.param("iceberg-spark", "", SPARK, marks=pytest.mark.big, id="iceberg-spark-all"),
        pytest.param("postgres", "", ("test_replica.py",), marks=pytest.mark.long, id="postgres"),
    ],
)
def test_the_engine_passes_the_same_tests(engine: str, chosen: str, files: tuple[str, ...]) -> None:
    tests = [str(Path(__file__).with_name(name)) for name in files]
    options = ["-q", "-rs", "--no-header", "-p", "no:cacheprovider", "-k", chosen]
    program, quiet = (python(WITH_RUNTIME), QUIET) if engine == "iceberg-spark" else (sys.executable, [])
    run = subprocess.run(
        [program, "-m", "pytest", *options, *quiet, *tests],
        env={**os.environ, "TAILRACE_TEST_REPLICA_ENGINE": engine},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert "spark" not in engine or re.search(r"^\d+ passed", run.stdout, re.MULTILINE), "a skipped test has not run"
