"""Detects WAL that a pipeline still needs and the server no longer has, and measures the gap."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import psycopg

from tailrace.config import Config
from tailrace.connectors.lost_log_remedies import AFTER_DROP, NEW_CHECKPOINT
from tailrace.connectors.postgres.options import OFFSET_MISMATCH_STRATEGY, SLOT_NAME
from tailrace.connectors.postgres.position import LogClaim, format_lsn
from tailrace.connectors.postgres.server import history
from tailrace.connectors.postgres.server import slot as slots
from tailrace.connectors.postgres.server.connect import connect
from tailrace.errors import OffsetError
from tailrace.model.quantity import moment, size
from tailrace.override import override

log = logging.getLogger(__name__)

AGAIN = f"set snapshot.mode=when_needed, which reads the tables again, or {AFTER_DROP}"
# Of a log whose slot is there and does not give it: without the slot the position is lost, and when_needed sees that.
WITHOUT_SLOT = (
    f"run `tailrace drop`, then set snapshot.mode=when_needed, which reads the tables again, or {NEW_CHECKPOINT}"
)
WITHOUT_PUBLICATION = (
    "if the pipeline began with another publication, set publication.name to that one. Else "
    "what was written while there was no publication does not come, also not with a new publication: "
    f"{WITHOUT_SLOT}. With publication.autocreate.mode=disabled create the publication before the start"
)
_MOVED = (
    "was an old checkpoint restored, or the slot advanced, read or created again by another program? If nothing else "
    "needs it, set slot.takeover=true as well (offset.mismatch.strategy=trust_slot continues without the lost changes)"
)
_TRUSTING = ("trust_slot", "trust_greater_lsn")


@dataclass(frozen=True, slots=True)
class SlotGap:
    """Why the claimed log is not there, and what is lost. `is_trusted`: offset.mismatch.strategy continues without.

    `is_foreign`: the slot may be another pipeline's by now, so this one must not move or drop it.
    """

    why: str
    what: str
    slot: str
    remedy: str
    is_trusted: bool = False
    is_foreign: bool = False

    @override
    def __str__(self) -> str:
        return f"{self.why}; {self.what}"

    def error(self) -> OffsetError:
        """For a pipeline that cannot do without."""
        return OffsetError(str(self), where=f"slot {self.slot}", remedy=self.remedy)


def find(connection: psycopg.Connection, config: Config, claim: LogClaim) -> SlotGap | None:
    """What of the claim is lost, None if nothing is. Raises SourceError for a slot of another kind."""
    slot = slots.existing(connection, config)
    gap = _history(connection, config, claim, slot) or _slot(connection, config, claim, slot)
    if gap is None or slot is None or slots.owned(config, slot, claim):
        return gap
    return replace(gap, is_foreign=True, remedy=f"{gap.remedy}; {_MOVED}")


def _history(
    connection: psycopg.Connection, config: Config, claim: LogClaim, slot: slots.Slot | None
) -> SlotGap | None:
    """Whether the server's log is another one than was read."""
    reached = claim.end if claim.end is not None else claim.start
    if reached is None:
        return None
    name = config[SLOT_NAME]
    now = history.log_end(connection, name, with_timeline=claim.timeline is not None)
    left = history.left_at(config, now, claim.timeline, reached)
    if left is not None:
        return _other_history(name, claim, f"they part at {format_lsn(left)}", f"the last {size(reached - left)}")
    rewritten = None if slot is None else history.rewritten(connection, config, slot, claim)
    return None if rewritten is None else _other_history(name, claim, rewritten, "the last changes")


def _slot(connection: psycopg.Connection, config: Config, claim: LogClaim, slot: slots.Slot | None) -> SlotGap | None:
    """Whether the slot is there and can give the log."""
    name = config[SLOT_NAME]
    if slot is None or slot.is_lost:
        end = history.log_end(connection, name, with_timeline=False).lsn
        if slot is None:
            return SlotGap("the slot does not exist", _lost(claim, end), name, AGAIN)
        why = f"the server has invalidated the slot ({slot.reason or 'its log is gone'})"
        remedy = f"{AGAIN}; see max_slot_wal_keep_size and idle_replication_slot_timeout"
        return SlotGap(why, _lost(claim, end), name, remedy)
    if slot.confirmed is None or claim.owns(slot.confirmed):
        return None
    is_trusted = claim.start is not None and config[OFFSET_MISMATCH_STRATEGY] in _TRUSTING
    return SlotGap("the slot was moved", f"{_lost(claim, slot.confirmed)} ({slot})", name, AGAIN, is_trusted)


def _other_history(name: str, claim: LogClaim, why: str, last: str) -> SlotGap:
    reached = claim.end if claim.end is not None else claim.start
    assert reached is not None
    when = "" if claim.since_us is None else f" ({moment(claim.since_us)})"
    what = (
        f"the checkpoint is at {format_lsn(reached)}{when}, so {last} that were read never happened there, and what "
        "happened instead is lost to this pipeline"
    )
    remedy = f"{AGAIN}; was the server restored from a backup, or failed over to one that lagged?"
    return SlotGap(f"the server's log is not the one that was read: {why}", what, name, remedy)


def _lost(claim: LogClaim, upto: int) -> str:
    if claim.start is None:
        return f"changes from its snapshot up to {format_lsn(upto)} are lost to this pipeline"
    when = "" if claim.since_us is None else f" ({moment(claim.since_us)})"
    return (
        f"changes from {format_lsn(claim.start)}{when} up to {format_lsn(upto)}, {size(max(upto - claim.start, 0))} "
        "of log, are lost to this pipeline"
    )


def taken(config: Config, application: str, claim: LogClaim) -> None:
    """Make sure that this pipeline can stream what it claims: an earlier reader of its own is ended, see slot.free.

    Raises OffsetError for a gap, SourceError for a slot that a stranger holds.
    """
    with connect(config, application=f"{application} control") as connection:
        lost = find(connection, config, replace(claim, seen=None))
        if lost is None:
            slots.free(connection, config, application)
            lost = find(connection, config, claim)  # whoever held it may have moved it
        if lost is None:
            return
        if not lost.is_trusted:
            raise lost.error()
        log.warning("slot %s: %s", lost.slot, lost)


def given_up(connection: psycopg.Connection, config: Config, application: str) -> None:
    """Drop the slot, if there is one, so that a lost position stays lost for every later check. Raises SourceError."""
    slot = slots.free(connection, config, application)
    if slot is not None:
        slots.drop(connection, slot)
