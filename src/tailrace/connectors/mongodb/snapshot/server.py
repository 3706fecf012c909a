"""Implements the protocols of snapshots (connectors/snapshot_ports.py) on MongoDB."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bson import ObjectId

from tailrace.config import Config
from tailrace.connectors.mongodb.catalog import Collections
from tailrace.connectors.mongodb.client import FAILURES, Server
from tailrace.connectors.mongodb.position import time_of
from tailrace.connectors.mongodb.snapshot import splits
from tailrace.connectors.mongodb.snapshot.chunks import Session
from tailrace.connectors.mongodb.snapshot.reads import cluster_time, id_of
from tailrace.connectors.mongodb.snapshot.rows import Moment, Split
from tailrace.connectors.mongodb.snapshot.signals import MongoSignals
from tailrace.connectors.notifications import NOT_CAPTURED
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS
from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.signal_source import SignalSource
from tailrace.connectors.snapshot_ports import Failures, OnDemandSnapshots, SnapshotHandle
from tailrace.connectors.snapshots import SnapshotGone, SnapshotPlace
from tailrace.model.table import TableId
from tailrace.override import override


@dataclass(frozen=True)
class Handle(SnapshotHandle):
    """Implements SnapshotHandle: the server keeps documents as of a time for a while, for every client."""

    server: Server
    moment: Moment

    @property
    @override
    def position(self) -> str:
        return self.moment.position

    @override
    def is_valid(self, config: Config) -> bool:
        return self.server.ask(lambda client: splits.is_valid(client, config, self.moment))

    @override
    def close(self) -> None:
        """Nothing is held."""


class MongoSnapshots(OnDemandSnapshots):
    """Implements OnDemandSnapshots."""

    failures: Failures = FAILURES
    faulty_status = NOT_CAPTURED  # the reference reads it
    takes_surrogate_keys = False

    def __init__(self, config: Config, server: Server) -> None:
        self._server = server
        self._signals = SignalSource(config, self.failures, MongoSignals.of(config))

    @override
    def tables(self, config: Config) -> list[TableId]:
        return self._server.ask(lambda client: Collections(client, config).captured())

    @override
    def sizes(self, config: Config) -> list[tuple[str, int]]:
        sizes = self._server.ask(lambda client: splits.sizes(client, config))
        return [(str(table), size) for table, size in sizes]

    @override
    def open_at_log(self, config: Config, start: Reached, end: Reached) -> Handle:
        """At the time that the offset says, or later if the server has that no more.

        Changes between the two times are then read from the log as well, and sinks that keep tables leave them out.
        """
        moment = Moment(time_of(end.log[BEGINS]) - 1, uuid.uuid4().hex)
        is_there = self._server.ask(lambda client: splits.is_readable(client, config, moment))
        return Handle(self._server, moment) if is_there else self.open_now(config)

    @override
    def open_now(self, config: Config) -> Handle:
        return Handle(self._server, Moment(self._server.ask(cluster_time), uuid.uuid4().hex))

    @override
    def cut(
        self,
        config: Config,
        handle: Handle,
        wanted: Mapping[str, str | None] | None,
        place: SnapshotPlace | None,
        plan: Callable[[splits.MongoCuts], list[Split]],
    ) -> list[Split]:
        if not handle.is_valid(config):
            raise SnapshotGone("the server no longer has the documents as of the snapshot's time")
        return self._server.ask(lambda client: plan(splits.MongoCuts(client, config, handle.moment, wanted)))

    @override
    def new_signals(self, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        return self._server.ask(lambda client: self._signals.new(client, handled))

    @contextmanager
    @override
    def chunks(self, config: Config) -> Iterator[Session]:
        yield Session(self._server.client, config, self._signals)

    @override
    def shown(self, part: str) -> str:
        """The value of `_id`, as JSON if Java's text of it is another one."""
        value = id_of(part)
        return str(value) if isinstance(value, (str, int, ObjectId)) and not isinstance(value, bool) else part

    @override
    def existing(self, tables: Sequence[TableId]) -> list[TableId]:
        return self._server.ask(lambda client: Collections(client, self._server.config).existing(tables))
