"""Detects that the server's log is not the one that was read, by its end, its timelines and its transactions."""

from __future__ import annotations

import logging
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta, timezone

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.postgres.log.protocol.pgoutput import EPOCH_US
from tailrace.connectors.postgres.options import PUBLICATION_NAME
from tailrace.connectors.postgres.position import LogClaim, SeenLog, format_lsn, parse_lsn
from tailrace.connectors.postgres.server.connect import connect, first_line
from tailrace.connectors.postgres.server.slot import Slot, stream_parameters

log = logging.getLogger(__name__)

_PAGE, _PAGE_HEADER, _FILE_HEADER, _SMALLEST_FILE = 8192, 24, 40, 1 << 20

# Of a Commit message: the place of the commit record, its end, and the time, each of 8 bytes. A replicated
# transaction (with a message `O`) has the time of the server it comes from.
_COMMITS = """
WITH sent AS MATERIALIZED (
  SELECT xid::text, data FROM pg_logical_slot_peek_binary_changes({slot}, {end}, NULL, VARIADIC {options}::text[])
  WHERE get_byte(data, 0) IN (67, 79)
), commits AS (
  SELECT ('x' || encode(substr(data, 3, 8), 'hex'))::bit(64)::bigint AS start,
         ('x' || encode(substr(data, 11, 8), 'hex'))::bit(64)::bigint AS stop,
         ('x' || encode(substr(data, 19, 8), 'hex'))::bit(64)::bigint AS at,
         xid IN (SELECT xid FROM sent WHERE get_byte(data, 0) = 79) AS is_replicated
  FROM sent WHERE get_byte(data, 0) = 67
)
SELECT min(at) FILTER (WHERE at > {clock} AND NOT is_replicated), coalesce(bool_or(stop = {last}), false)
FROM commits WHERE start < {reached}
"""

# A standby's time is read before its position, as the row of the subquery comes first. `statement_timestamp` is the
# time when the query came.
_END = """
WITH before AS MATERIALIZED (
  SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_xact_replay_timestamp() ELSE statement_timestamp() END AS at
)
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END::text,
  pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN NULL ELSE {timeline} END,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  (SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s),
  (extract(epoch FROM before.at) * 1000000)::bigint,
  CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_insert_lsn() END::text
FROM before
"""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a server's log ends, its clock then, and the slot's confirmed position.

    A standby may be behind what it had before it restarted. `committed_us` and `inserted`: what had returned from its
    commit before that time lies before that position, see `log_end`; None where nothing is known.
    """

    lsn: int
    is_standby: bool
    timeline: int | None
    clock_us: int
    _: KW_ONLY
    confirmed: int | None
    committed_us: int | None = None
    inserted: int | None = None

    @property
    def position(self) -> int:
        """The position up to which the log can be read."""
        return self.lsn

    @property
    def seen(self) -> SeenLog | None:
        """What an offset remembers of it."""
        return None if self.confirmed is None or self.is_standby else SeenLog(self.confirmed, self.clock_us)


def log_end(connection: psycopg.Connection, slot: str, *, with_timeline: bool) -> LogEnd:
    """Where the server's log ends now, flushed; with the timeline where it can tell that (no standby does).

    A commit returns when its record is in the log, and with synchronous_commit=off before that is flushed. So what had
    returned before the query came lies before the end of the log that is not flushed yet. A standby does not know its
    primary's clock, but the time of the last transaction that it has replayed: a server takes that before it writes the
    commit into the log, so whatever had returned before it was written earlier.
    """
    timeline = (
        "('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int" if with_timeline else "NULL"
    )
    row = connection.execute(_END.format(timeline=timeline).encode(), [slot]).fetchone()
    assert row is not None
    end, is_standby, timeline_id, clock_us, confirmed, committed_us, inserted = row
    return LogEnd(
        parse_lsn(end),
        is_standby,
        timeline_id,
        clock_us,
        confirmed=None if confirmed is None else parse_lsn(confirmed),
        committed_us=committed_us,
        inserted=parse_lsn(end) if inserted is None else _before_header(parse_lsn(inserted)),
    )


def left_at(config: Config, now: LogEnd, timeline: int | None, reached: int) -> int | None:
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
    """The same position as the end of the flushed log has it, if it was queried as the place of the next record.

    That one lies behind the header of a page of the log, which is longer on the first page of a file.
    """
    header = _FILE_HEADER if lsn % _SMALLEST_FILE == _FILE_HEADER else _PAGE_HEADER
    return lsn - header if lsn % _PAGE == header else lsn


def _history(config: Config, timeline: int) -> dict[int, int] | None:
    """The timelines that a timeline came from, each with the position it was left at; None, logged, if unknown."""
    with connect(config, replication=True, application="tailrace history") as connection:
        try:
            row = connection.execute(sql.SQL("TIMELINE_HISTORY {}").format(sql.Literal(timeline))).fetchone()
        except psycopg.Error as error:
            log.warning("cannot verify that timeline %d continues the checkpoint's: %s", timeline, first_line(error))
            return None
    assert row is not None
    text = row[1] if isinstance(row[1], str) else bytes(row[1]).decode()
    fields = [line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return {int(number): parse_lsn(lsn) for number, lsn, *_ in fields}


def rewritten(connection: psycopg.Connection, config: Config, slot: Slot, claim: LogClaim) -> str | None:
    """What tells that the log up to the claim's start was written again after it was read; None if nothing does.

    Only a slot that is no further than it was before the log was read gives rise to doubt: the server has crashed and
    forgotten a confirmation, or it was restored from a copy and has grown beyond the claim since. The slot then still
    has the log that was read, so its transactions are looked at, without moving the slot. In the log that was read each
    transaction ended before the server's clock of that time, and the last one that was read is among them.
    """
    seen, reached = claim.seen, claim.start
    if seen is None or reached is None or slot.confirmed is None or slot.confirmed > seen.confirmed:
        return None
    if slot.is_lost or slot.active_pid is not None or slot.confirmed >= reached:
        return None
    transactions = _transactions(connection, config, slot, seen, reached)
    if transactions is None:
        return None
    later, has_last = transactions
    if later is not None:
        at = datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=later + EPOCH_US)
        return f"it was written again from {at:%Y-%m-%d %H:%M:%S} UTC at the latest"
    if not has_last and _is_sent(slot.confirmed, seen.last_commit):
        assert seen.last_commit is not None
        return f"the last transaction that was read, which ended at {format_lsn(seen.last_commit)}, is not in it"
    return None


def _transactions(
    connection: psycopg.Connection, config: Config, slot: Slot, seen: SeenLog, reached: int
) -> tuple[int | None, bool] | None:
    """The earliest transaction before `reached` that ended after the clock `seen`, and whether the last one is there.

    Times are in microseconds since 2000. None if somebody has begun to read the slot.
    """
    publication = config[PUBLICATION_NAME]
    options = {"proto_version": "1", "publication_names": publication, **stream_parameters(config)}
    query = sql.SQL(_COMMITS).format(
        slot=sql.Literal(slot.name),
        end=sql.Literal(format_lsn(reached)),
        options=sql.Literal([part for pair in options.items() for part in pair]),
        clock=sql.Literal(seen.clock_us - EPOCH_US),
        last=sql.Literal(seen.last_commit or 0),
        reached=sql.Literal(reached),
    )
    # Not a warning: so it is after each run whose last micro-batch was not confirmed, as one that ends by itself.
    log.info(
        "slot %s has confirmed %s and the checkpoint has read to %s: the log between is compared with what was read",
        *(slot.name, format_lsn(slot.confirmed or 0), format_lsn(reached)),
    )
    try:
        row = connection.execute(query).fetchone()
    except psycopg.errors.ObjectInUse:
        return None
    assert row is not None
    return row[0], row[1]


def _is_sent(confirmed: int, last_commit: int | None) -> bool:
    """Whether the slot sends the transaction that ended there.

    A position on the border of a page may lie inside the record of a commit, which is then not sent.
    """
    if last_commit is None:
        return False
    return last_commit > confirmed + (_PAGE if confirmed % _PAGE == 0 else 0)
