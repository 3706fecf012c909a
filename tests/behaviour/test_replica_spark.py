"""The replica's tests once more with Spark's MERGE, in a process of their own: its session needs Delta's jars."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(1200)
def test_the_spark_engine_passes_the_same_tests() -> None:
    tests = Path(__file__).with_name("test_replica.py")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "--no-header", "-p", "no:cacheprovider", str(tests)],
        env={**os.environ, "TAILRACE_TEST_REPLICA_ENGINE": "spark"},
        capture_output=True,
        text=True,
        check=False,
    )
    if re.search(r"^\d+ skipped in", run.stdout, re.MULTILINE):
        pytest.skip("Delta for Spark's jars cannot be had here:\n" + run.stdout[-2000:])
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
