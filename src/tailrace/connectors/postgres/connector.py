"""The PostgreSQL connector: plans on the driver, reads on executors (see connectors/base.py for the protocol)."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import psycopg

from tailrace.capture.log_split import LogSplit, read_log
from tailrace.config import Config
from tailrace.config.filters import guard
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.base import Chunk, Offset
from tailrace.connectors.offset import BEGIN, SNAPSHOT, STREAM
from tailrace.connectors.postgres.admin.check_ddl import warn_of_triggers
from tailrace.connectors.postgres.catalog.tables import Catalog, system_identifier
from tailrace.connectors.postgres.log.reader import LogRange, changes
from tailrace.connectors.postgres.position import SOURCE_TYPE, Claim, source_block
from tailrace.connectors.postgres.position import Offset as Position
from tailrace.connectors.postgres.server import history, lost_log, publication, slot
from tailrace.connectors.postgres.server.connect import connect, first_line, is_transient, server_errors
from tailrace.connectors.postgres.server.control import Control
from tailrace.connectors.postgres.server.publication_watch import PublicationWatch
from tailrace.connectors.postgres.snapshot import rows, splits
from tailrace.connectors.postgres.snapshot.exported import Export, export_now
from tailrace.connectors.postgres.snapshot.fence import Visibility
from tailrace.connectors.postgres.snapshot.server import PostgresSnapshots
from tailrace.connectors.retry import pause, retrying
from tailrace.errors import SourceError
from tailrace.events.notifications import INITIAL, SKIPPED, Notice
from tailrace.model.table import TableSchema
from tailrace.snapshot.channels import Channels
from tailrace.snapshot.initial import InitialSnapshot
from tailrace.snapshot.on_demand import AdHocSnapshots, Step
from tailrace.snapshot.reading import Reading

log = logging.getLogger(__name__)

Split = LogSplit | rows.SnapshotSplit | rows.EmptySplit


class PostgresConnector:
    """Implements Connector. Planning state is a control connection and, during a snapshot, what exports it."""

    source_type = SOURCE_TYPE

    def __init__(self, config: Config) -> None:
        self.config = config
        self.source = source_block(config)
        self._control = Control(config)
        self._ask = self._control.ask
        self._export: Export | None = None
        server = PostgresSnapshots(config, self._ask)
        self._initial = InitialSnapshot(config, server)
        self._planned: tuple[Offset, Offset, Sequence[Split]] | None = None
        self._watch = PublicationWatch(self._ask)
        self._has_started = False
        self._untold: tuple[Notice, ...] = ()
        self._mode = SnapshotMode.of(config)
        has_signals = config.names("signal.data.collection") or Channels.are_configured(config)
        self._adhoc = AdHocSnapshots(config, server) if has_signals else None

    def begin(self) -> Offset:
        """See Connector.begin."""
        return Position(self._source, uuid.uuid4().hex).to_json()

    def discover(self) -> list[TableSchema]:
        """See Connector.discover."""

        def tables(connection: psycopg.Connection) -> list[TableSchema]:
            catalog = Catalog(connection, self.config)
            found = (catalog.table(table) for table in catalog.tables())
            return [table.schema for table in found if table is not None]

        return self._ask(tables)

    def horizon(self) -> int:
        """See Connector.horizon."""
        return self._control.log_end(with_timeline=False).lsn

    def head(self, start: Offset, limit: int | None, until: int | None = None) -> Offset:
        """See Connector.head. Raises OffsetError for another source's checkpoint, SourceError."""
        here = self._position(start)
        self._control.hold(here.application)
        self._use(here)
        warnings = self._watched(here)
        is_start, self._has_started = not self._has_started, True
        if is_start:
            self._ask(lambda connection: guard(self.config, Catalog(connection, self.config).tables()))
            self._ask(lambda connection: warn_of_triggers(connection, self.config))
        # Before the position is compared with the server's log, so that what is planned is of a log that was compared.
        log_end = self._control.log_end()
        there = self._snapshot_after(here, log_end, is_start, limit)
        if there is not None:
            return there.to_json()
        if not self._mode.streams:
            return start
        self._end_export()
        if here.phase == SNAPSHOT:
            pause(self.config, "streaming.delay.ms")
        if is_start and here.phase == STREAM:
            self._untold = (Notice(INITIAL, SKIPPED),)
        newest, last = log_end.lsn, self._ask(lambda connection: slot.last_read(connection, here.application))
        from_lsn = here.lsn if here.lsn is not None else self._confirmed(here)
        end = min(newest, *(most for most in (until, limit and from_lsn + limit) if most is not None), newest)
        now = time.time_ns() // 1000
        is_due = self._is_heartbeat_due(here, now)
        if is_due:
            self._act()
        step = Step()
        if self._adhoc is not None:
            given = (here.progress, here.to_json(), from_lsn, is_start)
            step = self._adhoc.step(*given, is_behind=end < newest, warnings=warnings)
            self.config = self._adhoc.config
        if step.end is not None:
            # Of a chunk's window, whose end came after the first look at the server's clock.
            end, log_end = step.end, replace(log_end, clock_us=self._control.log_end().clock_us)
        # The position of a snapshot is written down at once, though nothing may have come after it.
        if end <= from_lsn and here.phase == STREAM and not step.moves and (until is not None or not is_due):
            return start
        last_commit, end, progress = max(here.last_commit or 0, last) or None, max(end, from_lsn), step.progress
        position = here.at(phase=STREAM, lsn=end, last_commit=last_commit, ts_us=now, progress=progress, reading=None)
        # A batch without log moves no slot. Nobody moves it for us with lsn.flush.mode=manual.
        has_seen = end > from_lsn and self.config.text("lsn.flush.mode") != "manual"
        seen = log_end.seen if has_seen else here.seen
        moved = position.at(timeline=log_end.timeline, moved_from=None, seen=seen).to_json()
        if self._adhoc is not None:
            self._adhoc.keep(moved, step)
        return moved

    def _snapshot_after(
        self, here: Position, log_end: history.LogEnd, is_start: bool, limit: int | None
    ) -> Position | None:
        """The position behind the next batch of a snapshot, None if there is nothing to read."""
        if here.phase == BEGIN:
            return self._first(here, log_end)
        if here.phase == SNAPSHOT and here.reading is not None:
            if not self._initial.has_begun and self._is_lost_amid(here):
                return self._again(here, log_end)
            there = self._snapshot_goes_on(here, here.reading, limit)
            if there != here:
                return there
        if self._mode.streams and self._reads_again(here, is_start):
            return self._again(here, log_end)
        return None

    def _first(self, here: Position, log_end: history.LogEnd) -> Position:
        """The position behind the first batch. It is stored before that creates the slot. Raises SourceError.

        A slot that is there already is another pipeline's, unless slot.takeover says to use it.
        """
        taken = self._ask(lambda connection: slot.check_owned(connection, self.config, None))
        progress = self._adhoc.before() if self._adhoc is not None else None
        reading = self._initial.first() if self._mode.at_first else None
        first = here.at(phase=SNAPSHOT, progress=progress, reading=reading, moved_from=log_end.lsn)
        if taken is None or taken.confirmed is None:
            return first
        log.warning("slot %s is taken over: %s", taken.name, taken)
        return first.at(moved_from=taken.confirmed, lsn=None if self._mode.at_first else taken.confirmed)

    def _again(self, here: Position, log_end: history.LogEnd) -> Position:
        """The position behind the first batch of a new snapshot. It is stored before that moves or creates the slot."""
        # The time tells this snapshot from one before it.
        again = here.at(phase=SNAPSHOT, lsn=None, last_commit=None, timeline=None, ts_us=time.time_ns() // 1000)
        moved_from = here.moved_from if here.lsn is None else log_end.lsn
        return again.at(reading=self._initial.first(), moved_from=moved_from, seen=None)

    def _is_lost_amid(self, here: Position) -> bool:
        """Whether a snapshot of several batches that another process began has to begin again. Raises OffsetError."""
        lost = self._ask(lambda connection: lost_log.find(connection, self.config, here.claim))
        if lost is not None and lost.is_foreign:
            raise lost.error()
        if lost is not None:
            log.warning("the snapshot begins anew: %s", lost)
        return lost is not None

    def _snapshot_goes_on(self, here: Position, reading: Reading, limit: int | None) -> Position:
        """After a restart first the log up to the new snapshot, then what is left.

        The position of the slot's snapshot is written down once rows read under it are committed.
        """
        stands = retrying(self.config, lambda: self._initial.resume(here.application, reading), is_transient)
        begun = self._initial.log_begins
        if stands is not None and begun is not None:
            following = self._initial.next(reading)
            is_first = following.undo is not None and following.undo.is_whole
            return here.at(reading=following) if is_first else here.at(lsn=begun, moved_from=None, reading=following)
        from_lsn = here.lsn if here.lsn is not None else self._confirmed(here)
        if stands is None or stands <= from_lsn:
            return here.at(reading=self._initial.next(reading))
        seen = self._ask(lambda connection: slot.last_read(connection, here.application))
        end = stands if limit is None else min(stands, from_lsn + limit)
        return here.at(lsn=end, last_commit=max(here.last_commit or 0, seen) or None, moved_from=None)

    def _use(self, position: Position) -> None:
        """Capture the tables that are captured at a position."""
        if self._adhoc is not None:
            self.config = self._initial.config = self._adhoc.use(position.progress)

    def _reads_again(self, here: Position, is_start: bool) -> bool:
        """Whether the tables are to be read again. Raises OffsetError where the log from here on is lost instead.

        What was seen of the server is compared with each connection that is new, as that may be to another server.
        """
        begins = self._initial.log_begins
        claim = here.claim if here.lsn is not None or begins is None else Claim(begins)
        claim = claim if self._control.is_new else replace(claim, seen=None)
        lost = self._ask(lambda connection: lost_log.find(connection, self.config, claim))
        self._control.is_new = False
        if lost is not None and lost.is_foreign and not lost.is_trusted:
            raise lost.error()
        if self._mode.at_start and is_start and begins is None:
            return True
        if lost is not None and self._mode.when_lost:
            log.warning("the position is lost: %s; a new snapshot is taken", lost)
            return True
        if lost is not None and not lost.is_trusted:
            raise lost.error()
        return False

    def _is_lost_meanwhile(self, start: Position, end: Position) -> bool:
        """Whether a stretch that an earlier process planned is lost, and a new snapshot comes instead.

        The slot goes, so that the snapshot is taken whatever happens before that.
        """
        if not self._mode.when_lost or self._has_started:
            return False
        claim = replace(start.claim, end=end.lsn, timeline=end.timeline)
        lost = self._ask(lambda connection: lost_log.find(connection, self.config, claim))
        if lost is None:
            return False
        if lost.is_foreign:
            raise lost.error()
        log.warning("the last batch planned reads nothing, as the position is lost: %s", lost)
        self._ask(lambda connection: lost_log.given_up(connection, self.config, start.application))
        return True

    def _is_heartbeat_due(self, since: Position, now: int) -> bool:
        """Whether a beat of the clock, as many as heartbeat.interval.ms makes, lies between two plannings."""
        interval = self.config.number("heartbeat.interval.ms") * 1000
        return interval > 0 and (since.ts_us is None or now // interval > since.ts_us // interval)

    def _act(self) -> None:
        """Run heartbeat.action.query. A failure is told and does no harm to the stream, as in Debezium."""
        query = self.config.optional("heartbeat.action.query")
        if query:
            try:
                self._ask(lambda connection: connection.execute(query.encode()))
            except (SourceError, psycopg.Error) as error:
                log.error("heartbeat.action.query failed: %s", first_line(error))

    def has_snapshot(self, offset: Offset) -> bool:
        """See Connector.has_snapshot."""
        position = self._position(offset)
        return position.phase != STREAM or (position.progress is not None and bool(position.progress.queue))

    def plan(self, start: Offset, end: Offset) -> Sequence[Split]:
        """See Connector.plan. Asked again for the same range (a second action on a batch), gives the same splits."""
        if self._planned is None or self._planned[:2] != (start, end):
            read_id = uuid.uuid4().hex
            planned = self._plan(self._position(start), self._position(end))
            self._planned = start, end, [replace(split, read_id=read_id) for split in planned]
        return self._planned[2]

    def _plan(self, start: Position, end: Position) -> Sequence[Any]:
        self._control.hold(end.application)
        self._use(end)
        if start == end:
            return []
        if end.phase == SNAPSHOT:
            goes_on = start.phase == SNAPSHOT and start.reading is not None and start.ts_us == end.ts_us
            if not goes_on:
                return self._begin_log(start, end)
            if end.lsn is None or end.lsn == (self._confirmed(start) if start.lsn is None else start.lsn):
                return self._initial.splits(end.reading)
        assert end.lsn is not None
        if self._is_lost_meanwhile(start, end):
            return []
        step = self._adhoc.kept(end.to_json()) if self._adhoc is not None else Step()
        if step.splits is not None:
            return step.splits
        from_lsn = start.lsn if start.lsn is not None else self._confirmed(start)
        is_due = end.ts_us is not None and self._is_heartbeat_due(start, end.ts_us)
        heartbeat = end.ts_us // 1000 if end.ts_us is not None and is_due else None
        wanted = LogRange(
            start.application, from_lsn, end.lsn, end.last_commit, None, end.timeline, start.ts_us, start.seen
        )
        if self.config.number("xmin.fetch.interval.ms") > 0:
            wanted = replace(wanted, xmin=self._ask(lambda connection: slot.xmin(connection, self.config)))
        notices, self._untold = (*self._untold, *step.notices), ()
        untouched = () if start.reading is None else start.reading.untouched
        return [LogSplit(wanted, heartbeat, step.chunk, notices, self.config.tables, untouched)]

    def _begin_log(self, start: Position, end: Position) -> Sequence[Any]:
        """Prepare publication and slot; read the tables if snapshot.mode says so, which it has where `start` has a log.

        Planned again after a restart this begins anew: under a new exported snapshot, to whose position the slot moves.
        The pipeline's name is that of `end`, which is stored: of a first batch Spark asks for `start` again and again.
        """
        pause(self.config, "snapshot.delay.ms")
        if start.phase == BEGIN:
            self._ask(lambda connection: publication.demand(connection, self.config))
        claim = end.claim_of_slot(start)
        if start.phase == BEGIN and not self._initial.has_begun and claim.moved_from is not None:
            self._ask(lambda connection: slot.check_unread(connection, self.config))
        if start.phase == BEGIN and not self._mode.at_first:
            self._ask(lambda connection: self._prepare_slot(connection, claim))
            self._untold = (Notice(INITIAL, SKIPPED),)
            return []
        return retrying(self.config, lambda: self._initial.begin(end.application, end.reading, claim), is_transient)

    def _watched(self, here: Position) -> tuple[str, ...]:
        """Warnings about the publication of a pipeline that has begun. Raises SourceError where changes are lost."""
        if here.phase == BEGIN or not self._mode.streams:
            return ()
        added = self._watch.adapt(self.config)
        if added and self._adhoc is not None:
            self._adhoc.late = tuple((".".join(name), publication.ADDED_LATE) for name in added)
        return self._watch.look(self.config)

    def _prepare_slot(self, connection: psycopg.Connection, claim: Claim) -> None:
        """Create the slot, unless it exists and the log is read from its confirmed position on. Raises OffsetError."""
        lost = lost_log.find(connection, self.config, claim) if claim.start is not None else None
        if lost is not None:
            raise lost.error()
        present = slot.usable(connection, self.config, claim)
        publication.ensure(connection, self.config, Catalog(connection, self.config).tables())
        if present is None:
            with connect(self.config, replication=True, application="tailrace planner") as holder:
                slot.create(holder, self.config)

    def snapshot_of(self, split: Split) -> str | None:
        """See Connector.snapshot_of."""
        if isinstance(split, LogSplit):
            return None
        moment = split.moment
        return f"{moment.name} {moment.lsn} {moment.ts_us}"  # a server gives names again after its restart

    def snapshot(self) -> Sequence[Split]:
        """See Connector.snapshot: the tables as of now, without slot or publication."""
        self._end_export()
        with server_errors("the snapshot cannot be planned"):
            self._export = export_now(self.config)
            return splits.plan(self.config, self._export)

    def read(self, split: Split) -> Iterator[Chunk]:
        """See Connector.read."""
        if isinstance(split, LogSplit):
            yield from read_log(self.config, split, changes, Visibility.parse)
        else:
            with server_errors("the snapshot cannot be read"):
                yield from rows.read(self.config, split)

    def acknowledge(self, offset: Offset) -> None:
        """Nothing: the reader of the next stretch acknowledges its start, which Spark has committed by then."""

    def close(self) -> None:
        """See Connector.close."""
        self._end_export()
        if self._adhoc is not None:
            self._adhoc.close()
        self._control.close()

    def _end_export(self) -> None:
        self._initial.close()
        if self._export is not None:
            self._export.close()
            self._export = None

    def _position(self, offset: Offset) -> Position:
        return Position.from_json(offset, self._source)

    @cached_property
    def _source(self) -> str:
        """What a checkpoint belongs to: system identifier, database and slot."""
        identifier = self._ask(system_identifier)
        return f"{identifier}/{self.config.text('database.dbname')}/{self.config.text('slot.name')}"

    def _confirmed(self, here: Position) -> int:
        """Where the log begins after the snapshot: where that was taken or, by another planner, where the slot is.

        Nothing of ours moves the slot before the first stretch of the log is committed. If it was moved all the same,
        the reader that starts at the snapshot's position finds out.
        """
        if self._initial.log_begins is not None:
            return int(self._initial.log_begins)
        lost = self._ask(lambda connection: lost_log.find(connection, self.config, here.claim))
        if lost is not None:
            raise lost.error()
        present = self._ask(lambda connection: slot.existing(connection, self.config))
        if present is None or present.confirmed is None:
            where = f"slot {self.config.text('slot.name')}"
            raise SourceError("the slot is not ready", where=where, remedy="start again")
        return present.confirmed
