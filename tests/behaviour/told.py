"""What is shown of a fault, and how soon: in the console, in metrics, in Connect's REST and by `tailrace status`."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tailrace.cli.main import app
from tests.behaviour.operated import LIMIT, MORE, Asked

Series = tuple[str, dict[str, str], float]


@dataclass(frozen=True)
class Showing:
    """What a fault shows: one of some conditions, words, what to do, a series of /metrics, and the exit code.

    `connect` is the state in Connect's REST.
    """

    conditions: tuple[str, ...]
    words: str
    todo: str
    _: KW_ONLY
    series: Series | None = None
    code: int = 0
    connect: str = "RUNNING"


def printed(pipeline: Path, command: str = "status") -> tuple[int, str]:
    """What `tailrace status`, or another command, prints, on one line, and its exit code."""
    done = CliRunner().invoke(app, [command, str(pipeline)], catch_exceptions=False)
    return done.exit_code, " ".join(done.stdout.split())


def of_console(shown: dict[str, Any]) -> str:
    """The texts that the console shows of a pipeline, see console.html."""
    tables = [
        " ".join(filter(None, (each["table"], each["state"], each["why"], each["takes"]))) for each in shown["replica"]
    ]
    warnings = [f"{each['what']}; remedy: {each['remedy']}" for each in shown["problems"] if each["ok"] is None]
    return "\n".join([shown["condition"], shown["what"], shown["todo"], *warnings, *tables])


def told(asked: Asked, pipeline: Path, expected: Showing, name: str) -> None:
    """Within ten seconds all of them show it; prints after how many seconds each did."""
    began = time.monotonic()
    seen: dict[str, float] = {}
    last: dict[str, object] = {}

    def look() -> None:
        (shown,) = asked.json("/status")
        text = of_console(shown)
        last["console"] = text
        if shown["condition"] in expected.conditions and expected.words in text and expected.todo in text:
            seen.setdefault("console", time.monotonic() - began)
        of = [asked.metric("tailrace_condition", pipeline="shop", condition=each) == 1 for each in expected.conditions]
        series = expected.series
        if any(of) and (series is None or asked.metric(series[0], **series[1]) == series[2]):
            seen.setdefault("metrics", time.monotonic() - began)
        last["connect"] = state = asked.json("/connectors/shop/status")["connector"]["state"]
        if state == expected.connect:
            seen.setdefault("connect", time.monotonic() - began)
        last["status"] = code, text = printed(pipeline)
        if code == expected.code and expected.words in text and expected.todo in text:
            seen.setdefault("status", time.monotonic() - began)

    def is_told() -> bool:
        look()
        return len(seen) == 4

    asked.eventually(is_told, LIMIT + MORE, lambda: (seen, last))
    print(f"shown: {name}: " + ", ".join(f"{each} {seconds:.1f} s" for each, seconds in sorted(seen.items())))
