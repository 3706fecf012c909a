"""Whether a pipeline that does not run could go on from its checkpoint, as `check` and `add` ask before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres import gap
from tailrace.connectors.postgres import slot as slots
from tailrace.connectors.postgres.catalog import system_identifier
from tailrace.connectors.postgres.connect import connect, server_errors
from tailrace.connectors.postgres.modes import SnapshotMode
from tailrace.connectors.postgres.position import BEGIN, SNAPSHOT, Offset
from tailrace.errors import OffsetError


def standing(config: Config, committed: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> Finding | None:
    """What keeps it from going on: an error, or a warning where snapshot.mode or offset.mismatch.strategy does.

    The offsets are those of the newest batches. None where nothing does, for one that has not begun, and for one whose
    slot is being read. Raises SourceError.
    """
    if committed is None or not SnapshotMode.of(config).streams:
        return None
    with (
        server_errors("the checkpoint cannot be compared"),
        connect(config, application="tailrace check") as connection,
    ):
        source = f"{system_identifier(connection)}/{config.text('database.dbname')}/{config.text('slot.name')}"
        try:
            here = Offset.from_json(dict(committed), source)
            ahead = here if planned is None else Offset.from_json(dict(planned), source)
        except OffsetError as error:
            return Finding("checkpoint", False, error.what, error.remedy)
        return _lost(connection, config, here, ahead)


def _lost(connection: psycopg.Connection, config: Config, here: Offset, ahead: Offset) -> Finding | None:
    slot = slots.existing(connection, config)
    if here.phase == BEGIN or (slot is not None and slot.active_pid is not None):
        return None
    claim = here.claim
    if ahead != here and ahead.lsn is not None:
        claim = replace(claim, end=ahead.lsn, timeline=ahead.timeline)
    lost = gap.find(connection, config, claim)
    if lost is None:
        return None
    mode = SnapshotMode.of(config)
    if mode.when_lost or mode.at_start or (here.phase == SNAPSHOT and here.reading is not None):
        return Finding("slot", None, str(lost), "nothing, if the tables may be read again: that is what the start does")
    if lost.is_trusted:
        return Finding("slot", None, str(lost), "nothing, if it may be lost, as offset.mismatch.strategy says")
    return Finding("slot", False, str(lost), lost.remedy)
