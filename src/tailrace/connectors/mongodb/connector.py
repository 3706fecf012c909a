"""Implements Connector (connectors/log_ports.py) for MongoDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tailrace.config import Config
from tailrace.config.options.spark import SHAPE
from tailrace.connectors.log_ports import Committed
from tailrace.connectors.mongodb import takeover
from tailrace.connectors.mongodb.catalog import Collections
from tailrace.connectors.mongodb.client import RAW, Client, Server
from tailrace.connectors.mongodb.documents import KEY, Documents, sampled
from tailrace.connectors.mongodb.log.batch import read_batch
from tailrace.connectors.mongodb.log.changes import LogRange, changes
from tailrace.connectors.mongodb.log.oplog import gap_of_oplog
from tailrace.connectors.mongodb.log.stream import lost, opened
from tailrace.connectors.mongodb.options import (
    CAPTURE_MODE,
    CAPTURE_SCOPE,
    CAPTURE_START_OP_TIME,
    CAPTURE_TARGET,
    CURSOR_PIPELINE,
    DOCUMENT_SAMPLE_SIZE,
    OPLOG,
)
from tailrace.connectors.mongodb.position import (
    SOURCE_TYPE,
    beginning_of,
    end_of,
    last_before,
    parse,
    time_of,
)
from tailrace.connectors.mongodb.record_format import source_block
from tailrace.connectors.mongodb.snapshot.chunks import ReadTime
from tailrace.connectors.mongodb.snapshot.reads import cluster_time, lacks_change, oldest_time, written_before
from tailrace.connectors.mongodb.snapshot.rows import read
from tailrace.connectors.mongodb.snapshot.server import MongoSnapshots
from tailrace.connectors.mongodb.types.layout import Values
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS, LogGap, SharedLogConnector
from tailrace.errors import OffsetError
from tailrace.model.structure import Fact, Structure, digest
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override


@dataclass(frozen=True)
class LogEnd:
    """Implements LogEnd: behind the newest change that a majority of the members has."""

    position: str
    committed: Committed | None = None


_CLONED = "it is capped, and the log does not have the documents that cloneCollectionAsCapped fills one with"


class MongoConnector(SharedLogConnector):
    """Implements Connector. A position is a text, see position.py; a range is [start, end)."""

    source_type = SOURCE_TYPE
    skips_whole_changes = True
    changes = staticmethod(changes)
    fence = staticmethod(ReadTime.parse)
    rows = staticmethod(read)
    parse = staticmethod(parse)

    def __init__(self, config: Config) -> None:
        self.config = config
        self.source = source_block(config)
        self._server = Server(config)
        self._compared: str | None = None

    @cached_property
    @override
    def snapshots(self) -> MongoSnapshots:
        return MongoSnapshots(self.config, self._server)

    @cached_property
    @override
    def identity(self) -> str:
        """The replica set, or that it is a sharded cluster, and what of it is watched."""
        answer = self._server.ask(lambda client: client.admin.command("hello"))
        name = str(answer.get("setName", "sharded"))
        is_whole = self.config[CAPTURE_SCOPE] == "deployment"
        return name if is_whole else f"{name}/{self.config[CAPTURE_TARGET]}"

    @override
    def text(self, position: str) -> str:
        return position

    @override
    def tables(self, config: Config) -> list[TableSchema]:
        rows, tables = Documents(config), self.snapshots.tables(config)
        schemas = [rows.schema(table) for table in tables]
        if config[SHAPE] == "table" and len(tables) == 1 and schemas[0].key == (KEY,):
            return [sampled(config, tables[0], self._server.ask(lambda client: self._sample(client, tables[0])))]
        return schemas

    @override
    def structures(self, config: Config, reached: Reached) -> Mapping[TableId, Structure]:
        """A collection is known by its UUID; the log tells drops and renames at their place.

        Stages of the user may leave these out, so that the UUID alone tells of them.
        """
        rows, is_reported = Documents(config), config[CURSOR_PIPELINE] is None
        collections = self._server.ask(lambda client: Collections(client, config).captured_collections())
        why = "cursor.pipeline was changed, and maybe left out some of its changes"
        facts = {"stages": Fact(digest(config.given.get(CURSOR_PIPELINE.name, "")), why)}
        return {
            table: Structure(
                identity=each.uuid.hex(),
                facts={**facts, "form": Fact(rows.form(table), "other properties say how documents become rows")},
                is_reported=is_reported,
                unread=_CLONED if each.is_capped else None,
            )
            for table, each in collections.items()
        }

    @override
    def schema(self, config: Config, table: TableId) -> TableSchema:
        return Documents(config).schema(table)

    def _sample(self, client: Client, table: TableId) -> Values:
        """Some documents of a collection, chosen by the server."""
        stage = {"$sample": {"size": self.config[DOCUMENT_SAMPLE_SIZE]}}
        options = {"pipeline": [stage], "cursor": {"batchSize": self.config[DOCUMENT_SAMPLE_SIZE]}}
        answer = client[table.database].command({"aggregate": table.table, **options}, codec_options=RAW)
        return read_batch(bytes(answer.raw)).documents

    @override
    def log_end(self) -> LogEnd:
        written = self._server.ask(written_before)
        committed = None if written is None else Committed(written[0], end_of(written[1]))
        return LogEnd(end_of(self._server.ask(cluster_time)), committed)

    @override
    def committed(self, end: LogEnd) -> Committed | None:
        return end.committed

    @override
    def taken_over(self, end: LogEnd) -> tuple[str, Mapping[str, Any]] | None:
        taken = takeover.position_of(self.config)
        return None if taken is None else (taken, {BEGINS: taken})

    @override
    def first(self, end: LogEnd, *, reads_tables: bool) -> tuple[str | None, Mapping[str, Any]]:
        """The time at which the tables are read is chosen here."""
        given = self.config[CAPTURE_START_OP_TIME]
        if given >= 0 and not reads_tables:
            return beginning_of(given), {BEGINS: beginning_of(given)}
        return super().first(end, reads_tables=reads_tables)

    @override
    def lost(
        self, reached: Reached, end: Reached | None = None, *, position: str | None = None, is_routine: bool = False
    ) -> LogGap | None:
        """A stream is opened at the position; in routine only once, as tasks read on from there."""
        at = self.needed(reached, position)
        if at is None or (is_routine and self._compared is not None):
            return None
        # Of a time that is given nobody knows whether the log ever had a change.
        is_own = at != reached.log.get(BEGINS)
        gap = self._server.ask(lambda client: self._gap(client, at, is_own=is_own), "the log cannot be opened")
        if gap is None:
            self._compared = at
        return gap

    def _gap(self, client: Client, at: str, *, is_own: bool) -> LogGap | None:
        """A stream is opened at any time: before the beginning of a new log, as if nothing had been, and after its end.

        So the log of a server that was restored from a backup is known by the last change that was read.
        """
        oldest, last = oldest_time(client), last_before(at)
        if oldest is not None and is_own and last is not None and oldest <= last and lacks_change(client, last):
            why = "its log lacks the last one that was read: it was restored from an older backup, or is another server"
            return LogGap(lost(self.config, at, why))
        if self.config[CAPTURE_MODE] == OPLOG:
            error = gap_of_oplog(client, self.config, at)
            return None if error is None else LogGap(error)
        if oldest is not None and oldest > time_of(at):
            return LogGap(lost(self.config, at, "its log begins later: another server, or one that was set up again"))
        try:
            opened(client, self.config, at, 1)
        except OffsetError as error:
            return LogGap(error)
        return None

    @override
    def ranges(self, config: Config, start: Reached, begin: str, end: Reached, *, is_whole: bool) -> Sequence[LogRange]:
        """A change stream has one reader."""
        return [LogRange(begin, end.position)]

    @override
    def close(self) -> None:
        self._server.close()
