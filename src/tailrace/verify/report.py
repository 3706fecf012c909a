"""Writes what was found as a report that may be sent to others: JSON for programs, and a page for people."""

from __future__ import annotations

import json
import platform
from collections import Counter
from pathlib import Path
from typing import Any

from tailrace.connectors.probe import Bench
from tailrace.errors import ConfigError
from tailrace.verify.redaction import Redaction
from tailrace.verify.run import VerifyRun
from tailrace.verify.runner import OUTCOMES, Result
from tailrace.version import __version__

FORMAT = 1
"""Of the JSON: `format` is raised with a change that a program which reads reports has to know."""
_MARKS = {"as expected": "", "differs": "**differs**", "noted": "noted", "error": "**error**", "skipped": "not asked"}


def content(run: VerifyRun, bench: Bench, product: str, *, read_only: bool) -> dict[str, Any]:
    """The report as JSON. Nothing of it has names, addresses or values of the server's own."""
    redaction = Redaction(bench.private())
    counts = Counter(result.outcome for result in run.results)
    return {
        "format": FORMAT,
        "tailrace": __version__,
        "database": product,
        "read_only": read_only,
        "is_interrupted": run.is_interrupted,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "summary": {outcome: counts[outcome] for outcome in OUTCOMES},
        "probes": [_entry(result, redaction) for result in run.results],
        "left": redaction.of(run.left),
    }


def _entry(result: Result, redaction: Redaction) -> dict[str, Any]:
    asked = result.asked
    return {
        "name": asked.name,
        "question": asked.question,
        "outcome": result.outcome,
        "expected": dict(asked.expected),
        "found": redaction.of(dict(result.found)),
        "about": redaction.of(dict(result.about)),
        "means": redaction.of(list(result.means)),
        "ms": result.ms,
    }


def page(report: dict[str, Any]) -> str:
    """The report for people, in Markdown."""
    summary = ", ".join(f"{count} {outcome}" for outcome, count in report["summary"].items() if count)
    lines = [
        f"# Report of `tailrace verify` on {report['database']}",
        "",
        f"Tailrace {report['tailrace']}, Python {report['python']} on {report['platform']}. {summary}.",
    ]
    if report["read_only"]:
        lines.append("Only probes that write nothing were asked (`--read-only`).")
    if report["is_interrupted"]:
        lines.append("The command was interrupted, so probes are missing.")
    if report["left"]:
        lines += ["", "These could not be dropped. Run them:", "", *(f"- `{each}`" for each in report["left"])]
    subject = ""
    for entry in report["probes"]:
        if entry["name"].partition(".")[0] != subject:
            subject = entry["name"].partition(".")[0]
            lines += ["", f"## {subject.capitalize()}"]
        lines += ["", *_section(entry)]
    return "\n".join(lines) + "\n"


def _section(entry: dict[str, Any]) -> list[str]:
    mark = _MARKS[entry["outcome"]]
    lines = [f"### {entry['name']}", "", entry["question"] + (f" {mark}." if mark else ""), ""]
    expected = entry["expected"]
    everything = {**entry["found"], **entry["about"]}
    if everything:
        lines += ["| | expected | found |", "|---|---|---|"]
        lines += [f"| {name} | {_cell(expected, name)} | {_cell(everything, name)} |" for name in everything]
        lines.append("")
    return [*lines, *entry["means"]]


def _cell(values: dict[str, Any], name: str) -> str:
    if name not in values:
        return ""
    value = values[name]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def write(report: dict[str, Any], path: Path) -> Path:
    """Write the JSON to `path` and the page beside it, whose path is returned. Raises ConfigError."""
    beside = path.with_suffix(".md")
    try:
        path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        beside.write_text(page(report), encoding="utf-8")
    except OSError as error:
        remedy = "create the folder, or choose another --out"
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(path), remedy=remedy) from error
    return beside
