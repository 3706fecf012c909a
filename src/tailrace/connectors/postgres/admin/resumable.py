"""Checks whether a stopped pipeline can resume with its slot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding
from tailrace.connectors.offset import BEGIN, SNAPSHOT, Reached, fields
from tailrace.connectors.ports import Begun
from tailrace.connectors.postgres.catalog.tables import system_identifier
from tailrace.connectors.postgres.options import SLOT_NAME
from tailrace.connectors.postgres.position import SOURCE, claim_of_slot, parse_lsn
from tailrace.connectors.postgres.position import claim as claim_of
from tailrace.connectors.postgres.server import control, lost_log
from tailrace.connectors.postgres.server import slot as slots
from tailrace.connectors.postgres.server.connect import connect, planner_application, server_errors
from tailrace.connectors.postgres.server.slot_wait import prepared_transactions
from tailrace.errors import OffsetError

_SLOT = """
SELECT slot.*, current_database() AS here, activity.application_name, activity.usename
FROM pg_replication_slots slot LEFT JOIN pg_stat_activity activity ON activity.pid = slot.active_pid
WHERE slot_name = %s
"""
# Prepared transactions of this age are named: a program ends its own within moments.
_FORGOTTEN_SECONDS = 10.0


def slot_findings(connection: psycopg.Connection[Any], config: Config, begun: Begun | None) -> Iterator[Finding]:
    """Every problem of the slot; one that says it is fine if there is none. `begun` is None without a checkpoint."""
    name = config[SLOT_NAME]
    row = connection.cursor(row_factory=dict_row).execute(_SLOT, [name]).fetchone()
    own = None if begun is None else _application(*begun)
    problems = [] if row is None else list(_problems(name, row, own))
    problems += _run(connection, name, own)
    if begun is not None and not any(problem.ok is False for problem in problems):
        problems += _foreign(config, begun)
        if not problems:
            lost = obstacle(config, *begun)
            problems += [] if lost is None else [lost]
    yield from problems or [Finding("slot", True, f"{name} {'will be created' if row is None else 'exists'}")]
    keeps = "the slot from being made" if row is None else "the server from removing log that the slot has passed"
    for blocker in prepared_transactions(connection, _FORGOTTEN_SECONDS):
        yield Finding("slot", None, f"{blocker.what}, keeps {keeps}", blocker.remedy)


def _application(committed: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> str:
    """The application name of the checkpoint's readers; empty for one that has not begun."""
    offset = planned or committed
    return "" if offset is None else f"tailrace {offset.get('pipeline')}"


def _problems(name: str, row: dict[str, Any], own: str | None) -> Iterator[Finding]:
    other = "set slot.name to another name, or drop the slot if nobody needs it: " + _drop(name)
    if row["slot_type"] != "logical":
        yield Finding("slot", False, f"{name} is a physical slot", other)
        return
    if row["plugin"] != slots.PLUGIN:
        yield Finding("slot", False, f"{name} belongs to the plug-in {row['plugin']}, not {slots.PLUGIN}", other)
    if row["database"] != row["here"]:
        yield Finding("slot", False, f"{name} belongs to the database {row['database']}, not {row['here']}", other)
    holder = row["application_name"] or "an unknown application"
    if row["active"] and holder not in (own, slots.snapshot_application(own or "")):
        is_unknown = own is None and holder.startswith("tailrace")
        what = f"{name} is in use by {holder} (pid {row['active_pid']}, role {row['usename']})"
        yield Finding("slot", None if is_unknown else False, what, _OTHER)
    if row["wal_status"] == "lost":
        reason = row.get("invalidation_reason")
        what = f"{name} is invalidated{f' ({reason})' if reason else ''}: the server removed log it needs"
        remedy = f"{_drop(name)}; if it is this pipeline's, {lost_log.AGAIN}"
        yield Finding("slot", False, what, remedy)
    elif row["wal_status"] == "unreserved":
        what = f"{name} is about to lose log it needs: it lags by more than max_slot_wal_keep_size"
        yield Finding("slot", None, what, "start the pipeline now, or raise max_slot_wal_keep_size")


_OTHER = "stop that reader, or set slot.name to a name of its own: a slot serves one reader"


def _drop(name: str) -> str:
    return f"SELECT pg_drop_replication_slot('{name}')"


def _run(connection: psycopg.Connection[Any], name: str, own: str | None) -> Iterator[Finding]:
    """Whether a run of another checkpoint uses the slot. One may be in a pause, in which nobody reads it."""
    holder = control.holder(connection, name)
    if holder is not None and (own is None or holder.application != planner_application(own)):
        yield Finding("slot", None if own is None else False, f"{name} is used by a run: {holder}", _OTHER)


def _foreign(config: Config, begun: Begun) -> Iterator[Finding]:
    """Whether the slot is another pipeline's: this one's checkpoint has not begun, or did not create it."""
    committed, planned = begun
    with connect(config, application="tailrace check") as connection:
        slot = slots.existing(connection, config)
        if slot is None or committed is not None:  # see `obstacle`
            return
        claim = None
        if planned is not None:
            reached, _ = offsets(connection, config, planned, None)
            claim = claim_of_slot(None, reached)
        if not slots.owned(config, slot, claim):
            error = slots.foreign(slot)
            yield Finding("slot", False, f"{slot.name}: {error.what}", error.remedy)


def offsets(
    connection: psycopg.Connection, config: Config, committed: Mapping[str, Any], planned: Mapping[str, Any] | None
) -> tuple[Reached, Reached]:
    """The offsets of a checkpoint. Raises OffsetError if it is another source's."""
    source = f"{system_identifier(connection)}/{config[DATABASE_DBNAME]}/{config[SLOT_NAME]}"
    reached = Reached(**fields(committed, SOURCE.connector, source, parse_lsn))
    return reached, reached if planned is None else Reached(**fields(planned, SOURCE.connector, source, parse_lsn))


def obstacle(config: Config, committed: Mapping[str, Any] | None, planned: Mapping[str, Any] | None) -> Finding | None:
    """What keeps a pipeline from resuming: an error, or a warning where snapshot.mode or offset.mismatch.strategy does.

    The offsets are those of the newest batches. None where nothing does, for one that has not begun, and for one whose
    slot is being read. Raises SourceError.
    """
    if committed is None or not SnapshotMode.of(config).streams:
        return None
    with (
        server_errors("the checkpoint cannot be compared"),
        connect(config, application="tailrace check") as connection,
    ):
        try:
            reached, ahead = offsets(connection, config, committed, planned)
        except OffsetError as error:
            return Finding("checkpoint", False, error.what, error.remedy)
        is_amid = reached.phase == SNAPSHOT and committed.get("reading") is not None
        return _lost(connection, config, reached, ahead, is_amid=is_amid)


def _lost(
    connection: psycopg.Connection, config: Config, reached: Reached, ahead: Reached, *, is_amid: bool
) -> Finding | None:
    slot = slots.existing(connection, config)
    if reached.phase == BEGIN or (slot is not None and slot.active_pid is not None):
        return None
    claim = claim_of(reached)
    if ahead != reached and ahead.position is not None:
        claim = replace(claim, end=ahead.position, timeline=ahead.log.get("timeline"))
    if ahead != reached and ahead.phase == SNAPSHOT and ahead.position is None:
        claim = replace(claim_of_slot(reached, ahead), seen=claim.seen)
    lost = lost_log.find(connection, config, claim)
    if lost is None:
        return None
    if lost.is_trusted:
        return Finding("slot", None, str(lost), "nothing, if it may be lost, as offset.mismatch.strategy says")
    mode = SnapshotMode.of(config)
    is_read_again = mode.when_lost or mode.at_start or is_amid
    if is_read_again and not lost.is_foreign:
        return Finding("slot", None, str(lost), "nothing, if the tables may be read again: that is what the start does")
    return Finding("slot", False, str(lost), lost.remedy)
