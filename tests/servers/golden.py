"""Compares a report of `tailrace verify` with another server's: what both were asked, and what each said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Report = dict[str, Any]
SERVERS = Path(__file__).parent
STAND_IN = "stand-in"
"""How the names of reports begin that no real server gave: they are examples, which nothing is compared with."""
_ANSWERED = ("as expected", "differs", "noted")


def reports(database: str) -> list[Path]:
    """The reports of real servers of a database."""
    found = sorted((SERVERS / database / "golden").glob("*.json"))
    return [path for path in found if not path.name.startswith(STAND_IN)]


def load(path: Path) -> Report:
    """A report."""
    report: Report = json.loads(path.read_text(encoding="utf-8"))
    return report


def differences(golden: Report, report: Report) -> list[str]:
    """A line for each probe that the server of `golden` answered, and that the other one answers in another way.

    Times, versions and settings (`about`) are not compared, nor are probes that either server was not asked.
    """
    others = {entry["name"]: entry for entry in report["probes"]}
    lines = []
    for entry in golden["probes"]:
        other = others.get(entry["name"])
        if entry["outcome"] not in _ANSWERED or other is None or other["outcome"] == "skipped":
            continue
        if entry["found"] != other["found"]:
            lines.append(f"{entry['name']}: {entry['found']} there, {other['found']} here")
    return lines
