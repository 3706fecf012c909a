"""The page of all stored benchmark runs is the one that their files give."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_page_of_results_is_up_to_date(tmp_path: Path) -> None:
    shutil.copytree(BENCHMARKS / "results", tmp_path / "results")
    shutil.copy(BENCHMARKS / "results_page.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "results_page.py"], check=True)
    fresh = (tmp_path / "results" / "README.md").read_text(encoding="utf-8")
    assert (BENCHMARKS / "results" / "README.md").read_text(encoding="utf-8") == fresh, (
        "run: python benchmarks/results_page.py"
    )
