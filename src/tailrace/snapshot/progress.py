"""How far the snapshots that signals asked for have come: part of an offset, so that a restart goes on from there."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailrace.model.table import TableId
from tailrace.snapshot import signals
from tailrace.snapshot.signals import Request, Signal

log = logging.getLogger(__name__)

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """`handled`: ids of the signals seen that are still in the table. `queue`: what is to be read, the present first.

    `last` and `maximum` are keys of the present table, as text; `rows` is how many of it are read. `undo` is the state
    before the batch that this offset ends: the rows of such a batch are lost if the driver dies before its commit, so
    the first batch after a restart reads them again.
    """

    handled: tuple[str, ...] = ()
    queue: tuple[Request, ...] = ()
    last: Key | None = None
    maximum: Key | None = None
    rows: int = 0
    paused: bool = False
    undo: tuple[tuple[Request, ...], Key | None, Key | None, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        return {
            "handled": list(self.handled),
            "queue": _queue_json(self.queue),
            "last": _list(self.last),
            "maximum": _list(self.maximum),
            "rows": self.rows,
            "paused": self.paused,
            "undo": None
            if self.undo is None
            else [_queue_json(self.undo[0]), _list(self.undo[1]), _list(self.undo[2]), self.undo[3]],
        }

    @staticmethod
    def from_json(node: dict[str, Any] | None) -> Progress:
        """The inverse of `to_json`; nothing is in progress where there is none."""
        if node is None:
            return Progress()
        undo = node["undo"]
        return Progress(
            tuple(node["handled"]),
            _queue(node["queue"]),
            _key(node["last"]),
            _key(node["maximum"]),
            node["rows"],
            node["paused"],
            None if undo is None else (_queue(undo[0]), _key(undo[1]), _key(undo[2]), undo[3]),
        )

    def undone(self) -> Progress:
        """The state from which the last chunk is read again."""
        if self.undo is None:
            return self
        queue, last, maximum, rows = self.undo
        added = tuple(request for request in self.queue if request not in queue)
        return replace(self, queue=queue + added, last=last, maximum=maximum, rows=rows, undo=None)

    def after_chunk(self, last: Key, maximum: Key, rows: int) -> Progress:
        """The state once a chunk of the present table is read."""
        return replace(self, last=last, maximum=maximum, rows=self.rows + rows, undo=self._now())

    def without_present(self) -> Progress:
        """The state once the present table is read."""
        return replace(self, queue=self.queue[1:], last=None, maximum=None, rows=0, undo=self._now())

    @property
    def tables(self) -> str:
        """The names of the tables that are to be read."""
        return ",".join(request.table for request in self.queue)

    def is_next(self, kind: str) -> bool:
        """Whether a table is to be read next, and in that way."""
        return bool(self.queue) and not self.paused and self.queue[0].kind == kind

    def without_blocking(self) -> tuple[Progress, dict[str, str | None]]:
        """The state once the present blocking snapshot is read, and its tables with their SELECTs."""
        present = [request for request in self.queue if request.signal == self.queue[0].signal]
        queue = tuple(request for request in self.queue if request not in present)
        wanted = {request.table: request.condition for request in present}
        return replace(self, queue=queue, undo=self._now()), wanted

    def _now(self) -> tuple[tuple[Request, ...], Key | None, Key | None, int]:
        return self.queue, self.last, self.maximum, self.rows

    def told(self, found: Sequence[Signal], tables: Iterable[TableId]) -> Progress:
        """The state after new signals, in their order; `found` are all that are there."""
        new = [signal for signal in found if signal.id not in self.handled]
        return replace(self, handled=tuple(signal.id for signal in found)).asked(new, tables)

    def asked(self, found: Sequence[Signal], tables: Iterable[TableId]) -> Progress:
        """The state after some signals, in their order."""
        progress, known = self, list(tables)
        for signal in found:
            progress = progress._after(signal, known)
        return progress

    def _after(self, signal: Signal, tables: list[TableId]) -> Progress:
        log.info("signal %s: %s %s", signal.id, signal.type, signal.data or "")
        if signal.type == signals.EXECUTE:
            return replace(self, queue=self.queue + tuple(signals.requests(signal, tables)))
        if signal.type == signals.STOP:
            return self._stopped(signal, tables)
        if signal.type in (signals.PAUSE, signals.RESUME):
            return replace(self, paused=bool(self.queue) and signal.type == signals.PAUSE)
        if signal.type == signals.LOG:
            content = signal.content() or {}
            log.info("%s", content.get("message", ""))
        else:
            log.warning("signal %s is ignored: its type %r is unknown", signal.id, signal.type)
        return self

    def _stopped(self, signal: Signal, tables: list[TableId]) -> Progress:
        content = signal.content()
        if content is None:
            return self
        names = signals.collections(signal, content, tables) if content.get("data-collections") else None
        left = tuple(request for request in self.queue if names is not None and request.table not in names)
        if left[:1] == self.queue[:1]:
            return replace(self, queue=left)
        return replace(self, queue=left, last=None, maximum=None, rows=0, undo=None)


def _list(key: Key | None) -> list[str] | None:
    return None if key is None else list(key)


def _key(node: list[str] | None) -> Key | None:
    return None if node is None else tuple(node)


def _queue_json(queue: tuple[Request, ...]) -> list[list[str | None]]:
    return [request.to_json() for request in queue]


def _queue(node: list[list[Any]]) -> tuple[Request, ...]:
    return tuple(Request(*item) for item in node)
