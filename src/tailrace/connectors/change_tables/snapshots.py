"""Implements the protocols of snapshots (connectors/snapshot_ports.py) on change tables."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from tailrace.config import Config
from tailrace.connectors.change_tables.chunks import Session
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.change_tables.rows import Moment, Split
from tailrace.connectors.change_tables.signals import ChangeTableSignals
from tailrace.connectors.change_tables.splits import SplitPlanner
from tailrace.connectors.change_tables.tables import Connection, Server
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS
from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.signal_source import SignalSource
from tailrace.connectors.snapshot_ports import OnDemandSnapshots
from tailrace.connectors.snapshots import Place
from tailrace.model.table import TableId


@dataclass(frozen=True)
class Handle:
    """Implements SnapshotHandle: tables are read as they are, and the log from its position on has what came since."""

    moment: Moment
    tells_structures: bool = False

    @property
    def position(self) -> Reading:
        """See SnapshotHandle.position."""
        return self.moment.position

    def is_valid(self, config: Config) -> bool:
        """See SnapshotHandle.is_valid: nothing is held."""
        return True

    def close(self) -> None:
        """See SnapshotHandle.close."""


class ChangeTableSnapshots(OnDemandSnapshots):
    """Implements OnDemandSnapshots."""

    def __init__(self, dialect: Dialect, config: Config, server: Server) -> None:
        self._dialect, self._server, self.failures = dialect, server, dialect.failures
        self._signals = SignalSource(config, self.failures, ChangeTableSignals.of(dialect, config))

    def tables(self, config: Config) -> list[TableId]:
        """See Snapshots.tables."""
        return self._server.ask(lambda connection: self._dialect.catalog(connection, config).captured())

    def sizes(self, config: Config) -> list[tuple[str, int]]:
        """See Snapshots.sizes."""
        found = self._server.ask(lambda connection: SplitPlanner(self._dialect, connection, config).sizes())
        return [(str(table), size) for table, size in found]

    def open_at_log(self, config: Config, start: Reached, end: Reached) -> Handle:
        """See Snapshots.open_at_log: the log begins where the offset says."""
        moment = self._server.ask(
            lambda connection: self._moment(connection, config, Reading.from_text(end.log[BEGINS]))
        )
        return Handle(moment, tells_structures=True)

    def open_now(self, config: Config) -> Handle:
        """See Snapshots.open_now."""
        moment = self._server.ask(lambda connection: self._moment(connection, config, None))
        return Handle(replace(moment, last=()))

    def open(self, config: Config, application: str, *, once: bool = False) -> Handle:
        """See Snapshots.open."""
        moment = self._server.ask(lambda connection: self._moment(connection, config, None))
        return Handle(moment, tells_structures=once)

    def plan(
        self,
        config: Config,
        handle: Handle,
        wanted: Mapping[str, str | None] | None = None,
        place: Place | None = None,
    ) -> Sequence[Split]:
        """See Snapshots.plan."""

        def planned(connection: Connection) -> list[Split]:
            has_select = wanted is not None and any(select is not None for select in wanted.values())
            with self._dialect.undone(connection) if has_select else nullcontext():
                planner = SplitPlanner(self._dialect, connection, config)
                splits = planner.plan(handle.moment, wanted, place)
            if handle.tells_structures and splits and (place is None or place.is_whole):
                splits[0] = replace(splits[0], structures=planner.structures(wanted))
            return splits

        return self._server.ask(planned)

    def new_signals(self, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        """See OnDemandSnapshots.new_signals."""
        return self._server.ask(lambda connection: self._signals.new(connection, handled))

    @contextmanager
    def chunks(self, config: Config) -> Iterator[Session]:
        """See OnDemandSnapshots.chunks. A lost connection is let go, so that the next session has another one."""
        try:
            yield Session(self._dialect, self._server.connection, config, self._signals)
        except Exception as error:
            if self.failures.is_lost(error):
                self._server.close()
            raise

    def existing(self, tables: Sequence[TableId]) -> list[TableId]:
        """See OnDemandSnapshots.existing."""
        config = self._server.config
        known = self._server.ask(lambda connection: self._dialect.catalog(connection, config).tables())
        return [table for table in tables if table in known]

    def _moment(self, connection: Connection, config: Config, position: Reading | None) -> Moment:
        """The moment of a first snapshot at a position, or that of a snapshot on demand."""
        ts_us, name = self._dialect.now_us(connection), uuid.uuid4().hex
        if position is not None:
            return Moment(position, ts_us, name)
        catalog = self._dialect.catalog(connection, config)
        position = self._dialect.log_end(connection, config)
        last = []
        for database, lsn in position.lsns:
            change = self._dialect.last_change(connection, catalog.instances(database), lsn)
            if change is not None:
                last.append((database, change))
        return Moment(position, ts_us, name, tuple(last))
