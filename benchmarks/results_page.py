"""Writes the table of all stored comparisons into benchmarks/results/README.md: `python benchmarks/results_page.py`."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
_INTRO = """\
# Results

A file for each run of `make bench-compare`, named by its date. It contains the machine and the versions
(`environment`), the sizes, every single measurement, and the `ratios`.
[The benchmarks](../README.md#everything-beside-the-others) describe each ratio and its goal.
`benchmarks/results_page.py` writes this page from the files; do not edit it.

Runs are named by their files. The second column, the rows of the log that the engine read a second, shows how fast
the machine was.

"""


def page(folder: Path) -> str:
    """The page, with a line for each file of the folder, by the time of its run."""
    reports = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    ratios = list(dict.fromkeys(name for report in reports.values() for name in report["ratios"]))
    names = ["run", "engine, rows/s", *(f"`{name}`" for name in ratios), "median ms at 100/s"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for name, report in sorted(reports.items(), key=lambda each: each[1]["environment"]["time"]):
        engine = _median(report["log"].get("debezium engine", []), "rows_a_second")
        found = [_figure(report["ratios"].get(ratio)) for ratio in ratios]
        lines.append(f"| {' | '.join([name, engine, *found, _median(report['latency']['100'], 'median_ms')])} |")
    return _INTRO + "\n".join(lines) + "\n"


def _median(runs: list[dict[str, Any]], figure: str) -> str:
    return _figure(statistics.median(run[figure] for run in runs) if runs else None)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 20 else f"{value:.2f}"


def write(folder: Path = RESULTS) -> None:
    """Write the page into its folder."""
    (folder / "README.md").write_text(page(folder), encoding="utf-8")


if __name__ == "__main__":
    write()
