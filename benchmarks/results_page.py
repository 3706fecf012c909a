"""Writes the table of all stored comparisons into benchmarks/results/README.md: `python benchmarks/results_page.py`."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
RATIOS = {
    "events_per_second_vs_engine": ".1f",
    "rows_per_cpu_second_vs_engine": ".1f",
    "events_per_second_vs_recvlogical": ".1f",
    "snapshot_rows_per_second_vs_engine": ".1f",
    "snapshot_vs_copy": ".2f",
    "replica_changes_per_second": ",.0f",
    "p99_ms_at_100_per_second": ".0f",
}

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
    reports = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    names = ["run", "engine, rows/s", *(f"`{name}`" for name in RATIOS), "median ms at 100/s"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for name, report in sorted(reports.items(), key=lambda each: each[1]["environment"]["time"]):
        lines.append(f"| {' | '.join([name, *_figures(report)])} |")
    return _INTRO + "\n".join(lines) + "\n"


def _figures(report: dict[str, Any]) -> list[str]:
    engine = _median(report["log"].get("debezium engine", []), "rows_a_second", ",.0f")
    found = report["ratios"]
    ratios = [format(found[name], digits) if name in found else "" for name, digits in RATIOS.items()]
    return [engine, *ratios, _median(report["latency"]["100"], "median_ms", ".0f")]


def _median(runs: list[dict[str, Any]], figure: str, digits: str) -> str:
    return format(statistics.median(run[figure] for run in runs), digits) if runs else ""


def write(folder: Path = RESULTS) -> None:
    """Write the page into its folder."""
    (folder / "README.md").write_text(page(folder), encoding="utf-8")


if __name__ == "__main__":
    write()
