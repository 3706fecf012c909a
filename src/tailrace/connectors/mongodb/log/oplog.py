"""Reads the oplog between two positions (`capture.mode=oplog`), with the same result as a change stream.

A change stream is the better way where there is the choice: it needs no right to read the database `local`, and it goes
through mongos. The oplog has no whole documents of updates, and costs the server less.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from bson.raw_bson import RawBSONDocument
from pymongo.errors import PyMongoError

from tailrace.config import Config
from tailrace.config.options.filters import SKIPPED_OPERATIONS
from tailrace.connectors.mongodb import record_format
from tailrace.connectors.mongodb.catalog import TEMPORARY, table_id
from tailrace.connectors.mongodb.client import FAILURES, HISTORY_LOST, Client, code_of, connect, set_name
from tailrace.connectors.mongodb.config import is_for_replica
from tailrace.connectors.mongodb.log.entries import change_events, time_of_entry
from tailrace.connectors.mongodb.log.events import ChangeEvents
from tailrace.connectors.mongodb.log.pipeline import always, is_watched, lists
from tailrace.connectors.mongodb.log.stream import is_cursor_gone, lost
from tailrace.connectors.mongodb.options import CAPTURE_SCOPE, CAPTURE_TARGET
from tailrace.connectors.mongodb.position import end_of, time_of, timestamp
from tailrace.connectors.mongodb.snapshot.reads import batches, first_of, oldest_time
from tailrace.connectors.mongodb.types.layout import Buffer, Values
from tailrace.connectors.retry import Backoff
from tailrace.errors import OffsetError, SourceError

_OPLOG = table_id("local", "oplog.rs")
# The namespace of an entry, in the parts that lists are for.
_DATABASE = {"$arrayElemAt": [{"$split": ["$ns", "."]}, 0]}
_OPERATIONS = {"c": "i", "u": "u", "d": "d"}
_MAJORITY = {"readConcern": {"level": "majority"}}


class Oplog:
    """Reads forward, as ChangeStream does; implements Lookup. `position` is behind all that was handed out."""

    def __init__(self, config: Config, position: str) -> None:
        self.position = position
        self._config = config
        self._backoff = Backoff(config)
        self._client: Client | None = None

    def read(self, end: str) -> Iterator[ChangeEvents]:
        """The events before `end`. Raises OffsetError where the log is lost, SourceError."""
        while time_of(self.position) < time_of(end):
            try:
                for entries in self._entries(end):
                    yield _events([event for entry in entries for event in self._changes(entry)])
                    self.position = end_of(time_of_entry(entries[-1]))
                    self._backoff.reset()
            except PyMongoError as error:  # noqa: PERF203  # the loop is the retrying
                self.close()
                if code_of(error) in HISTORY_LOST:
                    raise lost(self._config, self.position, FAILURES.line(error)) from error
                if not FAILURES.is_transient(error) and not is_cursor_gone(error):
                    with FAILURES.translated("the oplog cannot be read"):
                        raise
                self._backoff.wait(error)
            else:
                break
        self.position = end

    def set_name(self) -> str:
        """The name of the replica set."""
        return set_name(self.client())

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _entries(self, end: str) -> Iterator[list[bytes]]:
        """The answers of the server with the entries before `end` that can be captured."""
        client = self.client()
        find = {"filter": wanted(self._config, self.position, end), "sort": {"$natural": 1}, **_MAJORITY}
        for number, batch in enumerate(batches(client, _OPLOG, find)):
            if number == 0:
                # Asked when the cursor is there: from now on the server ends it if what it reads is removed.
                gap = gap_of_oplog(client, self._config, self.position)
                if gap is not None:
                    raise gap
            entries = batch.raw_documents()
            if entries:
                yield entries

    def _changes(self, entry: bytes) -> Iterator[bytes]:
        for namespaces, event in change_events(entry, self):
            if any(is_watched(self._config, table_id(*each.split(".", 1))) for each in namespaces):
                yield event

    def document(self, namespace: str, key: bytes) -> bytes | None:
        """The document as it is now. Only patches show what is left of an array."""
        if not record_format.is_debezium_1(self._config) or is_for_replica(self._config):
            return None
        database, _, collection = namespace.partition(".")
        return first_of(self.client(), table_id(database, collection), {"filter": RawBSONDocument(key)})

    def entry(self, time: int) -> bytes:
        """The entry of the oplog."""
        raw = first_of(self.client(), _OPLOG, {"filter": {"ts": timestamp(time)}, **_MAJORITY})
        if raw is not None:
            return raw
        raise lost(self._config, self.position, "it no longer has the beginning of a large transaction")

    def client(self) -> Client:
        """The client, connected or not."""
        if self._client is None:
            self._client = connect(self._config, "tailrace oplog")
        return self._client


def gap_of_oplog(client: Client, config: Config, position: str) -> OffsetError | None:
    """The error for a log that begins behind a position. Raises SourceError where the oplog cannot be read."""
    if "setName" not in client.admin.command("hello"):
        remedy = "use a change stream: capture.mode=change_streams_update_full, and compat.version=1.1 for its events"
        raise SourceError("the oplog cannot be read through mongos", where="capture.mode", remedy=remedy)
    oldest = oldest_time(client)
    if oldest is None:
        remedy = 'grant the role {role: "read", db: "local"}, or use a change stream (capture.mode)'
        raise SourceError("the user may not read the oplog, local.oplog.rs", where="mongodb.user", remedy=remedy)
    return lost(config, position, "its log begins later") if oldest > time_of(position) else None


def wanted(config: Config, start: str, end: str) -> dict[str, Any]:
    """The condition of the entries of a range that may have captured changes; the client decides after it."""
    name, operations = (
        "$ns",
        [entry for op, entry in _OPERATIONS.items() if op not in config[SKIPPED_OPERATIONS]],
    )
    passing = lists(config, _DATABASE, name)
    named = [{"$in": [name, [".".join((table.database, table.table)) for table in always(config)]]}]
    scope, watched = config[CAPTURE_SCOPE], config[CAPTURE_TARGET]
    inside = [] if scope == "deployment" else [{"$eq": [_DATABASE if scope == "database" else name, watched]}]
    plain = {
        "op": {"$in": operations},
        "$expr": {"$and": [*inside, *([{"$or": [{"$and": passing}, *named]}] if passing else [])]},
    }
    commands = ["applyOps", "commitTransaction"]
    if is_for_replica(config):
        commands += ["drop", "renameCollection"]
        plain["ns"] = {"$not": {"$regex": rf"^[^.]+\.(?:{TEMPORARY})$"}}
    told = [{f"o.{command}": {"$exists": True}} for command in commands]
    times = {"$gte": timestamp(time_of(start)), "$lt": timestamp(time_of(end))}
    return {"ts": times, "$or": [plain, {"op": "c", "$or": told}]}


def _events(raw_events: list[bytes]) -> ChangeEvents:
    """Change events that lie one behind the other."""
    starts = np.cumsum([0, *map(len, raw_events[:-1])] if raw_events else [], dtype=np.int64)
    return ChangeEvents(Values.documents(Buffer(raw_events), starts))
