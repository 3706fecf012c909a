"""Repairs a replica's wrong rows: the running pipeline reads their keys again, through the stream."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from tailrace.config.options.snapshot import SIGNAL_FOLDER
from tailrace.errors import TailraceError
from tailrace.pipeline.reconcile import ComparedTable, Reconciler
from tailrace.pipeline.sides import ColumnsChanged
from tailrace.pipeline.signaling import Sent, send
from tailrace.snapshot import channels
from tailrace.snapshot.progress import QUEUE_BYTES
from tailrace.snapshot.signals import EXECUTE, KEYS_AT_ONCE

# Signals that wait at a time, and about the bytes of their keys: an offset has them until they are read.
_SIGNALS_AT_ONCE, _BYTES_AT_ONCE = 10, QUEUE_BYTES // 2


def repair(reconciler: Reconciler, compared: ComparedTable) -> ComparedTable:
    """Repair what is wrong in a table, and compare again; the report contains what is left.

    A table that is incomplete or set aside is read again as a whole, and so is one without a key, or whose rows the log
    names by another. One that cannot be repaired, as it was dropped meanwhile, does not end the comparison of others.
    """
    try:
        return _repaired(reconciler, compared)
    except TailraceError as error:
        _add(compared, f"it was not repaired: {error.line}")
        return compared


def _repaired(reconciler: Reconciler, compared: ComparedTable) -> ComparedTable:
    if compared.report.is_lacking:
        return _again(reconciler, compared)
    if compared.report.outcome == "undecided":
        _add(compared, "nothing is repaired before it is certain, which takes a pipeline that runs and is not behind")
    if compared.report.outcome != "different":
        return compared
    sides, asked = compared.sides, compared.asked
    if sides is None:
        return compared  # a table that is gone has no rows to read again
    if asked is None or sides.layout.key != sides.table.key:
        return _again(reconciler, compared)
    assert compared.wrong is not None
    wrong = [list(asked.texts[place]) for place in np.flatnonzero(compared.wrong)]
    damaged = len(wrong)
    step = max(1, min(KEYS_AT_ONCE * _SIGNALS_AT_ONCE, _BYTES_AT_ONCE // max(map(_bytes, wrong), default=1)))
    for start in range(0, damaged, step):
        end = min(start + step, damaged)
        parts = [wrong[at : min(at + KEYS_AT_ONCE, end)] for at in range(start, end, KEYS_AT_ONCE)]
        if not _done(reconciler, compared, [_sent(reconciler, compared, keys=part) for part in parts]):
            return compared
    try:
        reconciler.examine(compared)
    except ColumnsChanged:
        # The rows brought new columns.
        compared = reconciler.compare(sides.table.id)
    compared.report.repaired = damaged - compared.report.damaged
    return compared


def _bytes(key: list[str]) -> int:
    """About how much of an offset a key takes."""
    return len(json.dumps(key)) + 2


def _again(reconciler: Reconciler, compared: ComparedTable) -> ComparedTable:
    """Let the pipeline read a table again, into a copy that replaces the replica's rows."""
    if not _done(reconciler, compared, [_sent(reconciler, compared, again=True)]):
        return compared
    again = reconciler.compare(reconciler.tables([compared.report.table])[0])
    again.report.repaired = max(compared.report.damaged - again.report.damaged, 0)
    return again


def _sent(reconciler: Reconciler, compared: ComparedTable, **data: Any) -> Sent:
    return send(reconciler.definition, EXECUTE, {"data-collections": [compared.report.table], **data})


def _done(reconciler: Reconciler, compared: ComparedTable, sent: list[Sent]) -> bool:
    """Wait until signals are carried out and that is committed; whether they are."""
    folder = reconciler.follower.config.need(SIGNAL_FOLDER)

    def is_waiting(signal: Sent) -> bool:
        is_there = channels.is_there(folder, signal.file)
        progress = reconciler.follower.progress
        if is_there and PurePosixPath(signal.file).name not in progress.files:
            return True
        return any(request.signal == signal.id for request in progress.queue)

    if reconciler.follower.until(lambda: not any(map(is_waiting, sent))):
        return True
    _add(compared, f"the repair is requested and not done yet: {reconciler.follower.position_text()}")
    return False


def _add(compared: ComparedTable, reason: str) -> None:
    compared.report.reason = reason if compared.report.reason is None else f"{compared.report.reason}; {reason}"
