"""Draws bar charts of a comparison's figures as SVG files, without a library.

python benchmarks/charts.py benchmarks/results/<date>.json
"""

from __future__ import annotations

import json
import statistics
import sys
from html import escape
from pathlib import Path
from typing import Any

WIDTH, LEFT, BAR, GAP, TOP = 760, 190, 24, 12, 44
OURS, OTHERS = "#2f6fb0", "#9aa5b1"


def write(report: dict[str, Any], folder: Path) -> None:
    """The charts of a report: rows a second and rows a CPU-second of log and snapshot, and latencies."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        "log": bars("Rows of the log a second", _medians(report["log"], "rows_a_second")),
        "log-cpu": bars("Rows of the log a CPU-second of the reader", _medians(report["log"], "rows_a_cpu_second")),
        "snapshot": bars("Rows of a first snapshot a second", _medians(report["snapshot"], "rows_a_second")),
        "latency": bars("Milliseconds from commit to the sink", _latencies(report["latency"])),
    }
    for name, text in drawn.items():
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")


def bars(title: str, values: dict[str, float]) -> str:
    """A chart with a horizontal bar for each value."""
    height = TOP + len(values) * (BAR + GAP) + GAP
    most = max(values.values())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="26" font-size="18" font-weight="bold">{escape(title)}</text>',
    ]
    for place, (name, value) in enumerate(values.items()):
        y = TOP + place * (BAR + GAP)
        wide = max(1.0, (WIDTH - LEFT - 110) * value / most)
        color = OURS if name.startswith("tailrace") or "changes/s" in name else OTHERS
        lines += [
            f'<text x="{LEFT - 10}" y="{y + 17}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{wide:.1f}" height="{BAR}" fill="{color}"/>',
            f'<text x="{LEFT + wide + 8:.1f}" y="{y + 17}">{value:,.0f}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _medians(results: dict[str, list[dict[str, Any]]], figure: str) -> dict[str, float]:
    return {name: statistics.median(one[figure] for one in each) for name, each in results.items()}


def _latencies(results: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    return {
        f"{name}, {int(rate):,} changes/s": statistics.median(one[f"{name}_ms"] for one in each)
        for rate, each in results.items()
        for name in ("median", "p99")
    }


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(__file__).parent.parent / "docs" / "speed")
