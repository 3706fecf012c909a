"""Plans the splits of a snapshot: collections and ranges of `_id`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tailrace.config import Config
from tailrace.connectors.mongodb.catalog import Collections
from tailrace.connectors.mongodb.client import FAILURES, SNAPSHOT_TOO_OLD, SNAPSHOT_UNAVAILABLE, Client, code_of
from tailrace.connectors.mongodb.config import condition, conditions
from tailrace.connectors.mongodb.snapshot.reads import at_time, between, first_id, id_of, key_bytes, key_text
from tailrace.connectors.mongodb.snapshot.rows import Moment, Split
from tailrace.connectors.mongodb.snapshot.user_filter import limit, user_filter
from tailrace.connectors.notifications import is_wanted
from tailrace.connectors.refusals import refusals
from tailrace.connectors.snapshots import Place, SnapshotGone, what_is_left
from tailrace.connectors.split_sizes import pieces
from tailrace.connectors.table_split import with_notices
from tailrace.model.table import TableId

# Documents sampled for each range: bounds of so many are within some percent of equal parts.
_SAMPLED = 20


def sizes(client: Client, config: Config) -> list[tuple[TableId, int]]:
    """The collections that a first snapshot reads, with their sizes in bytes."""
    return [(table, size_of(client, table)) for table in Collections(client, config).read_first()]


def size_of(client: Client, table: TableId) -> int:
    """The bytes of a collection's documents."""
    stages: list[Mapping[str, Any]] = [{"$collStats": {"storageStats": {}}}]
    return sum(
        int(found["storageStats"].get("size", 0)) for found in client[table.database][table.table].aggregate(stages)
    )


def plan(
    client: Client, config: Config, moment: Moment, wanted: Mapping[str, str | None] | None, place: Place | None
) -> list[Split]:
    """The splits of all collections, of those `wanted`, or of what is left at `place`. Raises SnapshotGone."""
    splits: list[Split] = []
    given = conditions(config) if wanted is None else wanted
    for text in wanted.values() if wanted is not None else ():
        user_filter(text)
    tables, uuids = _tables(client, config, wanted, place), Collections(client, config).identities()
    for table in tables:
        resumed = None if place is None else place.of(table)
        whole = Split(moment, table, condition=given.get(str(table)), uuid=uuids.get(table))
        splits += _of_table(client, config, whole, resumed)
    splits = _with_last(client, config, splits, of_signal=wanted is not None)
    return _with_notices(config, splits, tables) if is_wanted(config) else splits


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


def _tables(
    client: Client, config: Config, wanted: Mapping[str, str | None] | None, place: Place | None
) -> list[TableId]:
    collections = Collections(client, config)
    return what_is_left(collections.captured, collections.read_first, wanted, place)


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


def _of_table(client: Client, config: Config, split: Split, resumed: Place | None) -> list[Split]:
    table = split.table
    size = size_of(client, table)
    low = resumed.last[0] if resumed is not None and resumed.last is not None else None
    bounds = _bounds(client, table, pieces(config, str(table), size), low)
    began = None if resumed is None else resumed.began
    whole = replace(split, began=began, is_whole=len(bounds) == 1 and low is None)
    found = []
    for first, last in pairwise([*bounds, None]):
        texts = {"low": None if first is None else key_bytes(first), "high": None if last is None else key_bytes(last)}
        found.append(replace(whole, **texts, low_text=first, bytes=size // len(bounds)))  # type: ignore[arg-type]
    return found


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
    found = [each["_id"] for each in collection.aggregate(stages, allowDiskUse=True)]
    if low is not None:
        # The server compares values of different types; those at or below the bound are left out by asking it again.
        above = collection.find({"_id": {"$in": found}}, {"_id": 1}).hint({"_id": 1}).min([("_id", id_of(low))])
        found = [each["_id"] for each in above.sort("_id", 1)]
    keys = [key_text(each) for each in found]
    chosen = [keys[len(keys) * number // count] for number in range(1, count)] if keys else []
    return [low, *dict.fromkeys(key for key in chosen if key != low)]


def _with_last(client: Client, config: Config, splits: list[Split], *, of_signal: bool) -> list[Split]:
    """The splits, the last of them that has a row with the mark of the snapshot's last row."""
    origin = "the condition of the signal (additional-conditions)"
    for number in range(len(splits) - 1, -1, -1):
        split = splits[number]
        options = {**at_time(split.moment.time), **between(split.low, split.high), "filter": condition(split.condition)}
        options |= limit(config, split.condition) if of_signal else {}
        try:
            with refusals(FAILURES, split.table, origin) if of_signal else nullcontext():
                found = first_id(client, split.table, options)
        except Exception as error:
            if code_of(error) == SNAPSHOT_TOO_OLD:
                raise SnapshotGone("the server no longer has the snapshot's time", where=str(split.table)) from error
            raise
        if found is not None:
            splits[number] = replace(split, is_last=True)
            break
    return splits


def _with_notices(config: Config, splits: list[Split], tables: list[TableId]) -> list[Split]:
    """The splits with the notices around them."""
    return with_notices(splits, tables, [], {}, chunked=config.number("snapshot.max.threads") > 1)
