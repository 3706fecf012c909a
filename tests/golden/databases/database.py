"""What a scenario asks of its database."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.golden.compare import Event, payload_of
from tests.golden.script import Directive


class SkippedError(Exception):
    """The server, or this runner, lacks what the scenario needs."""


def without_last_end(events: list[Event]) -> list[Event]:
    """The events without the end of the last transaction: the reference engine sends it when the next change comes."""
    at = next((place for place in reversed(range(len(events))) if not _is_heartbeat(events[place])), None)
    last = None if at is None else events[at]
    if last and re.search(r"[._]transaction$", last["topic"]) and last["value"]["payload"]["status"] == "END":
        return [event for event in events if event is not last]
    return events


def _is_heartbeat(event: Event) -> bool:
    payload = payload_of(event["value"])
    return isinstance(payload, dict) and set(payload) == {"ts_ms"}


class GoldenServer(Protocol):
    """A server on which one scenario after the other runs."""

    format: str
    """The name of the Spark data source."""

    settings: Mapping[str, str] = {}
    """Properties that its connections need."""

    def places(self) -> Mapping[str, object]:
        """What the placeholders in `connector.json` stand for."""

    def check(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Raises SkippedError for what the server lacks."""

    def prepare(self, folder: Path) -> None:
        """Remove what an earlier scenario left, and do what comes before the connector's start."""

    def workload(self, folder: Path) -> Iterator[Directive]:
        """Make the changes; the directives between them."""

    def log_end(self) -> Any:
        """Where the log ends now."""

    def position(self, text: str) -> Any:
        """The position of an offset, to be compared with `log_end`."""

    def comparable(self, events: list[Event]) -> list[Event]:
        """The events without those that the reference engine sends later than we do."""
        return events

    def clear(self) -> None:
        """Close what the scenario opened, and remove what it made."""

    def close(self) -> None:
        """Stop the server, if it is ours."""
