"""Implements the protocols of snapshots (connectors/snapshot_ports.py) on tables that are read by SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from tailrace.config import Config
from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.signal_source import SignalSource
from tailrace.connectors.snapshot_ports import OnDemandSnapshots, SnapshotHandle
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.connectors.sql_tables.captured import CapturedTables
from tailrace.connectors.sql_tables.chunks import Session
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.rows import Moment, Split
from tailrace.connectors.sql_tables.signal_table import SqlSignals
from tailrace.connectors.sql_tables.splits import SqlCuts
from tailrace.connectors.sql_tables.tables import Connection, Server
from tailrace.model.table import TableId
from tailrace.override import override


@dataclass(frozen=True)
class Handle(SnapshotHandle):
    """Implements SnapshotHandle: tables are read as they are, and the log from its position on has what came since."""

    moment: Moment
    tells_structures: bool = False

    @property
    @override
    def position(self) -> Any:
        return self.moment.position

    @override
    def is_valid(self, config: Config) -> bool:
        """Nothing is held."""
        return True

    @override
    def close(self) -> None: ...


class SqlSnapshots(OnDemandSnapshots):
    """Implements OnDemandSnapshots over a SqlDialect; `moment` and `open_at_log` are the log's."""

    def __init__(self, dialect: SqlDialect, config: Config, server: Server) -> None:
        self.dialect, self.server, self.failures = dialect, server, dialect.failures
        self._signals = SignalSource(config, self.failures, SqlSignals.of(dialect, config))

    @override
    def tables(self, config: Config) -> list[TableId]:
        return self.server.ask(lambda connection: self.dialect.catalog(connection, config).captured())

    @override
    def sizes(self, config: Config) -> list[tuple[str, int]]:
        sizes = self.server.ask(lambda connection: CapturedTables(self.dialect, connection, config).sizes())
        return [(str(table), size) for table, size in sizes]

    def moment(self, connection: Any, config: Config) -> Moment:
        """The present moment, for a snapshot on demand. May raise the driver's errors."""
        raise NotImplementedError

    @override
    def open(self, config: Config, application: str, *, once: bool = False) -> Handle:
        return Handle(self.server.ask(lambda connection: self.moment(connection, config)), tells_structures=once)

    @override
    def cut(
        self,
        config: Config,
        handle: Handle,
        wanted: Mapping[str, str | None] | None,
        place: SnapshotPlace | None,
        plan: Callable[[SqlCuts], list[Split]],
    ) -> Sequence[Split]:
        def planned(connection: Connection) -> list[Split]:
            has_select = wanted is not None and any(select is not None for select in wanted.values())
            with self.dialect.undone(connection) if has_select else nullcontext():
                cuts = SqlCuts(self.dialect, connection, config, handle.moment, wanted)
                splits = plan(cuts)
            if handle.tells_structures and splits and (place is None or place.is_whole):
                splits[0] = replace(splits[0], structures=cuts.structures(wanted))
            return splits

        return self.server.ask(planned)

    @override
    def verified(self, config: Config, handle: Handle, place: SnapshotPlace) -> SnapshotPlace:
        """A table that has another key by now is begun again."""
        last = place.last
        if last is None:
            return place

        def goes_on(connection: Connection) -> bool:
            tables = CapturedTables(self.dialect, connection, config)
            table = next((each for each in tables.tables() if str(each) == place.left[0]), None)
            return table is not None and len(tables.described(table).key) == len(last)

        return place if self.server.ask(goes_on) else place.restarted()

    @override
    def new_signals(self, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        return self.server.ask(lambda connection: self._signals.new(connection, handled))

    @contextmanager
    @override
    def chunks(self, config: Config) -> Iterator[Session]:
        """A lost connection is let go, so that the next session has another one."""
        try:
            yield Session(self.dialect, self.server.connection, config, self._signals)
        except Exception as error:
            if self.failures.is_lost(error):
                self.server.close()
            raise

    @override
    def existing(self, tables: Sequence[TableId]) -> list[TableId]:
        config = self.server.config
        all_tables = self.server.ask(lambda connection: self.dialect.catalog(connection, config).tables())
        return [table for table in tables if table in all_tables]
