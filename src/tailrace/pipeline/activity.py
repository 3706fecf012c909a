"""Tells what a running query does at this moment, and for how long, by what Spark says of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

# What it does: it waits for changes or for its trigger, it asks the source where its log ends, a micro-batch is read
# and written, or it has failed and waits to be started again.
Activity = Literal["waits", "asks", "writes", "restarts"]
WAITS: Activity = "waits"
ASKS: Activity = "asks"
WRITES: Activity = "writes"
RESTARTS: Activity = "restarts"
# As StreamExecution of Spark writes its status.
_ASKING, _WRITING = "Getting offsets", "Processing new data"


class ActivityWatch:
    """Follows a query by looks at its status, which says nothing of times."""

    def __init__(self) -> None:
        self._last_seen: tuple[Activity, Any] | None = None
        self._since = 0.0

    def look(self, status: Mapping[str, Any], last: Mapping[str, Any]) -> tuple[Activity, float]:
        """What the query does, and for how many seconds, as far as earlier looks tell; `last` is its last progress."""
        message = status["message"] if status["isTriggerActive"] else ""
        activity = WRITES if message.startswith(_WRITING) else ASKS if message.startswith(_ASKING) else WAITS
        seen = activity, last.get("timestamp")
        if seen != self._last_seen:
            self._last_seen, self._since = seen, time.monotonic()
        return activity, time.monotonic() - self._since
