"""Where signals come from besides a table of the source: a file."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from tailrace.config import Config
from tailrace.snapshot.signals import Signal

log = logging.getLogger(__name__)

SOURCE, FILE = "source", "file"


def from_file(config: Config) -> list[Signal]:
    """The signals in `signal.file`, one JSON object a line (`id`, `type`, `data`); the file is emptied.

    A line that is none is told, with its text, and ignored. No file is no signals.
    """
    if FILE not in config.names("signal.enabled.channels"):
        return []
    path = Path(config.text("signal.file"))
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        if lines:
            path.write_text("", encoding="utf-8")
    except FileNotFoundError:
        return []
    except OSError as error:
        log.error("signal.file %s cannot be read and emptied: %s", path, error.strerror)
        return []
    return [signal for line in lines if line.strip() and (signal := _parsed(line)) is not None]


def _parsed(line: str) -> Signal | None:
    try:
        node = json.loads(line)
        data = node.get("data")
        return Signal(str(node["id"]), str(node["type"]), None if data is None else json.dumps(data))
    except (ValueError, KeyError, AttributeError, TypeError):
        log.warning("a line of signal.file is no signal and is ignored: %s", line)
        return None
