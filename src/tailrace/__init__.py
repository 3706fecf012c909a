"""Tailrace: change data capture as a Spark streaming source, with Debezium's events and properties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.errors import TailraceError
from tailrace.version import __version__

if TYPE_CHECKING:
    from tailrace.pipeline.definition import Definition

__all__ = ["TailraceError", "__version__", "signal"]


def signal(
    pipeline: Definition | str | Path, type: str, data: Mapping[str, Any] | None = None, *, id: str | None = None
) -> str:
    """Send a signal to a pipeline, running or not, and return the signal's id. Raises ConfigError.

    `pipeline` is its file or definition, or the folder that `signal.folder` names; `type` and `data` are Debezium's:
    `signal("pipeline.yaml", "execute-snapshot", {"data-collections": ["public.orders"]})`.
    """
    # Imported late: Spark imports this package, for its data source, in each of its processes.
    from tailrace.pipeline.signaling import send

    return send(pipeline, type, data or {}, id).id
