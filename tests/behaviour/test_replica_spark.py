"""The replica's tests once more with Spark's MERGE, in a process of their own: its session needs Delta's jars.

`make long` runs those about rows that move, `make big` all of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

MERGES = "changed_key or renamed_table"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "chosen",
    [pytest.param(MERGES, marks=pytest.mark.long, id="merges"), pytest.param("", marks=pytest.mark.big, id="all")],
)
def test_the_spark_engine_passes_the_same_tests(chosen: str) -> None:
    tests = [
        str(Path(__file__).with_name(name))
        for name in ("test_replica.py", "test_replica_ddl.py", "test_rewound.py", "test_odd_names.py")
    ]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rs",
            "--no-header",
            "-p",
            "no:cacheprovider",
            "-k",
            chosen,
            *tests,
        ],
        env={**os.environ, "TAILRACE_TEST_REPLICA_ENGINE": "spark"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert re.search(r"^\d+ passed", run.stdout, re.MULTILINE), "a skipped test has not run"
