"""Snapshots that signals ask for, on PostgreSQL: the signal table, its window rows, chunks by key.

A chunk is read under a snapshot of its own; the micro-batch then ends at the position of the log behind it (Debezium's
way, with two differences: which row wins is told by the snapshot's visibility, so window rows are written for those who
look at them only, and nothing has to be kept from one batch to the next).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.position import SOURCE_TYPE, parse_lsn
from tailrace.connectors.postgres.server.connect import connect, first_line, is_lost, is_passing, server_errors
from tailrace.connectors.postgres.snapshot import keys
from tailrace.connectors.postgres.snapshot.paging import Paging
from tailrace.connectors.postgres.snapshot.selects import refusals
from tailrace.connectors.postgres.snapshot.signal_table import SignalTable
from tailrace.connectors.retry import retrying
from tailrace.errors import DecodeError, SourceError, TailraceError
from tailrace.events.encode.arrow import repeat
from tailrace.model.change import DELETE, READ, ChangeBatch
from tailrace.snapshot.progress import PagingKey, Progress
from tailrace.snapshot.signals import INCREMENTAL, Request
from tailrace.snapshot.window import Visibility

log = logging.getLogger(__name__)

# The state after a chunk or after a table that has no more of them, and how it went, in the words of notifications.
Stage = tuple[Progress, str]

_DONE = "SUCCEEDED"
_PATIENCE_SECONDS, _FLUSH_SECONDS = 1.0, 10.0
RETRY_SECONDS = 10.0
# The state has two keys while a table is read, in every offset; an index takes less than this.
_LONGEST_KEY = 16 << 10
_COMMITTING = "SELECT pid, query_start FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND state = 'active'"
_ACTIVE = "SELECT pid, query_start FROM pg_stat_activity WHERE pid = ANY (%s) AND state = 'active'"


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk: its rows (ChangeBatch as IPC bytes, for a split), the pg_snapshot it was read under, and its end.

    `identity` are the columns that tell its rows apart, of those that the log has in old images.
    """

    rows: bytes
    visibility: str
    end: int
    identity: tuple[str, ...]


class _Unread(Exception):
    """A table that is not read: why, and the status in the words of notifications."""

    def __init__(self, why: str, status: str) -> None:
        super().__init__(why)
        self.status = status


class IncrementalSnapshots:
    """Carries out what signals ask for, over connections of the planner."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.table = SignalTable(config)
        self.size = config.number("incremental.snapshot.chunk.size")
        self._waits = False
        self._not_before = 0.0

    def chunk(self, progress: Progress) -> tuple[list[Stage], ReadChunk | None]:
        """Read the next chunk: of the present table, or, where that is at its end or cannot be read, of one after it.

        The stages on the way to there are none where nothing can be read just now; no chunk where no table has rows.
        """
        if time.monotonic() < self._not_before:
            return [], None
        with server_errors("a chunk cannot be read"):
            return retrying(self.config, lambda: self._attempt(progress), is_lost)

    def _attempt(self, progress: Progress) -> tuple[list[Stage], ReadChunk | None]:
        with connect(self.config, application="tailrace incremental") as connection:
            # What this connection writes need not reach a standby to be in the log.
            connection.execute("SET synchronous_commit = local")
            if not self._is_settled(connection):
                return [], None
            try:
                return self._windowed(connection, progress)
            except (psycopg.Error, SourceError) as error:
                if is_lost(error):
                    raise
                if not is_passing(error):  # of the signal table
                    return [_given_up(progress, error)], None
                self._not_before = time.monotonic() + RETRY_SECONDS
                said = (progress.queue[0].table, first_line(error), RETRY_SECONDS)
                log.warning("%s cannot be read now: %s; the next try is in %.0f s", *said)
                return [], None

    def _windowed(self, connection: psycopg.Connection, progress: Progress) -> tuple[list[Stage], ReadChunk | None]:
        """As Debezium does it, one window holds the ends of tables and the first rows after them."""
        stages: list[Stage] = []
        chunk: ReadChunk | None = None
        window = self.table.open_window(connection)
        try:
            while chunk is None and progress.is_next(INCREMENTAL):
                progress, chunk, status = self._tried(connection, progress, progress.queue[0])
                stages.append((progress, status))
        finally:
            if not connection.closed:
                self.table.close_window(connection, window)
        return stages, chunk

    def _tried(
        self, connection: psycopg.Connection, progress: Progress, request: Request
    ) -> tuple[Progress, ReadChunk | None, str]:
        table = request.id(self.config)
        origin = "the condition of the signal (additional-conditions)" if request.condition else None
        try:
            with refusals(self.config, table, origin):
                return self._chunk(connection, progress, request)
        except _Unread as unread:
            log.warning("%s is not read: %s", request.table, unread)
            return progress.without_present().giving_up([request], str(unread)), None, unread.status
        except (psycopg.Error, DecodeError, SourceError, UnicodeError) as error:
            if is_passing(error):
                raise
            after, status = _given_up(progress, error)
            return after, None, status

    def _is_settled(self, connection: psycopg.Connection) -> bool:
        """Whether all that the log has told is visible, after a moment's patience.

        A transaction that waits for a synchronous standby is in the log, and was told, before anybody sees it.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        waiting = connection.execute(_COMMITTING).fetchall()
        while waiting and time.monotonic() < deadline:
            time.sleep(0.02)
            found = connection.execute(_ACTIVE, [[pid for pid, _ in waiting]]).fetchall()
            waiting = [statement for statement in waiting if statement in found]
        if waiting and not self._waits:
            log.warning("no chunk is read while transactions wait for a synchronous standby")
        self._waits = bool(waiting)
        return not waiting

    def _chunk(
        self, connection: psycopg.Connection, progress: Progress, request: Request
    ) -> tuple[Progress, ReadChunk | None, str]:
        # Rolled back, which undoes settings that a function of the signal's condition may have changed.
        with connection.transaction(force_rollback=True):
            connection.execute("SET TRANSACTION READ ONLY")
            table = self._locked(connection, request)
            after, read, visible = self._read(connection, table, progress, request)
            # Under the lock, so that the log up to there knows the table by no other columns and keys.
            end = flushed(connection, self.config)
            identity = _identity(connection, self.config, table)
        if read is None:
            return after, None, "EMPTY"
        if not any(map(len, read)):
            return after, None, _DONE
        return after, ReadChunk(ChangeBatch(table.schema, _changes(*read, end)).to_ipc(), visible, end, identity), _DONE

    def _locked(self, connection: psycopg.Connection, request: Request) -> CapturedTable:
        """The present table, which nobody alters from here on."""
        id_ = request.id(self.config)
        lock = sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(sql.Identifier(*id_.parts))
        catalog, nothing = Catalog(connection, self.config), _Unread("no such table is captured", "UNKNOWN_SCHEMA")
        if not catalog.filter.captures(id_):
            raise nothing
        try:
            connection.execute(lock)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise nothing from error
        table = catalog.table(id_)
        if table is None:
            raise nothing
        return table

    def _read(
        self, connection: psycopg.Connection, table: CapturedTable, progress: Progress, request: Request
    ) -> tuple[Progress, tuple[pa.StructArray, pa.StructArray] | None, str]:
        """The state after the next chunk, its row images and keys without a row, None where the table is empty.

        Also a snapshot just older than all that is read: the log will tell whatever it does not contain.
        """
        if request.keys is not None:
            types = _key_types(connection, self.config, table, table.schema.key)
            visible = _snapshot(connection)
            found = _listed(connection, table, request, types)
            log.info("incremental snapshot of %s: %d keys, %d rows", request.table, len(request.keys), len(found[0]))
            return progress.without_present(), found, visible
        paging = self._paging(connection, table, request)
        paging.check()
        key = ",".join(f"{name} {kind}" for name, kind in paging.key)
        if progress.by(key) is not progress:
            log.warning("%s is read from its beginning: its key has become (%s)", request.table, key)
        progress = replace(progress.by(key), key=key)
        if progress.total is None:
            progress = replace(progress, total=paging.estimate(), since_ms=time.time_ns() // 1_000_000)
        maximum = progress.maximum or paging.maximum()
        if maximum is None:
            return progress.without_present(), None, ""
        visible = _snapshot(connection)
        images, last, count = paging.after(progress.last, maximum, self.size)
        longest = max(map(_length, (maximum, last or ())))
        if longest > _LONGEST_KEY:
            raise _Unread(f"a key of {longest:,} characters is too long to read the table by", "SQL_EXCEPTION")
        log.info("incremental snapshot of %s: %d rows up to key %s of %s", request.table, count, last, maximum)
        # An empty chunk is the sign that all is read.
        after = progress.after_chunk(last, maximum, count) if last else progress.without_present()
        return after, (images, images.slice(0, 0)), visible

    def _paging(self, connection: psycopg.Connection, table: CapturedTable, request: Request) -> Paging:
        """By the key of the signal or the events, told apart by the table's own."""
        catalog = Catalog(connection, self.config)
        wanted = (request.surrogate,) if request.surrogate else table.schema.key
        key = _key_types(connection, self.config, table, wanted)
        own = [each for each in catalog.key_types(table.schema.id, None) if each not in key]
        return Paging(connection, table, request.condition, (*key, *own), catalog.nullable(table.schema.id, wanted))


def _given_up(progress: Progress, error: Exception) -> Stage:
    """The state without the present table, whose rows stay unread."""
    request = progress.queue[0]
    log.error("the incremental snapshot of %s is given up: %s", request.table, reason(error))
    return progress.without_present().giving_up([request], reason(error)), "SQL_EXCEPTION"


def reason(error: Exception) -> str:
    """Why a table is not read, in one line, with the remedy if one is known."""
    return error.line if isinstance(error, TailraceError) else first_line(error)


def _listed(
    connection: psycopg.Connection, table: CapturedTable, request: Request, types: keys.KeyTypes
) -> tuple[pa.StructArray, pa.StructArray]:
    """Images of the rows there are of a request's keys, and of the keys of which there is none."""
    wanted = request.keys or ()
    if any(len(key) != len(types) for key in wanted):
        raise SourceError(f"the key has {len(types)} columns, those of the signal have not", where=request.table)
    found, _ = keys.rows(connection, table, types, wanted)
    return found, keys.as_rows(table, keys.images(connection, table, types, wanted, absent=True))


def _changes(reads: pa.StructArray, gone: pa.StructArray, end: int) -> pa.RecordBatch:
    """Row images as incremental reads, and keys without a row as deletions.

    They have no position of their own, only one that they come after.
    """
    count = len(reads) + len(gone)
    nothing = pa.nulls(count, pa.int64())
    columns = {name: nothing.cast(kind) for name, kind in ((field.name, field.type) for field in SOURCE_TYPE)}
    columns["last_commit"] = pa.repeat(pa.scalar(end, pa.int64()), count)
    return pa.RecordBatch.from_pydict(
        {
            "op": pa.concat_arrays([repeat(READ, len(reads)), repeat(DELETE, len(gone))]),
            # Behind everything of the log that the batch holds.
            "order": pa.array(range(1 << 62, (1 << 62) + count), pa.int64()),
            "ts_us": pa.repeat(pa.scalar(time.time_ns() // 1000, pa.int64()), count),
            "snapshot": repeat("incremental", count),
            "source": pa.StructArray.from_arrays(list(columns.values()), fields=list(SOURCE_TYPE)),
            "before": pa.concat_arrays([pa.nulls(len(reads), reads.type), gone]),
            "after": pa.concat_arrays([reads, pa.nulls(len(gone), reads.type)]),
        }
    )


def visibility(chunk: ReadChunk) -> Visibility:
    """The snapshot that a chunk was read under."""
    return Visibility.parse(chunk.visibility)


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


def _length(key: PagingKey) -> int:
    return sum(len(part or "") for part in key)


def _snapshot(connection: psycopg.Connection) -> str:
    row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    return str(row[0])


def _key_types(
    connection: psycopg.Connection, config: Config, table: CapturedTable, names: tuple[str, ...]
) -> keys.KeyTypes:
    if not names:
        raise _Unread("it has no key; name a surrogate-key in the signal", "NO_PRIMARY_KEY")
    types = Catalog(connection, config).key_types(table.schema.id, names)
    if not types:
        raise _Unread(f"it has no column {', '.join(names)}", "SQL_EXCEPTION")
    return types


def _identity(connection: psycopg.Connection, config: Config, table: CapturedTable) -> tuple[str, ...]:
    """The columns that tell a table's rows apart, of those that old images hold.

    Its own key, where they hold that: the whole row may be large, and the event's key need not be unique.
    """
    schema = table.schema
    own = tuple(name for name, _ in Catalog(connection, config).key_types(schema.id, None))
    return own if own and set(own) <= set(schema.identity) else schema.identity
