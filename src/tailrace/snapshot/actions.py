"""Executes signals other than snapshots: `log`, and user-supplied actions (entry points `tailrace.signal_actions`).

An action is a function of the signal and of the offset the pipeline is at, a JSON-ready dict; its name is the signal's
type. It is called on the driver, where batches are planned, so it should be short. Debezium has SignalActionProvider.
"""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tailrace.connectors.signal import Signal
from tailrace.snapshot.signals import ABOUT_SNAPSHOTS, ADD, LOG, REMOVE

log = logging.getLogger(__name__)

GROUP = "tailrace.signal_actions"
# Corrects the schema history of the reference engine.
_SCHEMA_CHANGES = "schema-changes"


def types() -> list[str]:
    """All types of signals, those of one's own that are installed here included."""
    return [*ABOUT_SNAPSHOTS, ADD, REMOVE, LOG, *sorted({entry.name for entry in entry_points(group=GROUP)})]


def act(signal: Signal, offset: dict[str, Any]) -> None:
    """Carry out a signal. Whatever is wrong with it, or with its action, is logged and ignored."""
    if signal.type == LOG:
        _log(signal, offset)
        return
    if signal.type == _SCHEMA_CHANGES:
        log.warning(
            "signal %s (%s) is ignored: tables are described by the database itself, no schema history is kept that it "
            "could correct",
            *(signal.id, signal.type),
        )
        return
    entries = entry_points(group=GROUP, name=signal.type)
    if not entries:
        log.warning("signal %s is ignored: its type %r is unknown", signal.id, signal.type)
    for entry in entries:
        _call(entry, signal, offset)


def _call(entry: EntryPoint, signal: Signal, offset: dict[str, Any]) -> None:
    try:
        entry.load()(signal, offset)
    except Exception:
        log.exception("signal %s: the action %s (%s) failed", signal.id, entry.name, entry.value)


def _log(signal: Signal, offset: dict[str, Any]) -> None:
    """Write the message into the log, `{}` replaced by the offset."""
    content = signal.content()
    if content is None:
        return
    message = content.get("message")
    if message:
        log.info("%s", str(message).replace("{}", str(offset), 1))
    else:
        log.warning("signal %s (log) has no message: %s", signal.id, signal.data)
