"""What a start needs: the Spark an installation brings, and what each of five Python processes does not load again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

from tailrace.spark import versions

PROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
PLANNING = "import tailrace.spark.source, tailrace.spark.reader, tailrace.connectors.postgres.connector"


def test_planning_does_not_load_pandas() -> None:
    """PyArrow loads it at the first value it converts, and the ADBC driver at its import: half a second each time."""
    loaded = "[name for name in ('pandas', 'adbc_driver_postgresql') if name in sys.modules]"
    program = f"{PLANNING}; import sys; print({loaded})"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


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
