"""Whether the server still has the log that a pipeline is to go on with and, where not, how far the gap reaches."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.postgres import slot as slots
from tailrace.connectors.postgres.connect import connect, first_line
from tailrace.connectors.postgres.position import Claim, format_lsn, parse_lsn
from tailrace.errors import OffsetError
from tailrace.model.quantity import moment, size

log = logging.getLogger(__name__)

_AGAIN = "set snapshot.mode=when_needed, which reads the tables again, or start with a new checkpoint"
_PAGE, _PAGE_HEADER, _FILE_HEADER, _SMALLEST_FILE = 8192, 24, 40, 1 << 20
_TRUSTING = ("trust_slot", "trust_greater_lsn")


@dataclass(frozen=True, slots=True)
class Gap:
    """Why the claimed log cannot be had, and what is lost. `is_trusted`: offset.mismatch.strategy goes on without."""

    why: str
    what: str
    slot: str
    remedy: str
    is_trusted: bool = False

    def __str__(self) -> str:
        return f"{self.why}; {self.what}"

    def error(self) -> OffsetError:
        """For a pipeline that cannot do without."""
        return OffsetError(str(self), where=f"slot {self.slot}", remedy=self.remedy)


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a server's log ends. A standby may be behind what it had before it restarted."""

    lsn: int
    is_standby: bool
    timeline: int | None = None


def find(connection: psycopg.Connection, config: Config, claim: Claim) -> Gap | None:
    """What of the claim is lost, None if nothing is. Raises SourceError for a slot of another kind."""
    now = log_end(connection, with_timeline=claim.timeline is not None)
    name, reached = config.text("slot.name"), claim.end if claim.end is not None else claim.start
    left = None if reached is None else _left_at(config, now, claim.timeline, reached)
    if left is not None:
        return _other_history(name, claim, left)
    slot = slots.existing(connection, config)
    if slot is None:
        return Gap("the slot does not exist", _lost(claim, now.lsn), name, _AGAIN)
    if slot.is_lost:
        why = f"the server has invalidated the slot ({slot.reason or 'its log is gone'})"
        remedy = f"{_AGAIN}; see max_slot_wal_keep_size and idle_replication_slot_timeout"
        return Gap(why, _lost(claim, now.lsn), name, remedy)
    if claim.start is not None and slot.confirmed is not None and slot.confirmed > claim.start:
        remedy = (
            f"{_AGAIN}; was an old checkpoint restored, or the slot advanced, read or made anew by somebody else? "
            "(offset.mismatch.strategy=trust_slot goes on without what is lost)"
        )
        is_trusted = config.text("offset.mismatch.strategy") in _TRUSTING
        return Gap("the slot was moved", _lost(claim, slot.confirmed), name, remedy, is_trusted)
    return None


def log_end(connection: psycopg.Connection, *, with_timeline: bool) -> LogEnd:
    """Where the server's log ends now, flushed; with the timeline where it can tell that (no standby does)."""
    timeline = (
        "('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int" if with_timeline else "NULL"
    )
    row = connection.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END::text, "
        f"pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN NULL ELSE {timeline} END".encode()
    ).fetchone()
    assert row is not None
    return LogEnd(parse_lsn(row[0]), row[1], row[2])


def _left_at(config: Config, now: LogEnd, timeline: int | None, reached: int) -> int | None:
    """Where the server's log parts from the one that was read up to `reached`; None where it is the same one."""
    reached = _before_header(reached)
    if now.lsn < reached and not now.is_standby:
        return now.lsn
    if timeline is None or now.timeline in (None, timeline):
        return None
    history = _history(config, now.timeline)
    ended = None if history is None else history.get(timeline, 0)
    return ended if ended is not None and ended < reached else None


def _before_header(lsn: int) -> int:
    """The same position as the end of the flushed log has it, if it was asked for as the place of the next record.

    That one lies behind the header of a page of the log, which is longer on the first page of a file.
    """
    header = _FILE_HEADER if lsn % _SMALLEST_FILE == _FILE_HEADER else _PAGE_HEADER
    return lsn - header if lsn % _PAGE == header else lsn


def _history(config: Config, timeline: int) -> dict[int, int] | None:
    """The timelines that a timeline came from, each with the position it was left at; None, told, if unknown."""
    with connect(config, replication=True, application="tailrace history") as connection:
        try:
            row = connection.execute(sql.SQL("TIMELINE_HISTORY {}").format(sql.Literal(timeline))).fetchone()
        except psycopg.Error as error:
            log.warning("whether timeline %d goes on from the checkpoint is unknown: %s", timeline, first_line(error))
            return None
    assert row is not None
    text = row[1] if isinstance(row[1], str) else bytes(row[1]).decode()
    fields = [line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return {int(number): parse_lsn(lsn) for number, lsn, *_ in fields}


def _other_history(name: str, claim: Claim, left: int) -> Gap:
    reached = claim.end if claim.end is not None else claim.start
    assert reached is not None
    when = "" if claim.since_us is None else f" ({moment(claim.since_us)})"
    why = f"the server's log is not the one that was read: they part at {format_lsn(left)}"
    what = (
        f"the checkpoint is at {format_lsn(reached)}{when}, so the last {size(reached - left)} that were read never "
        "happened there, and what happened instead is lost to this pipeline"
    )
    remedy = f"{_AGAIN}; was the server restored from a backup, or failed over to one that lagged?"
    return Gap(why, what, name, remedy)


def _lost(claim: Claim, upto: int) -> str:
    if claim.start is None:
        return f"changes from its snapshot up to {format_lsn(upto)} are lost to this pipeline"
    when = "" if claim.since_us is None else f" ({moment(claim.since_us)})"
    return (
        f"changes from {format_lsn(claim.start)}{when} up to {format_lsn(upto)}, {size(max(upto - claim.start, 0))} "
        "of log, are lost to this pipeline"
    )


def taken(config: Config, application: str, claim: Claim) -> None:
    """Make sure that this pipeline can stream what it claims: an earlier reader of its own is ended, see slot.free.

    Raises OffsetError for a gap, SourceError for a slot that a stranger holds.
    """
    with connect(config, application=f"{application} control") as connection:
        lost = find(connection, config, claim)
        if lost is None:
            slots.free(connection, config, application)
            lost = find(connection, config, claim)  # whoever held it may have moved it
        if lost is None:
            return
        if not lost.is_trusted:
            raise lost.error()
        log.warning("slot %s: %s", lost.slot, lost)


def given_up(connection: psycopg.Connection, config: Config, application: str) -> None:
    """Drop the slot, if there is one: a position that is lost stays lost, whoever looks next. Raises SourceError."""
    slot = slots.free(connection, config, application)
    if slot is not None:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [slot.name])
