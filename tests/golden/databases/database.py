"""What a scenario asks of its database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.golden.script import Directive


class SkippedError(Exception):
    """The server, or this runner, lacks what the scenario needs."""


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

    def clear(self) -> None:
        """Close what the scenario opened, and remove what it made."""

    def close(self) -> None:
        """Stop the server, if it is ours."""
