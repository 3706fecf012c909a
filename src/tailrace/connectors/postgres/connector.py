"""Implements Connector (connectors/log_ports.py) for PostgreSQL."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import guard
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.log_ports import Committed, Connector, Watched
from tailrace.connectors.notifications import INITIAL, SKIPPED, Notice
from tailrace.connectors.offset import Reached
from tailrace.connectors.postgres import takeover
from tailrace.connectors.postgres.admin.check_ddl import warn_of_triggers
from tailrace.connectors.postgres.catalog.capturing import Capturing, next_transaction
from tailrace.connectors.postgres.catalog.enum_labels import EnumLabels
from tailrace.connectors.postgres.catalog.structures import Structures
from tailrace.connectors.postgres.catalog.tables import Catalog, system_identifier
from tailrace.connectors.postgres.log.reader import LogRange, changes
from tailrace.connectors.postgres.options import LSN_FLUSH_MODE, ROWS_FOR_REPLICA, SLOT_NAME, XMIN_FETCH_INTERVAL_MS
from tailrace.connectors.postgres.position import (
    SOURCE_TYPE,
    LogClaim,
    claim,
    claim_of_slot,
    format_lsn,
    last_commit,
    parse_lsn,
    remembered,
    source_block,
)
from tailrace.connectors.postgres.server import lost_log, publication, slot
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.server.control import Control
from tailrace.connectors.postgres.server.history import LogEnd
from tailrace.connectors.postgres.server.lost_log import SlotGap
from tailrace.connectors.postgres.server.publication_watch import PublicationWatch
from tailrace.connectors.postgres.server.published import tell_left_out
from tailrace.connectors.postgres.snapshot import rows, selects
from tailrace.connectors.postgres.snapshot.fence import Visibility
from tailrace.connectors.postgres.snapshot.server import PostgresSnapshots
from tailrace.errors import SourceError
from tailrace.model.structure import Structure
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

log = logging.getLogger(__name__)


class PostgresConnector(Connector):
    """Implements Connector. A position is an LSN; a range is [start, end) by commit records."""

    source_type = SOURCE_TYPE
    notices_without_rows: tuple[Notice, ...] = (Notice(INITIAL, SKIPPED),)
    notices_at_restart: tuple[Notice, ...] = (Notice(INITIAL, SKIPPED),)
    continues_without_rows = False
    skips_whole_changes = False
    changes = staticmethod(changes)
    fence = staticmethod(Visibility.parse)
    rows = staticmethod(rows.read)
    text = staticmethod(format_lsn)
    parse = staticmethod(parse_lsn)

    def __init__(self, config: Config) -> None:
        self.config = config
        self.source = source_block(config)
        self._slot = config[SLOT_NAME]
        self._control = Control(config)
        self._ask = self._control.ask
        self._snapshots = PostgresSnapshots(config, self._ask)
        self._watch = PublicationWatch(self._ask)
        self._labels = EnumLabels()
        self._structures = Structures()

    @property
    @override
    def snapshots(self) -> PostgresSnapshots:
        return self._snapshots

    @cached_property
    @override
    def identity(self) -> str:
        """System identifier, database and slot."""
        return f"{self._ask(system_identifier)}/{self.config[DATABASE_DBNAME]}/{self._slot}"

    @override
    def within(self, start: int, end: int, limit: int) -> int:
        return min(end, start + limit)

    @override
    def hold(self, application: str) -> None:
        """By a lock in the database."""
        self._control.hold(application)

    @override
    def check_start(self, config: Config) -> None:
        self._ask(lambda connection: guard(config, Catalog(connection, config).tables()))
        self._ask(lambda connection: warn_of_triggers(connection, config))
        self._ask(lambda connection: tell_left_out(connection, config))
        if Fault.LABELS_OF_START in config[COMPAT_FAULTS]:
            self._ask(self._labels.keep)

    @override
    def watch(self, config: Config) -> Watched:
        """Compares the publication."""
        added = self._watch.adapt(config)
        late = tuple((".".join(name), publication.ADDED_LATE) for name in added)
        return Watched(self._watch.look(config), late)

    @override
    def tables(self, config: Config) -> list[TableSchema]:
        def described(connection: psycopg.Connection) -> list[TableSchema]:
            catalog = Catalog(connection, config)
            tables = (catalog.table(table) for table in catalog.tables())
            return [table.schema for table in tables if table is not None]

        return self._ask(described)

    @override
    def structures(self, config: Config, reached: Reached) -> Mapping[TableId, Structure]:
        return self._ask(lambda connection: self._structures.read(connection, config, reached.log))

    @override
    def schema(self, config: Config, table: TableId) -> TableSchema | None:
        def described(connection: psycopg.Connection) -> TableSchema | None:
            captured = Catalog(connection, config).table(table)
            return None if captured is None else captured.schema

        return self._ask(described)

    @override
    def log_end(self) -> LogEnd:
        return self._control.log_end()

    @override
    def committed(self, end: LogEnd) -> Committed | None:
        if end.committed_us is None or end.inserted is None:
            return None
        return Committed(end.committed_us, end.inserted)

    @override
    def measures(self, reached: int | None, end: LogEnd) -> Mapping[str, int]:
        """The slot keeps the log from its restart_lsn on."""
        lag = {} if reached is None else {"lag_bytes": max(0, end.lsn - reached)}
        restart = self._ask(lambda connection: slot.restart(connection, self.config))
        return lag if restart is None else {**lag, "log_retained_bytes": max(0, end.lsn - restart)}

    @override
    def clock_again(self, end: LogEnd) -> LogEnd:
        return replace(end, clock_us=self._control.log_end().clock_us)

    @override
    def begins(self, reached: Reached) -> int:
        """At the slot's confirmed position."""
        lost = self.lost(reached)
        if lost is not None:
            raise lost.error()
        present = self._ask(lambda connection: slot.existing(connection, self.config))
        if present is None or present.confirmed is None:
            raise SourceError("the slot is not ready", where=f"slot {self._slot}", remedy="start again")
        return present.confirmed

    @override
    def lost(
        self, reached: Reached, end: Reached | None = None, *, position: int | None = None, is_routine: bool = False
    ) -> SlotGap | None:
        claimed = claim(reached) if position is None else LogClaim(position)
        if end is not None:
            claimed = replace(claimed, end=end.position, timeline=end.log.get("timeline"))
        if is_routine:
            # What was seen of the server is compared over each new connection, as that may be to another server.
            claimed = claimed if self._control.is_new else replace(claimed, seen=None)
        gap = self._ask(lambda connection: lost_log.find(connection, self.config, claimed))
        if is_routine:
            self._control.is_new = False
        return gap

    @override
    def give_up(self, reached: Reached) -> None:
        """Drops the slot."""
        self._ask(lambda connection: lost_log.given_up(connection, self.config, reached.application))

    @override
    def taken_over(self, end: LogEnd) -> tuple[int, Mapping[str, Any]] | None:
        """From the slot's confirmed position on, or what Debezium has sent beyond it."""
        sent = takeover.last_sent(self.config)
        if sent is None:
            return None
        takeover.check_kept(sent, self._ask(lambda connection: slot.restart(connection, self.config)), self._slot)
        confirmed, log = self.first(end, reads_tables=False)
        if confirmed is None:
            raise takeover.without_slot(self._slot)
        return max(confirmed, sent), log

    @override
    def first(self, end: LogEnd, *, reads_tables: bool) -> tuple[int | None, Mapping[str, Any]]:
        """A slot that exists is another pipeline's, unless slot.takeover says to use it."""
        taken = self._ask(lambda connection: slot.check_owned(connection, self.config, None))
        if taken is None or taken.confirmed is None:
            return None, remembered(slot=self._slot, moved_from=end.lsn, capturing=self._capturing({}))
        log.warning("slot %s is taken over: %s", taken.name, taken)
        position = None if reads_tables else taken.confirmed
        return position, remembered(slot=self._slot, moved_from=taken.confirmed, capturing=self._capturing({}))

    @override
    def again(self, reached: Reached, end: LogEnd) -> Mapping[str, Any]:
        """The slot will be moved or created."""
        moved_from = claim(reached).moved_from if reached.position is None else end.lsn
        return remembered(slot=self._slot, moved_from=moved_from, capturing=self._capturing(reached.log))

    @override
    def older(self, config: Config, reached: Reached, tables: Collection[TableId]) -> Collection[TableId]:
        """The catalogue has the transaction that made a table."""
        return ()

    def _capturing(self, log: Mapping[str, Any]) -> Capturing | None:
        """What the next offset remembers of the captured tables, for sinks that keep these."""
        if not self.config[ROWS_FOR_REPLICA]:
            return None
        return Capturing.at(self.config, log, self._ask(next_transaction))

    @override
    def advanced(self, config: Config, reached: Reached, start: int, to: int, end: LogEnd | None) -> Mapping[str, Any]:
        read = self._ask(lambda connection: slot.last_read(connection, reached.application))
        last, before = max(last_commit(reached.log) or 0, read) or None, claim(reached)
        # After the end of the range is known: no row before it has a label that is added later.
        labels = self._ask(lambda connection: self._labels.read(connection, config)) if to > start else {}
        capturing = self._capturing(reached.log)
        if end is None:
            return remembered(last, timeline=before.timeline, seen=before.seen, labels=labels, capturing=capturing)
        # A batch without log moves no slot. Nobody moves it for us with lsn.flush.mode=manual.
        has_seen = to > start and self.config[LSN_FLUSH_MODE] != "manual"
        seen = end.seen if has_seen else before.seen
        return remembered(last, timeline=end.timeline, seen=seen, labels=labels, capturing=capturing)

    @override
    def check_first(self, start: Reached, end: Reached, *, is_retry: bool) -> None:
        self._ask(
            lambda connection: publication.demand(
                connection, self.config, lambda: selects.missing_grants(connection, self.config)
            )
        )
        if not is_retry and claim_of_slot(start, end).moved_from is not None:
            self._ask(lambda connection: slot.check_unread(connection, self.config))

    @override
    def open_log(self, config: Config, start: Reached, end: Reached) -> None:
        """Creates the slot, unless the log is read from its confirmed position on."""
        claimed = claim_of_slot(start, end)

        def prepare(connection: psycopg.Connection) -> None:
            lost = lost_log.find(connection, config, claimed) if claimed.start is not None else None
            if lost is not None:
                raise lost.error()
            present = slot.usable(connection, config, claimed)
            publication.ensure(connection, config, Catalog(connection, config).tables())
            if present is None:
                with connect(config, replication=True, application="tailrace planner") as holder:
                    slot.create(holder, config)

        self._ask(prepare)

    @override
    def ranges(self, config: Config, start: Reached, begin: int, end: Reached, *, is_whole: bool) -> Sequence[LogRange]:
        """A slot has one reader."""
        xmin = None
        if self.config[XMIN_FETCH_INTERVAL_MS] > 0:
            xmin = self._ask(lambda connection: slot.xmin(connection, self.config))
        wanted = LogRange(
            start.application,
            begin,
            end.position,
            last_commit(end.log),
            xmin=xmin,
            timeline=end.log.get("timeline"),
            since_us=start.ts_us,
            seen=claim(start).seen,
            labels=end.log.get("labels"),
        )
        return [wanted]

    @override
    def execute(self, statement: str) -> None:
        self._ask(lambda connection: connection.execute(statement.encode()))

    @override
    def close(self) -> None:
        self._control.close()
