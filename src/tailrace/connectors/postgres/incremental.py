"""Snapshots that signals ask for, on PostgreSQL: the signal table, its window rows, chunks by key.

A chunk is read under a snapshot of its own; the micro-batch then ends at the position of the log behind it (Debezium's
way, with two differences: which row wins is told by the snapshot's visibility, so window rows are written for those who
look at them only, and nothing has to be kept from one batch to the next).
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TypeVar

import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.config import Config
from tailrace.config.filters import table_of_signals
from tailrace.connectors.postgres import keys
from tailrace.connectors.postgres.catalog import CapturedTable, Catalog
from tailrace.connectors.postgres.connect import connect, first_line, is_lost
from tailrace.connectors.postgres.position import SOURCE_TYPE, parse_lsn
from tailrace.connectors.postgres.text_rows import copy_lines, rows_of
from tailrace.errors import DecodeError, SourceError
from tailrace.events.encode.arrow import repeat
from tailrace.model.change import DELETE, READ, ChangeBatch
from tailrace.model.table import TableId
from tailrace.snapshot.channels import SOURCE
from tailrace.snapshot.progress import Mark, Progress
from tailrace.snapshot.reading import Key
from tailrace.snapshot.signals import CLOSE, OPEN, Request, Signal
from tailrace.snapshot.window import Visibility

log = logging.getLogger(__name__)

T = TypeVar("T")

_PATIENCE_SECONDS, _FLUSH_SECONDS = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk: its rows (ChangeBatch as IPC bytes, for a split), the pg_snapshot it was read under, and its end."""

    rows: bytes
    visibility: str
    end: int


class IncrementalSnapshots:
    """Carries out what signals ask for, over connections of the planner."""

    def __init__(self, config: Config) -> None:
        self.config = config
        signals = table_of_signals(config)
        self.table = None if signals is None else sql.Identifier(signals.schema, signals.table)
        self.size = config.number("incremental.snapshot.chunk.size")
        self._told: str | None = None

    def signals(self, connection: psycopg.Connection) -> list[tuple[Signal, Mark]]:
        """The signals in the table, window rows aside, in the order they came as far as that can be told."""
        if self.table is None or SOURCE not in self.config.names("signal.enabled.channels"):
            return []
        query = sql.SQL(
            "SELECT s.id::text, s.type::text, s.data::text, s.xmin::text FROM {} AS s(id, type, data) "
            "WHERE s.type <> ALL (%s) ORDER BY age(s.xmin) DESC, s.ctid"
        ).format(self.table)
        try:
            rows = connection.execute(query, [[OPEN, CLOSE]]).fetchall()
        except psycopg.ProgrammingError as error:
            self._tell(self.table.as_string(connection), first_line(error))
            return []
        self._told = None
        return [(Signal(id_, type_, data), (id_, xid)) for id_, type_, data, xid in rows]

    def _tell(self, table: str, said: str) -> None:
        """Say once why no signals can be read."""
        if said != self._told:
            needed = f"{table} needs columns id, type, data, in this order, and database.user the right to SELECT"
            log.error("signal.data.collection: %s; %s", said, needed)
        self._told = said

    def new_signals(
        self, connection: psycopg.Connection, handled: tuple[Mark, ...]
    ) -> tuple[list[Signal], tuple[Mark, ...]]:
        """The signals of the table that are not handled yet, and the marks of all that are in it."""
        found = self.signals(connection)
        left, new = Counter(handled), []
        for signal, mark in found:
            known = mark if left[mark] else (signal.id, None)
            if left[known]:
                left[known] -= 1
            else:
                new.append(signal)
        return new, tuple(mark for _, mark in found)

    def chunk(self, progress: Progress) -> tuple[Progress, ReadChunk | None, str]:
        """Read the next chunk of the present table; no chunk where that table cannot be read or has no rows.

        Also how the table ended, if it did, in the words of notifications. Raises psycopg.Error for a lost connection.
        """
        request = progress.queue[0]
        with connect(self.config, application="tailrace incremental") as connection:
            connection.execute("SET synchronous_commit = on")
            try:
                if progress.maximum is None and not self._is_captured(connection, request):
                    log.warning("%s is not read: no such table is captured", request.table)
                    return progress.without_present(), None, "UNKNOWN_SCHEMA"
                return self._chunk(connection, progress, request)
            except (psycopg.Error, DecodeError, SourceError, UnicodeError) as error:
                if is_lost(error):
                    raise
                log.error("the incremental snapshot of %s is given up: %s", request.table, first_line(error))
                return progress.without_present(), None, "SQL_EXCEPTION"

    def _is_captured(self, connection: psycopg.Connection, request: Request) -> bool:
        catalog = Catalog(connection, self.config)
        return TableId(catalog.database, *request.parts) in catalog.tables()

    def _chunk(
        self, connection: psycopg.Connection, progress: Progress, request: Request
    ) -> tuple[Progress, ReadChunk | None, str]:
        schema, name = request.parts
        catalog = Catalog(connection, self.config)
        table = catalog.table(TableId(self.config.text("database.dbname"), schema, name))
        key = catalog.key_types(table.schema.id, self._key(table, request)) if table is not None else ()
        if table is None or not key:
            log.warning("%s is not read: it has no key; name a surrogate-key in the signal", request.table)
            return progress.without_present(), None, "NO_PRIMARY_KEY"
        if request.keys is not None:
            (images, gone), visible, end = self._windowed(connection, lambda: _listed(connection, table, request, key))
            rows = ChangeBatch(table.schema, _changes(images, gone, end))
            log.info("incremental snapshot of %s: %d keys, %d rows", request.table, len(request.keys), len(images))
            return progress.without_present(), ReadChunk(rows.to_ipc(), visible, end), "SUCCEEDED"
        if progress.total is None:
            total, now = _estimate(connection, table, request), time.time_ns() // 1_000_000
            progress = replace(progress, total=total, since_ms=now)
        maximum = progress.maximum or self._maximum(connection, table, request, key)
        if maximum is None:
            return progress.without_present(), None, "EMPTY"
        (images, last, count), visible, end = self._windowed(
            connection, lambda: self._read(connection, table, request, key, progress.last, maximum)
        )
        rows = ChangeBatch(table.schema, _changes(images, images.slice(0, 0), end))
        log.info("incremental snapshot of %s: %d rows up to key %s of %s", request.table, count, last, maximum)
        # An empty chunk is the sign that all is read.
        after = progress.after_chunk(last, maximum, count) if last else progress.without_present()
        return after, ReadChunk(rows.to_ipc(), visible, end), "SUCCEEDED"

    def _windowed(self, connection: psycopg.Connection, read: Callable[[], T]) -> tuple[T, str, int]:
        """What `read` reads under a snapshot, that snapshot, and a position of the log behind it."""
        writes = self.table is not None and not self.config.flag("read.only")
        window = self._open(connection, self.table) if self.table is not None and writes else None
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        found = read()
        connection.execute("COMMIT")
        if window is not None and self.table is not None:
            self._close(connection, self.table, *window)
        return found, row[0], flushed(connection, self.config)

    def _key(self, table: CapturedTable, request: Request) -> tuple[str, ...] | None:
        return (request.surrogate,) if request.surrogate else table.schema.key or None

    def _maximum(
        self, connection: psycopg.Connection, table: CapturedTable, request: Request, key: tuple[tuple[str, str], ...]
    ) -> Key | None:
        names = [sql.Identifier(name) for name, _ in key]
        query = sql.SQL("SELECT {} FROM {} AS t{} ORDER BY {} LIMIT 1").format(
            sql.SQL(", ").join(sql.SQL("{}::text").format(name) for name in names),
            _name(table),
            _where(request),
            sql.SQL(", ").join(sql.SQL("t.{} DESC").format(name) for name in names),
        )
        row = connection.execute(query).fetchone()
        return None if row is None else tuple(str(part) for part in row)

    def _read(
        self,
        connection: psycopg.Connection,
        table: CapturedTable,
        request: Request,
        key: tuple[tuple[str, str], ...],
        last: Key | None,
        maximum: Key,
    ) -> tuple[pa.StructArray, Key | None, int]:
        """Images of the next rows by key, the key of the last one, and their number."""
        names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in key)
        bounds = [(">", last), ("<=", maximum)]
        conditions = [
            sql.SQL("ROW({}) {} ROW({})").format(names, sql.SQL(sign), _literals(bound, key))
            for sign, bound in bounds
            if bound is not None
        ]
        columns = [sql.Identifier(column.name) for column in table.schema.columns]
        query = sql.SQL("COPY (SELECT {}, {} FROM {} AS t{} ORDER BY {} LIMIT {}) TO STDOUT").format(
            sql.SQL(", ").join(columns),
            sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name, _ in key),
            _name(table),
            _where(request, *conditions),
            sql.SQL(", ").join(sql.SQL("t.{}").format(sql.Identifier(name)) for name, _ in key),
            sql.Literal(self.size),
        )
        lines = [line for part in copy_lines(connection, query, str(table.schema.id)) for line in part]
        if not lines:
            return pa.nulls(0, table.schema.row_type), None, 0
        images, keys = rows_of(table, lines, len(key))
        return images, tuple(str(part[len(lines) - 1].as_py()) for part in keys), len(lines)

    def _open(self, connection: psycopg.Connection, signals: sql.Identifier) -> tuple[str, str]:
        """Write the row that opens a window; returns the window's id and time."""
        window, now = str(uuid.uuid4()), _now()
        self._insert(connection, signals, f"{window}-open", OPEN, f'{{"openWindowTimestamp": "{now}"}}')
        return window, now

    def _close(self, connection: psycopg.Connection, signals: sql.Identifier, window: str, opened: str) -> None:
        if self.config.text("incremental.snapshot.watermarking.strategy") == "insert_delete":
            row = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(signals))
            first = sql.Identifier(row.description[0].name if row.description else "id")
            query = sql.SQL("DELETE FROM {} WHERE {} = %s").format(signals, first)
            self._write(connection, query, [f"{window}-open"])
        else:
            times = f'{{"openWindowTimestamp": "{opened}", "closeWindowTimestamp": "{_now()}"}}'
            self._insert(connection, signals, f"{window}-close", CLOSE, times)

    def _insert(self, connection: psycopg.Connection, signals: sql.Identifier, *values: str) -> None:
        self._write(connection, sql.SQL("INSERT INTO {} VALUES (%s, %s, %s)").format(signals), values)

    def _write(self, connection: psycopg.Connection, query: sql.Composed, values: Sequence[str]) -> None:
        """Write to the signal table, again as often as signal.emit.failure.max.retries says."""
        left = self.config.number("signal.emit.failure.max.retries")
        while True:
            try:
                connection.execute(query, values)
                return
            except psycopg.Error as error:
                if not left or connection.closed:
                    raise
                log.warning("a window's row cannot be written, trying again: %s", first_line(error))
            left -= 1
            time.sleep(self.config.number("signal.emit.failure.backoff.ms") / 1000)


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


def _name(table: CapturedTable) -> sql.Identifier:
    return sql.Identifier(table.schema.id.schema, table.schema.id.table)


def _where(request: Request, *conditions: sql.Composable) -> sql.Composable:
    wanted = [*conditions, *([sql.SQL(f"({request.condition})")] if request.condition else [])]
    return sql.SQL(" WHERE ") + sql.SQL(" AND ").join(wanted) if wanted else sql.SQL("")


def _estimate(connection: psycopg.Connection, table: CapturedTable, request: Request) -> int:
    """How many rows the server thinks there are to read."""
    query = sql.SQL("EXPLAIN (FORMAT JSON) SELECT FROM {} AS t{}").format(_name(table), _where(request))
    row = connection.execute(query).fetchone()
    return 0 if row is None else int(row[0][0]["Plan"]["Plan Rows"])


def _literals(key: Key, types: tuple[tuple[str, str], ...]) -> sql.Composable:
    return sql.SQL(", ").join(
        sql.SQL("{}::{}").format(sql.Literal(part), sql.SQL(kind)) for part, (_, kind) in zip(key, types, strict=True)
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
