"""Plans incremental snapshots: reads the next chunk of the requested tables.

A chunk is read under a snapshot of its own; the micro-batch then ends at the position of the log behind it (Debezium's
way, with two differences: the chunk's fence decides which row wins, so window rows are written for those who look at
them only, and nothing has to be kept from one batch to the next).
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import TableFilter
from tailrace.config.options.snapshot import READ_AGAIN_ROWS_PER_SECOND
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.notifications import NOT_CAPTURED
from tailrace.connectors.retry import retrying
from tailrace.connectors.snapshot_ports import ChunkSession, ChunkTable, Failures, OnDemandSnapshots
from tailrace.connectors.snapshots import PagingKey, ReadChunk, Unread
from tailrace.errors import TailraceError
from tailrace.model.arrow import repeat
from tailrace.model.change import DELETE, READ, ChangeBatch
from tailrace.snapshot.chunk_size import ChunkSize
from tailrace.snapshot.progress import Progress
from tailrace.snapshot.signals import BLOCKING, INCREMENTAL, TableRequest

log = logging.getLogger(__name__)

# The state after a chunk or after a table that has no more of them, and how it went, in the words of notifications.
Stage = tuple[Progress, str]

DONE, EMPTY, NO_KEY, FAILED = "SUCCEEDED", "EMPTY", "NO_PRIMARY_KEY", "SQL_EXCEPTION"
UNCAPTURED = "the lists do not capture it; `tailrace add` does"
# No word of notifications: the table is read in another way.
OTHERWISE = ""
RETRY_SECONDS = 10.0
# The state has two keys while a table is read, in every offset; an index takes less than this.
_LONGEST_KEY = 16 << 10


class IncrementalSnapshots:
    """Executes the snapshots that signals request, over connections of the planner."""

    def __init__(self, config: Config, server: OnDemandSnapshots) -> None:
        self.config = config
        self._size = ChunkSize(config)
        self._server = server
        self._failures = server.failures
        self._not_before = 0.0
        self._rate = config[READ_AGAIN_ROWS_PER_SECOND]

    def chunk(self, progress: Progress) -> tuple[list[Stage], ReadChunk | None]:
        """Read the next chunk: of the current table or, if that is finished or cannot be read, of a later one.

        The stages on the way to there are none where nothing can be read just now; no chunk where no table has rows.
        """
        if time.monotonic() < self._not_before:
            return [], None
        with self._failures.translated("a chunk cannot be read"):
            return retrying(self.config, lambda: self._attempt(progress), self._failures.is_lost)

    def _attempt(self, progress: Progress) -> tuple[list[Stage], ReadChunk | None]:
        with self._server.chunks(self.config) as session:
            if session is None:
                return [], None
            try:
                return self._windowed(session, progress)
            except Exception as error:
                # No signal may stop the pipeline; but a lost connection is not the signal's fault.
                if self._failures.is_lost(error):
                    raise
                if not self._failures.is_passing(error):  # of the signal table
                    return [_given_up(self._failures, progress, error)], None
                self._not_before = time.monotonic() + RETRY_SECONDS
                said = (progress.queue[0].table, self._failures.line(error), RETRY_SECONDS)
                log.warning("%s cannot be read now: %s; the next try is in %.0f s", *said)
                return [], None

    def _windowed(self, session: ChunkSession, progress: Progress) -> tuple[list[Stage], ReadChunk | None]:
        """As Debezium does it, one window holds the ends of tables and the first rows after them."""
        stages: list[Stage] = []
        chunk: ReadChunk | None = None
        with session.window(progress.queue[0].id(self.config)):
            while chunk is None and progress.is_next(INCREMENTAL):
                progress, chunk, status = self._tried(session, progress, progress.queue[0])
                stages.append((progress, status))
        return stages, chunk

    def _tried(
        self, session: ChunkSession, progress: Progress, request: TableRequest
    ) -> tuple[Progress, ReadChunk | None, str]:
        try:
            self._check_captured(request)
            with session.table(request.id(self.config), request.table, request.condition) as table:
                return self._chunk(table, progress, request)
        except Unread as unread:
            if request.is_again and unread.status in (NO_KEY, FAILED):
                after, status = _as_a_whole(progress, str(unread))
                return after, None, status
            log.warning("%s is not read: %s", request.table, unread)
            if request.is_again:
                # The log or the catalogue tells the replica that the table is gone, or comes back to it.
                return progress.without_present(), None, OTHERWISE
            return progress.without_present().giving_up([request], str(unread)), None, unread.status
        except Exception as error:
            if self._failures.is_passing(error):
                raise
            after, status = _given_up(self._failures, progress, error)
            return after, None, status

    def _check_captured(self, request: TableRequest) -> None:
        """Raise Unread for a table that the lists exclude: whoever may signal may not read it."""
        if not TableFilter.from_config(self.config).captures(request.id(self.config)):
            is_faulty = Fault.EXCLUDED_AS_UNKNOWN in self.config[COMPAT_FAULTS]
            raise Unread(UNCAPTURED, self._server.faulty_status if is_faulty else NOT_CAPTURED)

    def _chunk(
        self, table: ChunkTable, progress: Progress, request: TableRequest
    ) -> tuple[Progress, ReadChunk | None, str]:
        after, read, fence = self._read(table, progress, request)
        # While nobody alters the table, so that the log up to there knows it by no other columns and keys.
        end, identity = table.end(), table.identity()
        if read is None:
            return after, None, EMPTY
        if not any(map(len, read)):
            return after, None, DONE
        rows = ChangeBatch(table.schema, _changes(*read, table, end)).to_ipc()
        return after, ReadChunk(rows, fence, end, identity, request.whole, _begins(progress, after)), DONE

    def _read(
        self, table: ChunkTable, progress: Progress, request: TableRequest
    ) -> tuple[Progress, tuple[pa.StructArray, pa.StructArray] | None, str]:
        """The state after the next chunk, its row images and keys without a row, None where the table is empty.

        Also the fence, taken before anything is read: the log will tell whatever is beyond it.
        """
        if request.keys is not None:
            fence = table.fence()
            row_images = table.rows_of(request.keys)
            log.info(
                "incremental snapshot of %s: %d keys, %d rows", request.table, len(request.keys), len(row_images[0])
            )
            return progress.without_present(), row_images, fence
        page = table.page(request.condition, request.surrogate)
        page.check()
        key = page.key_text
        if progress.by(key) is not progress:
            log.warning("%s is read from its beginning: its key has become (%s)", request.table, key)
        progress = replace(progress.by(key), key=key)
        if progress.total is None:
            progress = replace(progress, total=page.estimate(), since_ms=time.time_ns() // 1_000_000)
        maximum = progress.maximum or page.maximum()
        if maximum is None:
            return progress.without_present(), None, ""
        if progress.last is None:
            self._size.begin()
        fence, begun = table.fence(), time.monotonic()
        images, last, count = page.after(progress.last, maximum, self._size.rows)
        self._size.learn(count, images.nbytes, time.monotonic() - begun)
        if request.is_again and self._rate:
            self._not_before = begun + count / self._rate
        longest = max(map(_length, (maximum, last or ())))
        if longest > _LONGEST_KEY:
            raise Unread(f"a key of {longest:,} characters is too long to read the table by", FAILED)
        log.info("incremental snapshot of %s: %d rows up to key %s of %s", request.table, count, last, maximum)
        # An empty chunk is the sign that all is read.
        after = progress.after_chunk(last, maximum, count) if last else progress.without_present()
        return after, (images, images.slice(0, 0)), fence


def _begins(before: Progress, after: Progress) -> bool:
    """Whether the chunk between two states is the first one of its table, also of one that is begun again."""
    return before.last is None or before.by(after.key or "") is not before


def _given_up(failures: Failures, progress: Progress, error: Exception) -> Stage:
    """The state without the current table, whose rows stay unread."""
    request, why = progress.queue[0], reason(failures, error)
    if request.is_again:
        return _as_a_whole(progress, why)
    is_known = isinstance(error, (TailraceError, failures.driver_error))
    said = (request.signal, request.table, why)
    log.error("the incremental snapshot of signal %s (%s) is given up: %s", *said, exc_info=None if is_known else error)
    return progress.without_present().giving_up([request], why), FAILED


def _as_a_whole(progress: Progress, why: str) -> Stage:
    """The state in which the current table is to be read as a whole, as it cannot be read in chunks."""
    request = progress.queue[0]
    log.warning("%s is read again as a whole, the log waits meanwhile: %s", request.table, why)
    return progress.without_present().asking([replace(request, kind=BLOCKING)]), OTHERWISE


def reason(failures: Failures, error: Exception) -> str:
    """Why a table is not read, in one line, with the remedy if one is known."""
    return error.line if isinstance(error, TailraceError) else failures.line(error) or type(error).__name__


def _changes(reads: pa.StructArray, gone: pa.StructArray, table: ChunkTable, end: Any) -> pa.RecordBatch:
    """Row images as incremental reads, and keys without a row as deletions.

    They have no position of their own, only one that they come after.
    """
    count = len(reads) + len(gone)
    return pa.RecordBatch.from_pydict(
        {
            "op": pa.concat_arrays([repeat(READ, len(reads)), repeat(DELETE, len(gone))]),
            # Behind everything of the log in the batch.
            "order": pa.array(range(1 << 62, (1 << 62) + count), pa.int64()),
            "ts_us": pa.repeat(pa.scalar(time.time_ns() // 1000, pa.int64()), count),
            "snapshot": repeat("incremental", count),
            "source": table.source(count, end),
            "before": pa.concat_arrays([pa.nulls(len(reads), reads.type), gone]),
            "after": pa.concat_arrays([reads, pa.nulls(len(gone), reads.type)]),
        }
    )


def _length(key: PagingKey) -> int:
    return sum(len(part or "") for part in key)
