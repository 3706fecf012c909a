"""Passes how far a source's log goes from the process that plans to the run, on a Spark that does not ask for it.

Spark 4.2 and newer ask a reader by `reportLatestOffset` and put the answer into the query's progress. 4.0 and 4.1 do
not. The planning process runs on the driver's machine, as the run does, so a file there takes the place of that call.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from tailrace.connectors.base import Offset

log = logging.getLogger(__name__)

# Offsets that are kept. A run looks at the progress twice a second, and a micro-batch takes 100 ms at least (measured
# with empty tasks), so the one of the newest progress is among them.
_KEPT = 32


class LatestFile:
    """What `Capture.latest` said of each of the newest offsets. One process writes it, another reads it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._said: dict[str, Mapping[str, Any]] = {}
        self._failure = ""

    def write(self, end: Offset, latest: Mapping[str, Any] | None) -> None:
        """Store what is said of an offset. A failure is logged: the pipeline is right without the file."""
        if latest is None:
            return
        name = _name(end)
        self._said.pop(name, None)
        self._said = dict([*self._said.items(), (name, latest)][-_KEPT:])
        beside = self.path.with_suffix(".new")
        try:
            beside.write_text(json.dumps(self._said), encoding="utf-8")
            beside.replace(self.path)
            self._failure = ""
        except OSError as error:
            if str(error) != self._failure:
                log.warning("lag and the time up to which the sink is complete are unknown for now: %s", error)
                self._failure = str(error)

    def read(self, end: Offset) -> dict[str, Any]:
        """What was said of an offset; nothing if that is not known."""
        try:
            said = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        measures: dict[str, Any] = said.get(_name(end), {})
        return measures


def _name(end: Offset) -> str:
    """A short name for an offset, the same in both processes whatever the order of its keys."""
    return sha256(json.dumps(end, sort_keys=True).encode()).hexdigest()
