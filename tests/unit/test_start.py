"""What a start needs: the Spark an installation brings, and what each of five Python processes does not load again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

from tailrace.connectors import registry
from tailrace.spark import versions

PROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
# What the processes do in which Spark creates a data source and plans its reads: no more than this.
CREATED = """
import pickle
import sys
import pyspark_tailrace_postgres as format
given = {"database.hostname": "h", "database.dbname": "d", "database.user": "u", "topic.prefix": "t", "shape": "arrow"}
source = format.DefaultSource(given)
reader = pickle.loads(pickle.dumps(source.streamReader(source.schema())))
"""


def _loaded(program: str, *names: str) -> list[str]:
    """Those of the modules that a program has loaded."""
    program = f"{program}\nimport sys; print(*(name for name in {names!r} if name in sys.modules))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_planning_does_not_load_pandas() -> None:
    """PyArrow loads it at the first value it converts, and the ADBC driver at its import: half a second each time."""
    connectors = (f"tailrace.connectors.{connector}.connector" for connector in registry.BUILT_IN)
    planning = f"import {', '.join(['tailrace.spark.source', 'tailrace.capture.capture', *connectors])}"
    assert _loaded(planning, "pandas", "adbc_driver_postgresql") == []


def test_a_source_is_created_and_its_reads_are_planned_without_its_connector() -> None:
    others = ("tailrace.capture.capture", "tailrace.connectors.postgres.connector", "tailrace.spark.shapes")
    assert _loaded(CREATED, "pandas", "psycopg", *others) == []


def test_an_installation_brings_no_spark_unless_it_is_asked_for() -> None:
    """A platform has a Spark of its own, over which pip would lay another one."""
    dependencies, extras = PROJECT.split("[project.optional-dependencies]")
    assert "pyspark>" not in dependencies
    assert len(re.findall('"pyspark[>=<]', extras)) == 1


def test_the_spark_that_is_asked_for_is_one_of_those_that_were_tried() -> None:
    """`pip install` takes the newest release that is allowed."""
    (spark,) = re.findall(r'^spark = \["(.*)"\]$', PROJECT, re.MULTILINE)
    candidates = ("3.5.9", "4.0.0", "4.1.4", "4.2.9", "4.3.0", "5.0.0")
    allowed = [version for version in candidates if version in Requirement(spark).specifier]
    assert tuple(map(versions.release, allowed)) == versions.TRIED
