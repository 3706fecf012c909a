"""Keeps the newest lines that this process has printed of its pipelines, for the console."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

_MOST = 300  # guessed
_lines: deque[dict[str, Any]] = deque(maxlen=_MOST)


def add(line: Mapping[str, Any]) -> None:
    """Keep a line: its `time`, `level`, `message`, and what else is known."""
    _lines.append(dict(line))


def newest_first() -> list[dict[str, Any]]:
    """The lines that are kept."""
    return list(reversed(_lines.copy()))
