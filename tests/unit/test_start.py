"""What a start needs: which Spark is installed, and what each of five Python processes does not load again."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires

from packaging.requirements import Requirement

PLANNING = "import tailrace.spark.source, tailrace.spark.reader, tailrace.connectors.postgres.connector"


def test_planning_does_not_load_pandas() -> None:
    """PyArrow loads it at the first value it converts, and the ADBC driver at its import: half a second each time."""
    loaded = "[name for name in ('pandas', 'adbc_driver_postgresql') if name in sys.modules]"
    program = f"{PLANNING}; import sys; print({loaded})"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_an_installation_brings_a_spark_that_delta_runs_on() -> None:
    """`pip install` takes the newest release that is allowed. Delta for Spark fails on 4.3 at the second batch."""
    (spark,) = [one for one in map(Requirement, requires("tailrace") or ()) if one.name == "pyspark"]
    allowed = [version for version in ("4.1.9", "4.2.0", "4.2.9", "4.3.0", "4.4.0") if version in spark.specifier]
    assert allowed == ["4.2.0", "4.2.9"]
