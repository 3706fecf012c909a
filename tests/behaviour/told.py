"""What is shown of a fault, and how soon: in the console, in metrics, in Connect's REST and by `tailrace status`."""

from __future__ import annotations

import threading
import time
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tailrace.cli.main import app
from tests.behaviour.operated import PATIENCE, Asked

# The limit within which a fault shows, and what a machine that does other work takes more. Where a look takes long, the
# next one comes after three times as long (source_watch.py); a fault shows at the one after it at the latest.
LIMIT, MORE, LOOKS = 10.0, 5.0, 6

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
    slowest = 0.0
    last: dict[str, object] = {}

    def see(where: str, is_shown: bool, found: object) -> None:
        last[where] = found
        if is_shown:
            seen.setdefault(where, time.monotonic() - began)

    def look() -> None:
        (shown,) = asked.json("/status")
        text = of_console(shown)
        see("console", shown["condition"] in expected.conditions and has_words(text), text)
        of = [asked.metric("tailrace_condition", pipeline="shop", condition=each) == 1 for each in expected.conditions]
        series = expected.series
        see("metrics", any(of) and (series is None or asked.metric(series[0], **series[1]) == series[2]), of)
        state = asked.json("/connectors/shop/status")["connector"]["state"]
        see("connect", state == expected.connect, state)

    def command() -> None:
        """It asks the database, which may hang: beside the others."""
        nonlocal slowest
        while "status" not in seen and time.monotonic() - began < PATIENCE:
            asked_at = time.monotonic()
            code, text = printed(pipeline)
            slowest = max(slowest, time.monotonic() - asked_at)
            see("status", code == expected.code and has_words(text), (code, text))

    def has_words(text: str) -> bool:
        return expected.words in text and expected.todo in text

    beside = threading.Thread(target=command)
    beside.start()

    def is_told() -> bool:
        look()
        return len(seen) == 4

    try:
        asked.eventually(is_told, PATIENCE, lambda: (seen, last))
    finally:
        beside.join()
    assert max(seen.values()) < LIMIT + MORE + LOOKS * slowest, (seen, slowest)
    print(f"shown: {name}: " + ", ".join(f"{each} {seconds:.1f} s" for each, seconds in sorted(seen.items())))
