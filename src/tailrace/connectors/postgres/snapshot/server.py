"""Implements the protocols of snapshots (connectors/snapshot_ports.py) on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.connectors.offset import Reached
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.position import claim_of_slot
from tailrace.connectors.postgres.server import connect, publication
from tailrace.connectors.postgres.snapshot import ranges, splits
from tailrace.connectors.postgres.snapshot.chunks import ChunkConnections, Session
from tailrace.connectors.postgres.snapshot.exported import Export, export_aside, export_at_slot, export_now
from tailrace.connectors.postgres.snapshot.signal_table import PostgresSignals
from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.signal_source import SignalSource
from tailrace.connectors.snapshot_ports import Failures, OnDemandSnapshots
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.model.table import TableId
from tailrace.override import override

_EXISTS = """
SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""
# On a standby commits are seen in the order in which the log has them, so there is nothing to wait for.
_NEWEST = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_xact_id()::text::int8 END"
_OLDEST = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8"


class PostgresFailures(Failures):
    """Implements Failures."""

    driver_error: type[Exception] = psycopg.Error
    is_transient = staticmethod(connect.is_transient)
    is_lost = staticmethod(connect.is_lost)
    is_passing = staticmethod(connect.is_passing)
    line = staticmethod(connect.first_line)
    translated = staticmethod(connect.server_errors)

    @override
    def is_refused(self, error: BaseException) -> bool:
        return False


class PostgresSnapshots(OnDemandSnapshots):
    """Implements OnDemandSnapshots. `ask` runs a query on the planner's control connection."""

    failures: Failures = PostgresFailures()
    faulty_status = "UNKNOWN_SCHEMA"
    takes_surrogate_keys = True

    def __init__(self, config: Config, ask: Callable[[Callable[[psycopg.Connection], Any]], Any]) -> None:
        self._ask = ask
        self._signals = SignalSource(config, self.failures, PostgresSignals.of(config))
        self._chunks = ChunkConnections(self._signals)

    @override
    def tables(self, config: Config) -> list[TableId]:
        tables: list[TableId] = self._ask(lambda connection: Catalog(connection, config).tables())
        return tables

    @override
    def sizes(self, config: Config) -> list[tuple[str, int]]:
        def sized(connection: psycopg.Connection) -> list[tuple[str, int]]:
            return [(str(table), _size(connection, table)) for table in splits.to_read(connection, config)]

        sizes: list[tuple[str, int]] = self._ask(sized)
        return sizes

    @override
    def open_at_log(self, config: Config, start: Reached, end: Reached) -> Export:
        """The snapshot at whose position the slot begins. Prepares publication and slot."""
        return export_at_slot(config, end.application, claim_of_slot(start, end))

    @override
    def open(self, config: Config, application: str, *, once: bool = False) -> Export:
        return export_aside(config, application, once=once)

    @override
    def open_now(self, config: Config) -> Export:
        return export_now(config)

    @override
    def cut(
        self,
        config: Config,
        handle: Export,
        wanted: Mapping[str, str | None] | None,
        place: SnapshotPlace | None,
        plan: Callable[[splits.PostgresCuts], list[splits.Split]],
    ) -> list[splits.Split]:
        with connect.connect(config, application="tailrace planner") as connection:
            return plan(splits.PostgresCuts(connection, config, handle, wanted, place))

    @override
    def verified(self, config: Config, handle: Export, place: SnapshotPlace) -> SnapshotPlace:
        return splits.verified(config, handle, place)

    @override
    def new_signals(self, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        signals: tuple[list[Signal], tuple[Mark, ...]] = self._ask(
            lambda connection: self._signals.new(connection, handled)
        )
        return signals

    @override
    def chunks(self, config: Config) -> AbstractContextManager[Session | None]:
        return self._chunks.session(config)

    @override
    def shown(self, part: str) -> str:
        return part

    @override
    def existing(self, tables: Sequence[TableId]) -> list[TableId]:
        def existing(connection: psycopg.Connection) -> list[TableId]:
            return [table for table in tables if connection.execute(_EXISTS, [table.schema, table.table]).rowcount]

        present: list[TableId] = self._ask(existing)
        return present

    @override
    def include(self, config: Config, tables: Sequence[TableId]) -> None:
        """Add the tables to the publication."""
        self._ask(lambda connection: publication.include(connection, config, list(tables)))

    @override
    def exclude(self, config: Config, tables: Sequence[TableId]) -> None:
        """Take the tables out of the publication."""
        self._ask(lambda connection: publication.exclude(connection, config, list(tables)))

    @override
    def unseen_until(self) -> int | None:
        """The number of a transaction: those that began before it may have changed the tables unseen."""
        row = self._ask(lambda connection: connection.execute(_NEWEST).fetchone())
        return None if row is None else row[0]

    @override
    def has_ended(self, token: int) -> bool:
        """Whether all transactions up to that number have ended."""
        row = self._ask(lambda connection: connection.execute(_OLDEST).fetchone())
        return row is not None and int(row[0]) > token


def _size(connection: psycopg.Connection, table: TableId) -> int:
    """Bytes of a table; 0 where somebody has locked it, which those who read it will tell."""
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '1s'")
            return ranges.table_bytes(connection, table)
    except psycopg.errors.LockNotAvailable:
        return 0
