"""The state of requested snapshots: part of an offset, so that a restart resumes there.

| field | stores | set by | until |
|---|---|---|---|
| handled | marks of the signals read that are still in the table | a look at the signal table | their rows are gone |
| queue | what is to be read, the current first | a signal | it is read, stopped or given up |
| last, maximum, key | how far the current table is read, up to where, by which columns | a chunk | the table is read |
| rows, total, since_ms | rows read of it, the server's estimate of all, since when | a chunk | the table is read |
| paused | whether incremental snapshots wait | a signal | a signal, or none of them is left |
| undo | the state before this batch | a batch that reads rows | the batch after it |
| files, topic | which files of signals, and how much of the topic, are read | a look there | the next look |
| tables | tables added to the capture, or removed from it | a signal | a start whose lists say the same |
| wait | up to which transactions all must have ended | a table that is added | they have ended |
| incomplete | tables that lack rows, and why | a snapshot that is given up | it is asked for again, or stopped |
| warnings | the current problems of the source | each batch | the next batch |
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Container, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.snapshots import PagingKey, key_json, key_of
from tailrace.errors import SignalError
from tailrace.model.table import TableId
from tailrace.snapshot import signals
from tailrace.snapshot.incomplete import Incomplete, with_table, without_tables
from tailrace.snapshot.signals import BLOCKING, INCREMENTAL, TableRequest

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Undo:
    """The fields of a Progress that a chunk changes, with their values before it."""

    queue: tuple[TableRequest, ...]
    last: PagingKey | None
    maximum: PagingKey | None
    rows: int
    key: str | None


# The most bytes that requests may take in an offset, which is written for every batch.
QUEUE_BYTES = 512 << 10


@dataclass(frozen=True, slots=True)
class Progress:
    """`handled`: marks of the signals read that are still in the table, None where those of the beginning are unknown.

    `queue`: what is to be read, the current first.

    `last` and `maximum` are keys of the current table as texts, with the columns and types in `key`. `rows` is how many
    rows of it are read, `total` the server's estimate when its first chunk was read, at `since_ms`. `undo` is the state
    before the batch that this offset ends: the rows of such a batch are lost if the driver dies before its commit, so
    the first batch after a restart reads them again. `files` of signals and the `topic` up to that position are read.
    `tables` were added or removed since the start; nothing is read before all transactions up to number `wait` have
    ended. `incomplete` are the tables whose snapshots were given up, `warnings` the current problems of the source.
    """

    handled: tuple[Mark, ...] | None = ()
    queue: tuple[TableRequest, ...] = ()
    last: PagingKey | None = None
    maximum: PagingKey | None = None
    _: KW_ONLY
    rows: int = 0
    paused: bool = False
    undo: Undo | None = None
    total: int | None = None
    since_ms: int | None = None
    files: tuple[str, ...] = ()
    topic: int | None = None
    tables: tuple[tuple[str, bool], ...] = ()
    wait: int | None = None
    key: str | None = None
    incomplete: tuple[Incomplete, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        return {
            "handled": None if self.handled is None else [{"id": id_, "row": row} for id_, row in self.handled],
            "queue": _queue_json(self.queue),
            "last": key_json(self.last),
            "maximum": key_json(self.maximum),
            "rows": self.rows,
            "paused": self.paused,
            "undo": None if self.undo is None else self._undo_json(self.undo),
            "total": self.total,
            "since_ms": self.since_ms,
            "files": list(self.files),
            "topic": self.topic,
            "tables": dict(self.tables),
            "wait": self.wait,
            "key": self.key,
            **({"incomplete": [table.to_json() for table in self.incomplete]} if self.incomplete else {}),
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }

    def _undo_json(self, state: Undo) -> dict[str, Any]:
        """An Undo as JSON. A number in its queue is the index of a request in this state's queue, which stores it."""
        places = {request: place for place, request in enumerate(self.queue)}
        return {
            "queue": [places.get(request, request.to_json()) for request in state.queue],
            "last": key_json(state.last),
            "maximum": key_json(state.maximum),
            "rows": state.rows,
            "key": state.key,
        }

    @staticmethod
    def from_json(node: dict[str, Any] | None) -> Progress:
        """The inverse of `to_json`; nothing is in progress where there is none."""
        if node is None:
            return Progress()
        queue = _queue(node["queue"])
        return Progress(
            None if node["handled"] is None else tuple((mark["id"], mark["row"]) for mark in node["handled"]),
            queue,
            key_of(node["last"]),
            key_of(node["maximum"]),
            rows=node["rows"],
            paused=node["paused"],
            undo=_undo(node["undo"], queue),
            total=node.get("total"),
            since_ms=node.get("since_ms"),
            files=tuple(node.get("files", ())),
            topic=node.get("topic"),
            tables=tuple(node.get("tables", {}).items()),
            wait=node.get("wait"),
            key=node.get("key"),
            incomplete=tuple(map(Incomplete.from_json, node.get("incomplete", ()))),
            warnings=tuple(node.get("warnings", ())),
        )

    def undone(self) -> Progress:
        """The state from which the last chunk is read again."""
        if self.undo is None:
            return self
        queue = self.undo.queue
        added = tuple(request for request in self.queue if request not in queue)
        again = tuple(request for request in queue if request not in self.queue)
        before = {name: getattr(self.undo, name) for name in ("last", "maximum", "rows", "key")}
        state = replace(self, queue=queue + added, undo=None, **before)
        state = replace(state, incomplete=_asked_again(state.incomplete, again))
        return state if state.queue[:1] == self.queue[:1] else replace(state, total=None, since_ms=None)

    def after_chunk(self, last: PagingKey, maximum: PagingKey, rows: int) -> Progress:
        """The state once a chunk of the current table is read."""
        return replace(self, last=last, maximum=maximum, rows=self.rows + rows)

    def without_present(self) -> Progress:
        """The state once the current table is read."""
        return replace(self._at_next(), queue=self.queue[1:])

    def undoing(self, before: Progress) -> Progress:
        """This state as that of a batch which began at `before`."""
        return replace(self, undo=before._now())

    def by(self, key: str) -> Progress:
        """The state for reading the current table by this key. A table that was read by another key starts again."""
        return self if self.key == key or (self.key is None and self.last is None) else self._at_next()

    def _at_next(self) -> Progress:
        """The state in which nothing of the next table is read."""
        return replace(self, last=None, maximum=None, rows=0, total=None, since_ms=None, key=None)

    @property
    def names(self) -> str:
        """The names of the tables that incremental snapshots are to read."""
        return ",".join(request.table for request in self.queue if request.kind == INCREMENTAL)

    def is_next(self, kind: str) -> bool:
        """Whether the next request is of this kind. As in Debezium a pause does not delay a blocking snapshot."""
        if kind == BLOCKING:
            return bool(self._blocking())
        return bool(self.queue) and not self.paused and self.queue[0].kind == kind

    def _blocking(self) -> dict[int, TableRequest]:
        """What the next blocking snapshot reads, by the places in the queue: one signal's tables, each once."""
        requests: dict[int, TableRequest] = {}
        for place, request in enumerate(self.queue):
            others = [
                earlier
                for earlier in requests.values()
                if earlier.signal != request.signal or earlier.table == request.table
            ]
            if request.kind == BLOCKING and not others:
                requests[place] = request
            elif requests or not self.paused:
                break
        return requests

    def without_blocking(self) -> tuple[Progress, tuple[TableRequest, ...]]:
        """The state once the next blocking snapshot is read, and its requests, of different tables each."""
        present = self._blocking()
        queue = tuple(request for place, request in enumerate(self.queue) if place not in present)
        return replace(self, undo=self._now())._with(queue), tuple(present.values())

    def _with(self, queue: tuple[TableRequest, ...]) -> Progress:
        """The state with another queue; a pause ends when no incremental snapshot is left."""
        return replace(self, queue=queue, paused=self.paused and _any_incremental(queue))

    def _now(self) -> Undo:
        return Undo(self.queue, self.last, self.maximum, self.rows, self.key)

    def asked(self, signal: Signal, tables: Iterable[TableId]) -> Progress:
        """The state after a signal about snapshots."""
        captured = list(tables)
        if signal.type == signals.EXECUTE:
            return self.asking(signals.requests(signal, captured))
        if signal.type == signals.STOP:
            return self._stopped(signal, captured)
        return replace(self, paused=signal.type == signals.PAUSE)._with(self.queue)

    def asking(self, requests: Iterable[TableRequest]) -> Progress:
        """The state with more requests; the tables that they read are no longer incomplete.

        Raises SignalError where they are too large: they are part of every offset until they are carried out.
        """
        more = tuple(requests)
        size, held = _size(more), _size(self.queue)
        if size + held > QUEUE_BYTES:
            what = f"its tables, conditions and keys take {size:,} bytes, and {held:,} of {QUEUE_BYTES:,} are in use"
            raise SignalError(what, remedy="ask for less at a time, or when the snapshots before are done")
        return replace(self, queue=self.queue + more, incomplete=_asked_again(self.incomplete, more))

    def giving_up(self, requests: Iterable[TableRequest], why: str) -> Progress:
        """The state in which the tables of these requests are incomplete."""
        state = self
        for request in requests:
            reason = f"{why} (signal {request.signal}, {request.kind} snapshot)"
            state = state.lacking(request.table, reason, of_keys=request.keys is not None)
        return state

    def lacking(self, table: str, why: str, *, of_keys: bool = False) -> Progress:
        """The state in which a table is incomplete."""
        incomplete = Incomplete(table, why, time.time_ns() // 1_000_000, of_keys)
        return replace(self, incomplete=with_table(self.incomplete, incomplete))

    def _stopped(self, signal: Signal, tables: list[TableId]) -> Progress:
        content = signal.content()
        if content is None:
            return self
        requested = {request.table for request in self.queue}
        incomplete = {table.table for table in self.incomplete}
        if not requested | incomplete:
            log.warning("signal %s is ignored: no snapshot is running that could be stopped", signal.id)
            return self
        names = list(requested)
        if content.get("data-collections"):
            names = signals.collections(signal, content, [*map(str, tables), *requested, *incomplete])
        for name in names:
            if name not in requested | incomplete:
                log.warning("signal %s: %s is not part of the snapshot", signal.id, name)
        return self.without(names)

    def without(self, names: Container[str]) -> Progress:
        """The state after a stop of these tables: their requests are removed, and they are no longer incomplete."""
        state = replace(self, incomplete=without_tables(self.incomplete, names))
        left = tuple(request for request in self.queue if request.table not in names)
        if left[:1] == self.queue[:1]:
            return state._with(left)
        return replace(state._at_next(), undo=None)._with(left)


def _asked_again(incomplete: tuple[Incomplete, ...], requests: tuple[TableRequest, ...]) -> tuple[Incomplete, ...]:
    """The incomplete tables that stay so when these requests are carried out."""
    whole = {request.table for request in requests if request.keys is None}
    some = {request.table for request in requests if request.keys is not None}
    return without_tables(without_tables(incomplete, whole), some, of_keys=True)


def _size(requests: tuple[TableRequest, ...]) -> int:
    """Bytes that requests take in an offset."""
    return sum(len(json.dumps(request.to_json())) for request in requests)


def _any_incremental(queue: tuple[TableRequest, ...]) -> bool:
    return any(request.kind == INCREMENTAL for request in queue)


def _undo(node: Any, queue: tuple[TableRequest, ...]) -> Undo | None:
    """The state before; `queue` is the one that its numbers are indexes of."""
    if node is None:
        return None
    last, maximum = key_of(node["last"]), key_of(node["maximum"])
    return Undo(_queue(node["queue"], queue), last, maximum, node["rows"], node["key"])


def _queue_json(queue: tuple[TableRequest, ...]) -> list[dict[str, Any]]:
    return [request.to_json() for request in queue]


def _queue(node: list[Any], present: tuple[TableRequest, ...] = ()) -> tuple[TableRequest, ...]:
    return tuple(present[item] if isinstance(item, int) else TableRequest.from_json(item) for item in node)
