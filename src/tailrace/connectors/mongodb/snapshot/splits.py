"""Cuts collections into splits by ranges of `_id`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

from tailrace.config import Config
from tailrace.config.options.snapshot import SNAPSHOT_MAX_THREADS
from tailrace.connectors.mongodb.catalog import Collections
from tailrace.connectors.mongodb.client import FAILURES, SNAPSHOT_TOO_OLD, SNAPSHOT_UNAVAILABLE, Client, code_of
from tailrace.connectors.mongodb.config import condition, conditions
from tailrace.connectors.mongodb.snapshot.reads import at_time, between, first_id, id_of, key_bytes, key_text
from tailrace.connectors.mongodb.snapshot.rows import Moment, Split
from tailrace.connectors.mongodb.snapshot.user_filter import limit, user_filter
from tailrace.connectors.refusals import refusals
from tailrace.connectors.snapshot_ports import Cuts
from tailrace.connectors.snapshots import SnapshotGone, SnapshotPlace
from tailrace.connectors.split_sizes import pieces
from tailrace.model.table import TableId
from tailrace.override import override

# Documents sampled for each range: bounds of so many are within some percent of equal parts.
_SAMPLED = 20


class MongoCuts(Cuts):
    """Implements Cuts: a collection is cut by ranges of `_id`. `wanted` has the collections that a signal asks for."""

    marks_tables = False
    lists_tables = False

    def __init__(self, client: Client, config: Config, moment: Moment, wanted: Mapping[str, str | None] | None) -> None:
        for text in wanted.values() if wanted is not None else ():
            user_filter(text)
        self._client, self._config, self._moment = client, config, moment
        self.is_chunked = config[SNAPSHOT_MAX_THREADS] > 1
        self._is_of_signal = wanted is not None
        self._conditions = conditions(config) if wanted is None else wanted
        self._collections = Collections(client, config)
        self._uuids = self._collections.identities()

    @override
    def tables(self) -> list[TableId]:
        return self._collections.captured()

    @override
    def to_read(self) -> list[TableId]:
        return self._collections.read_first()

    @override
    def splits(self, table: TableId, resumed: SnapshotPlace | None) -> list[Split]:
        """A collection without documents has one split."""
        size = size_of(self._client, table)
        low = resumed.last[0] if resumed is not None and resumed.last is not None else None
        bounds = _bounds(self._client, table, pieces(self._config, str(table), size), low)
        return [
            Split(
                self._moment,
                table,
                bytes=size // len(bounds),
                low=None if first is None else key_bytes(first),
                high=None if last is None else key_bytes(last),
                low_text=first,
                condition=self._conditions.get(str(table)),
                is_whole=len(bounds) == 1 and low is None,
                uuid=self._uuids.get(table),
            )
            for first, last in pairwise([*bounds, None])
        ]

    @override
    def has_rows(self, split: Split) -> bool:
        options = {**at_time(split.moment.time), **between(split.low, split.high), "filter": condition(split.condition)}
        options |= limit(self._config, split.condition) if self._is_of_signal else {}
        origin = "the condition of the signal (additional-conditions)"
        try:
            with refusals(FAILURES, split.table, origin) if self._is_of_signal else nullcontext():
                return first_id(self._client, split.table, options) is not None
        except Exception as error:
            if code_of(error) == SNAPSHOT_TOO_OLD:
                raise SnapshotGone("the server no longer has the snapshot's time", where=str(split.table)) from error
            raise


def sizes(client: Client, config: Config) -> list[tuple[TableId, int]]:
    """The collections that a first snapshot reads, with their sizes in bytes."""
    return [(table, size_of(client, table)) for table in Collections(client, config).read_first()]


def size_of(client: Client, table: TableId) -> int:
    """The bytes of a collection's documents."""
    stages: list[Mapping[str, Any]] = [{"$collStats": {"storageStats": {}}}]
    return sum(
        int(stats["storageStats"].get("size", 0)) for stats in client[table.database][table.table].aggregate(stages)
    )


def is_valid(client: Client, config: Config, moment: Moment) -> bool:
    """Whether the server still has the documents as of a moment."""
    table = next(iter(Collections(client, config).captured()), None)
    if table is None:
        return True
    try:
        first_id(client, table, at_time(moment.time))
    except Exception as error:
        if code_of(error) == SNAPSHOT_TOO_OLD:
            return False
        raise
    return True


def is_readable(client: Client, config: Config, moment: Moment) -> bool:
    """Whether the server has all collections of a first snapshot as of a moment: of new and renamed ones it may not."""
    for table in Collections(client, config).read_first():
        try:
            first_id(client, table, at_time(moment.time))
        except Exception as error:  # noqa: PERF203  # a server has few collections
            if code_of(error) in (SNAPSHOT_TOO_OLD, SNAPSHOT_UNAVAILABLE):
                return False
            raise
    return True


def _bounds(client: Client, table: TableId, count: int, low: str | None) -> list[str | None]:
    """Where each of so many ranges begins: the texts of keys, in order; None is the very beginning."""
    if count <= 1:
        return [low]
    collection = client[table.database][table.table]
    stages: list[Mapping[str, Any]] = [
        {"$sample": {"size": count * _SAMPLED}},
        {"$project": {"_id": 1}},
        {"$sort": {"_id": 1}},
    ]
    ids = [each["_id"] for each in collection.aggregate(stages, allowDiskUse=True)]
    if low is not None:
        # The server compares values of different types; those at or below the bound are left out by asking it again.
        above = collection.find({"_id": {"$in": ids}}, {"_id": 1}).hint({"_id": 1}).min([("_id", id_of(low))])
        ids = [each["_id"] for each in above.sort("_id", 1)]
    keys = [key_text(each) for each in ids]
    chosen = [keys[len(keys) * number // count] for number in range(1, count)] if keys else []
    return [low, *dict.fromkeys(key for key in chosen if key != low)]
