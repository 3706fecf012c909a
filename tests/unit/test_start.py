"""What a pipeline's start does not do: each of its five Python processes would do it again."""

from __future__ import annotations

import subprocess
import sys

PLANNING = "import tailrace.spark.source, tailrace.spark.reader, tailrace.connectors.postgres.connector"


def test_planning_does_not_load_pandas() -> None:
    """PyArrow loads it at the first value it converts, and the ADBC driver at its import: half a second each time."""
    loaded = "[name for name in ('pandas', 'adbc_driver_postgresql') if name in sys.modules]"
    program = f"{PLANNING}; import sys; print({loaded})"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
