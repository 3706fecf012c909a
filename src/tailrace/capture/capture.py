"""Change data capture of one database, as Spark's readers use it: plans on the driver, reads on executors.

Offsets are JSON-ready dicts. Splits are picklable; a task needs nothing but its split and the config.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tailrace.capture.log_split import LogSplit, read_log
from tailrace.capture.offset import Offset as Position
from tailrace.capture.planner import Planner
from tailrace.config import Config
from tailrace.connectors.base import Chunk, Offset
from tailrace.connectors.log_ports import Connector
from tailrace.connectors.offset import BEGIN, STREAM
from tailrace.connectors.snapshot_ports import SnapshotHandle
from tailrace.errors import OffsetError, SourceAwayError
from tailrace.model.source import SourceBlock
from tailrace.model.table import TableSchema
from tailrace.override import override
from tailrace.snapshot.splits import planned


class Capture:
    """Reads one pipeline's changes over a connector. Pickled, it keeps the configuration and no connection.

    `joins_topics`: records of several tables may have one topic, where their order shows.
    """

    def __init__(self, connector: Connector, *, joins_topics: bool = False) -> None:
        self._connector = connector
        self._planner = Planner(connector, joins_topics=joins_topics)
        self._planned: tuple[Offset, Offset, Sequence[Any]] | None = None
        self._bounded: SnapshotHandle | None = None
        self._newest: Position | None = None

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self._connector), self.config)

    @property
    def config(self) -> Config:
        """The configuration, with the tables that are captured by now."""
        return self._planner.config

    @property
    def source(self) -> SourceBlock:
        """The `source` block of the events."""
        return self._connector.source

    @property
    def source_type(self) -> pa.StructType:
        """The type of the column `source` in change batches."""
        return self._connector.source_type

    @property
    def skips_whole_changes(self) -> bool:
        """Whether `skipped.operations` applies to changes as the log has them."""
        return self._connector.skips_whole_changes

    def is_passing(self, error: Exception) -> bool:
        """Whether a retry may succeed: the server or the network was not reachable."""
        return isinstance(error, SourceAwayError) or self._connector.snapshots.failures.is_transient(error)

    def discover(self) -> list[TableSchema]:
        """The captured tables with their schemas, in snapshot order."""
        return self._connector.tables(self.config)

    def begin(self) -> Offset:
        """The offset of a pipeline that has read nothing. Changes nothing on the server."""
        begin = Position(self.source.connector, self._connector.identity, uuid.uuid4().hex)
        return begin.to_json(self._connector.text)

    def horizon(self, start: Offset) -> Any:
        """Where the log ends now: a position, for `head`. Raises OffsetError, SourceError."""
        return self._planner.horizon(self._position(start))

    def head(self, start: Offset, limit: int | None, until: Any = None) -> Offset:
        """The offset to plan up to: the newest, but at most `limit` bytes of log further and not beyond `until`.

        `start` itself when there is nothing new. Raises OffsetError for another source's checkpoint and for a log that
        is lost, SourceError.
        """
        begin = self._position(start)
        end = self._newest = self._planner.head(begin, limit, until)
        return start if end is begin else end.to_json(self._connector.text)

    def latest(self) -> dict[str, Any] | None:
        """Where the log ended at the last call of `head`, and how far that call's offset is behind; None before it.

        `position` is text. `complete_us` is CompleteUntil.at that offset, true once Spark has committed it. That,
        `lag_ms`, `lag_bytes` and `log_retained_bytes` are missing where they are not known.
        """
        return None if self._newest is None else self._planner.behind(self._newest)

    def has_snapshot(self, offset: Offset) -> bool:
        """Whether a snapshot is to be read from an offset on, and not the log alone."""
        position = self._position(offset)
        return position.phase != STREAM or (position.progress is not None and bool(position.progress.queue))

    def plan(self, start: Offset, end: Offset) -> Sequence[Any]:
        """The splits of a range of the log or of the snapshot.

        Asked again for the same range (a second action on a batch), it gives the same splits. Raises OffsetError for an
        end that was planned as if nothing had been read: Spark 4.0 and 4.1 do so with a setting of theirs.
        """
        if start["phase"] != BEGIN and start["pipeline"] != end["pipeline"]:
            raise OffsetError(
                "Spark planned a micro-batch before it read the checkpoint, as if the query were new",
                remedy="set spark.sql.streaming.triggerAvailableNowWrapper.enabled to false (the default), and delete "
                "the newest file of the checkpoint's folder `offsets`",
            )
        if self._planned is None or self._planned[:2] != (start, end):
            read_id = uuid.uuid4().hex
            planned = self._planner.plan(self._position(start), self._position(end))
            self._planned = start, end, [replace(split, read_id=read_id) for split in planned]
        return self._planned[2]

    def snapshot_of(self, split: Any) -> str | None:
        """The name of the snapshot that a planned split reads; None for a split of the log.

        Splits of the log hold the same changes whenever they are planned; those of another snapshot hold other rows.
        """
        return None if isinstance(split, LogSplit) else str(split.moment)

    def snapshot(self) -> Sequence[Any]:
        """The splits of a bounded read of all captured tables as of now; no log is prepared for it."""
        snapshots = self._connector.snapshots
        self._end_bounded()
        with snapshots.failures.translated("the snapshot cannot be planned"):
            self._bounded = snapshots.open_now(self.config)
            return planned(snapshots, self.config, self._bounded)

    def read(self, split: Any) -> Iterator[Chunk]:
        """The changes of a split. Raises SourceError, DecodeError."""
        if isinstance(split, LogSplit):
            yield from read_log(self.config, split, self._connector.changes, self._connector.fence)
        else:
            with self._connector.snapshots.failures.translated("the snapshot cannot be read"):
                yield from self._connector.rows(self.config, split)

    def close(self) -> None:
        """Close connections."""
        self._end_bounded()
        self._planner.close()
        self._connector.close()

    def _end_bounded(self) -> None:
        if self._bounded is not None:
            self._bounded.close()
            self._bounded = None

    def _position(self, offset: Offset) -> Position:
        connector = self._connector
        return Position.from_json(offset, self.source.connector, connector.identity, connector.parse)


def _again(kind: type[Connector], config: Config) -> Capture:
    return Capture(kind(config))
