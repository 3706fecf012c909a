"""Sends signals from outside a pipeline's processes: writes them into the checkpoint, where the planner reads them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace.config.options.snapshot import SIGNAL_FOLDER, SIGNAL_POLL_INTERVAL_MS
from tailrace.connectors.signal import Signal
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.run_state import run_state
from tailrace.snapshot import channels
from tailrace.snapshot.signals import check_size


@dataclass(frozen=True)
class Sent:
    """A signal on its way: a file, which is there until it is carried out, at the latest `seconds` after it came.

    `is_running` is whether the pipeline runs now; None if only the folder is known.
    """

    id: str
    type: str
    data: Mapping[str, Any]
    file: str
    seconds: float
    is_running: bool | None = None

    @property
    def taken(self) -> str:
        """When a pipeline reads it, in words."""
        if self.is_running is None:
            return f"by a running pipeline within {self.seconds:g} s, by a stopped one when it starts"
        return f"within {self.seconds:g} s" if self.is_running else "when the pipeline starts: it does not run now"


def send(pipeline: Definition | str | Path, type_: str, data: Mapping[str, Any], id_: str | None = None) -> Sent:
    """Send a signal to a pipeline that runs, or for the next start of one that does not.

    Raises ConfigError, and SignalError for one that the pipeline would refuse as too large.
    The pipeline is given by its file or definition, or by the folder that `signal.folder` names.
    """
    if isinstance(pipeline, str | Path) and Path(pipeline).is_dir():
        folder, seconds, is_running = str(pipeline), 5.0, None
    else:
        definition = pipeline if isinstance(pipeline, Definition) else load(Path(pipeline))
        config = definition.config()
        folder, seconds = config.need(SIGNAL_FOLDER), config[SIGNAL_POLL_INTERVAL_MS] / 1000
        is_running = run_state(definition.checkpoint).state == "running"
    signal = Signal(id_ or str(uuid.uuid4()), type_, json.dumps(data))
    check_size(signal)
    return Sent(signal.id, type_, data, channels.send(folder, signal), seconds, is_running)
