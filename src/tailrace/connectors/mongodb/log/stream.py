"""Reads a change stream between two positions; the cursor stays open from one range to the next."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bson import decode
from pymongo.errors import PyMongoError

from tailrace.config import Config
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.connectors.lost_log_remedies import NEW_CHECKPOINT, NEW_SNAPSHOT
from tailrace.connectors.mongodb.client import (
    FAILURES,
    HISTORY_LOST,
    NO_IMAGE,
    RAW,
    TOO_LARGE,
    Client,
    code_of,
    connect,
    set_name,
)
from tailrace.connectors.mongodb.config import is_for_replica
from tailrace.connectors.mongodb.log.batch import CursorBatch, read_batch
from tailrace.connectors.mongodb.log.events import ChangeEvents
from tailrace.connectors.mongodb.log.fragments import Fragments
from tailrace.connectors.mongodb.log.pipeline import stages
from tailrace.connectors.mongodb.options import CAPTURE_SCOPE, CAPTURE_TARGET
from tailrace.connectors.mongodb.position import of_token, start_options, time_of
from tailrace.connectors.retry import Backoff
from tailrace.errors import OffsetError, SourceError

log = logging.getLogger(__name__)

# The collection that the cursor of a stream of a whole database is of.
ALL = "$cmd.aggregate"
# How long the server waits for a change where it has none: the range ends somewhere before now.
_AWAIT_MS = 100
_PATIENCE_S = 60.0
_NO_EVENTS = "the server has not written to its log for a minute, so that the end of the range is not certain"


class ChangeStream:
    """Reads one stream forward. `position` is behind all that was handed out.

    A stream ends where what it watches was dropped or renamed. Rows are kept by following that, so another stream is
    opened behind it then.
    """

    def __init__(self, config: Config, position: str) -> None:
        self.position = position
        self._config = config
        self._backoff = Backoff(config)
        self._client: Client | None = None
        self._session: Any = None
        self._cursor = 0
        self._fragments = Fragments()
        self._left: ChangeEvents | None = None

    def read(self, end: str) -> Iterator[ChangeEvents]:
        """The events before `end`. Raises OffsetError where the log is lost, SourceError."""
        waited_since = time.monotonic()
        while True:
            events, reached = self._next()
            places = positions(events)
            inside = int(pc.sum(pc.less(places, end)).as_py() or 0) if len(events) else 0
            if inside:
                yield part(events, 0, inside)
                self.position = places[inside - 1].as_py()
                waited_since = time.monotonic()
            if inside < len(events):
                self._left = part(events, inside, len(events))
                break
            # Events of one cluster time may come in several answers, so an empty one is needed to know their end.
            if not len(events) and reached is not None and time_of(reached) + 1 >= time_of(end):
                break
            if time.monotonic() - waited_since > _PATIENCE_S:
                log.warning("%s: %s", self._config[TOPIC_PREFIX], _NO_EVENTS)
                waited_since = time.monotonic()
        self.position = end

    def set_name(self) -> str:
        """The name of the replica set, which earlier releases have in `source`; empty through mongos."""
        return set_name(self.client())

    def close(self) -> None:
        """Close the cursor and the connection."""
        if self._client is not None:
            self._client.close()
            self._client = self._session = None
        self._cursor, self._fragments = 0, Fragments()

    def _next(self) -> tuple[ChangeEvents, str | None]:
        """The next events, and the position that the server says they reach; tried again while it is away."""
        if self._left is not None:
            events, self._left = self._left, None
            return events, None
        while True:
            try:
                batch = self._answer()
            except PyMongoError as error:  # noqa: PERF203  # the loop is the retrying
                self.close()
                if (refused := refusal(self._config, self.position, error)) is not None:
                    raise refused from error
                if not FAILURES.is_transient(error) and not is_cursor_gone(error):
                    with FAILURES.translated("the change stream cannot be read"):
                        raise
                self._backoff.wait(error)
            else:
                self._backoff.reset()
                events = ChangeEvents(self._fragments.whole(batch))
                if batch.token is None or self._fragments.is_open:
                    return events, None
                return events, of_token(decode(batch.token))

    def _answer(self) -> CursorBatch:
        if self._cursor == 0:
            self._session = self.client().start_session(causal_consistency=False)
            batch = self._run(self._opening())
        else:
            _, collection = target(self._config)
            batch = self._run({"getMore": self._cursor, "collection": collection, "maxTimeMS": _AWAIT_MS})
        if batch.cursor == 0 and not (is_for_replica(self._config) and len(batch.documents)):
            what = "the change stream has ended, as the watched database or collection was dropped or renamed"
            remedy = f"set capture.scope to deployment, or {NEW_CHECKPOINT}"
            raise SourceError(what, where=self._config[CAPTURE_TARGET], remedy=remedy)
        self._cursor = batch.cursor
        return batch

    def client(self) -> Client:
        """The client, connected or not."""
        if self._client is None:
            self._client = connect(self._config, "tailrace stream")
        return self._client

    def _opening(self) -> dict[str, Any]:
        _, collection = target(self._config)
        return {
            "aggregate": opening_of(collection),
            "pipeline": stages(self._config, start_options(self.position)),
            "cursor": {},
        }

    def _run(self, command: dict[str, Any]) -> CursorBatch:
        database, _ = target(self._config)
        answer = self.client()[database].command(command, codec_options=RAW, session=self._session)
        return read_batch(bytes(answer.raw))


def target(config: Config) -> tuple[str, str]:
    """The database that commands of the stream go to, and the collection that the cursor is of."""
    scope, watched = config[CAPTURE_SCOPE], config[CAPTURE_TARGET] or ""
    database, _, collection = watched.partition(".")
    if scope == "collection":
        return database, collection
    return ("admin" if scope == "deployment" else watched), ALL


def opening_of(collection: str) -> str | int:
    """What `aggregate` names to watch that."""
    return 1 if collection == ALL else collection


def opened(client: Client, config: Config, position: str, size: int) -> Mapping[str, Any]:
    """The server's cursor of a stream behind a position, with so many events at most; it is closed again.

    Its documents are raw, as one may be what Python cannot hold. Raises OffsetError where the log is lost, SourceError
    for a change that the server cannot send.
    """
    database, collection = target(config)
    command = {
        "aggregate": opening_of(collection),
        "pipeline": stages(config, start_options(position)),
        "cursor": {"batchSize": size},
    }
    try:
        answer = client[database].command(command, codec_options=RAW)
    except PyMongoError as error:
        if (refused := refusal(config, position, error)) is not None:
            raise refused from error
        raise
    cursor: Mapping[str, Any] = answer["cursor"]
    client[database].command({"killCursors": collection, "cursors": [cursor["id"]]})
    return cursor


def positions(events: ChangeEvents) -> pa.Array:
    """The position of each event, without the type bits: it is compared, not resumed."""
    return events.token_texts


def part(events: ChangeEvents, first: int, last: int) -> ChangeEvents:
    """Some of the events."""
    if (first, last) == (0, len(events)):
        return events
    return ChangeEvents(events.documents.take(np.arange(first, last)))


def lost(config: Config, position: str, why: str) -> OffsetError:
    """The error for a position that the server's log no longer has."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time_of(position) >> 32))
    return OffsetError(
        f"the server's log no longer has the changes since {when} UTC ({why})",
        where=f"{config[TOPIC_PREFIX]}: position {position}",
        remedy=f"{NEW_SNAPSHOT}; enlarge the oplog",
    )


def refusal(config: Config, position: str, error: PyMongoError) -> OffsetError | SourceError | None:
    """The error for a log that is lost, or a change that the server cannot send, while the log is read or opened."""
    if code_of(error) in HISTORY_LOST:
        return lost(config, position, FAILURES.line(error))
    if code_of(error) == TOO_LARGE:
        return _too_large(config, position)
    return _without_image(config, position, FAILURES.line(error)) if code_of(error) == NO_IMAGE else None


def _too_large(config: Config, position: str) -> SourceError:
    return SourceError(
        "a change event is larger than the 16 MB that the server can send",
        where=f"{config[TOPIC_PREFIX]}: after position {position}",
        remedy="set cursor.oversize.handling.mode to split (servers from 6.0.9 on), or to skip with "
        "cursor.oversize.skip.threshold; a capture.mode without pre-images makes events smaller",
    )


def _without_image(config: Config, position: str, why: str) -> SourceError:
    """The server does not have the image, or no longer."""
    return SourceError(
        f"the server has no document before or after a change, and it is required ({why})",
        where=f"{config[TOPIC_PREFIX]}: after position {position}",
        remedy="let the collection keep images (db.runCommand({collMod: ..., changeStreamPreAndPostImages: {enabled: "
        "true}})), for changes from then on; to pass this one, set capture.mode.pre.image=when_available and "
        "capture.mode.full.update.type=post_image until it is read",
    )


def is_cursor_gone(error: PyMongoError) -> bool:
    """Whether the server no longer has the cursor, so that another one has to be opened."""
    return code_of(error) in (43, 237)  # CursorNotFound, CursorKilled
