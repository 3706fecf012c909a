"""Reads chunks of incremental snapshots on PostgreSQL: the connection, the lock, the fence and the end of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.position import SOURCE_TYPE, parse_lsn
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.snapshot import keys
from tailrace.connectors.postgres.snapshot.paging import Paging
from tailrace.connectors.postgres.snapshot.selects import refusals
from tailrace.connectors.signal_source import SignalSource
from tailrace.connectors.snapshot_ports import ChunkSession, ChunkTable
from tailrace.connectors.snapshots import Unread, check_width
from tailrace.errors import SourceError
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

log = logging.getLogger(__name__)

_PATIENCE_SECONDS, _FLUSH_SECONDS = 1.0, 10.0  # guessed
_COMMITTING = "SELECT pid, query_start FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND state = 'active'"
_ACTIVE = "SELECT pid, query_start FROM pg_stat_activity WHERE pid = ANY (%s) AND state = 'active'"


class ChunkConnections:
    """Makes the connections over which chunks are read, one after the other."""

    def __init__(self, signals: SignalSource) -> None:
        self._signals = signals
        self._waits = False

    @contextmanager
    def session(self, config: Config) -> Iterator[Session | None]:
        """A connection for the chunks of one batch; None while changes that it would show are not in the log yet."""
        with connect(config, application="tailrace incremental") as connection:
            # What this connection writes need not reach a standby to be in the log.
            connection.execute("SET synchronous_commit = local")
            yield Session(connection, config, self._signals) if self._is_settled(connection) else None

    def _is_settled(self, connection: psycopg.Connection) -> bool:
        """Whether all changes that were read from the log are visible. Waits a moment for them.

        A transaction that waits for a synchronous standby is in the log, and its changes are sent before others see it.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        waiting = connection.execute(_COMMITTING).fetchall()
        while waiting and time.monotonic() < deadline:
            time.sleep(0.02)
            running = connection.execute(_ACTIVE, [[pid for pid, _ in waiting]]).fetchall()
            waiting = [statement for statement in waiting if statement in running]
        if waiting and not self._waits:
            log.warning("no chunk is read while transactions wait for a synchronous standby")
        self._waits = bool(waiting)
        return not waiting


@dataclass
class Session(ChunkSession):
    """Implements ChunkSession."""

    connection: psycopg.Connection
    config: Config
    signals: SignalSource

    @contextmanager
    @override
    def window(self, table: TableId) -> Iterator[None]:
        opened = self.signals.open_window(self.connection, table.database)
        try:
            yield
        finally:
            if not self.connection.closed:
                self.signals.close_window(self.connection, opened)

    @contextmanager
    @override
    def table(self, table: TableId, name: str, condition: str | None) -> Iterator[LockedTable]:
        origin = "the condition of the signal (additional-conditions)" if condition else None
        # Rolled back, which undoes settings that a function of the signal's condition may have changed.
        with refusals(self.config, table, origin), self.connection.transaction(force_rollback=True):
            self.connection.execute("SET TRANSACTION READ ONLY")
            yield LockedTable(self.connection, self.config, self._locked(table), name)

    def _locked(self, id_: TableId) -> CapturedTable:
        """The present table, which nobody alters from here on."""
        lock = sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(sql.Identifier(*id_.parts))
        catalog, nothing = Catalog(self.connection, self.config), Unread("there is no such table", "UNKNOWN_SCHEMA")
        try:
            self.connection.execute(lock)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise nothing from error
        table = catalog.table(id_)
        if table is None:
            raise nothing
        return table


@dataclass(frozen=True)
class LockedTable(ChunkTable):
    """Implements ChunkTable."""

    connection: psycopg.Connection
    config: Config
    captured: CapturedTable
    name: str

    @property
    @override
    def schema(self) -> TableSchema:
        return self.captured.schema

    @override
    def page(self, condition: str | None, surrogate: str | None) -> Paging:
        """By the key of the signal or the events; equal keys are distinguished by the table's own."""
        catalog = Catalog(self.connection, self.config)
        wanted = self.paged_by(surrogate)
        key = self._key_types(wanted)
        own = [each for each in catalog.key_types(self.schema.id, None) if each not in key]
        nullable = catalog.nullable(self.schema.id, wanted)
        return Paging(self.connection, self.captured, condition, (*key, *own), nullable)

    @override
    def fence(self) -> str:
        """A snapshot just older than all that is read."""
        row = self.connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        return str(row[0])

    @override
    def rows_of(self, wanted: Sequence[Key]) -> tuple[pa.StructArray, pa.StructArray]:
        types = self._key_types(self.paged_by(None))
        check_width(wanted, len(types), self.name)
        images, _ = keys.rows(self.connection, self.captured, types, wanted)
        absent = keys.images(self.connection, self.captured, types, wanted, absent=True)
        return images, keys.as_rows(self.captured, absent)

    @override
    def end(self) -> int:
        return flushed(self.connection, self.config)

    @override
    def identity(self) -> tuple[str, ...]:
        """The table's own key, where old images hold that: the whole row may be large, the event's key not unique."""
        own = tuple(name for name, _ in Catalog(self.connection, self.config).key_types(self.schema.id, None))
        return own if own and set(own) <= set(self.schema.identity) else self.schema.identity

    @override
    def source(self, count: int, end: int) -> pa.StructArray:
        nothing = pa.nulls(count, pa.int64())
        columns = {field.name: nothing.cast(field.type) for field in SOURCE_TYPE}
        columns["last_commit"] = pa.repeat(pa.scalar(end, pa.int64()), count)
        return pa.StructArray.from_arrays(list(columns.values()), fields=list(SOURCE_TYPE))

    def _key_types(self, names: tuple[str, ...]) -> keys.KeyTypes:
        types = Catalog(self.connection, self.config).key_types(self.schema.id, names)
        if not types:
            raise Unread(f"it has no column {', '.join(names)}", "SQL_EXCEPTION")
        return types


def flushed(connection: psycopg.Connection, config: Config) -> int:
    """The end of the log as it is written, once it is flushed (or replayed) so far: the server sends no more than that.

    Written, as with synchronous_commit=off a visible change need not be flushed yet. Where the last record ends a page,
    only the next page's header lies between the two. Raises SourceError.
    """
    row = connection.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END::text"
    ).fetchone()
    assert row is not None
    if _is_flushed(connection, row[0], _PATIENCE_SECONDS):
        return parse_lsn(row[0])
    # Nobody flushes a page's hint bits, or what a transaction without an end has written, this one's own included.
    with connect(config, application="tailrace flush") as aside:
        aside.execute("SET synchronous_commit = local")
        aside.execute("SELECT pg_current_xact_id()")
    if _is_flushed(connection, row[0], _FLUSH_SECONDS):
        return parse_lsn(row[0])
    raise SourceError("the server does not flush its log", remedy="see wal_writer_delay and the server's disk")


def _is_flushed(connection: psycopg.Connection, end: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        reached = connection.execute(
            "SELECT pg_is_in_recovery() OR pg_current_wal_flush_lsn() >= %(end)s::pg_lsn OR "
            "((pg_current_wal_flush_lsn() - '0/0') %% 8192 = 0 AND %(end)s::pg_lsn - pg_current_wal_flush_lsn() <= 40)",
            {"end": end},
        ).fetchone()
        if reached is not None and reached[0]:
            return True
        time.sleep(0.02)
    return False
