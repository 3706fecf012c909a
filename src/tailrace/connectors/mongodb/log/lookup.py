"""Looks up the documents that changes came without, for sinks that keep the content of collections.

An update has no document where none was asked for (`capture.mode`), where the server has no post-image, and where its
own lookup has found the document gone or the collection under another name. The document that is looked up here may be
newer than the update; the changes in between follow in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

from tailrace.config import Config
from tailrace.connectors.mongodb.catalog import table_id
from tailrace.connectors.mongodb.client import FAILURES, UNAUTHORIZED, UUID_MISMATCH, Client, details
from tailrace.connectors.mongodb.log.events import ChangeEvents
from tailrace.connectors.mongodb.position import timestamp
from tailrace.connectors.mongodb.snapshot.reads import batches, of_collection
from tailrace.connectors.mongodb.types.elements import Value, array, document, element, elements
from tailrace.connectors.mongodb.types.layout import DOCUMENT, Buffer, Flags, Ints, Values
from tailrace.connectors.retry import retrying
from tailrace.model.table import TableId

_WITH_DOCUMENT = ["insert", "update", "replace"]
# Documents that are looked up at a time: the first ones, and about how many bytes of them.
_FIRST, _MOST, _BYTES = 64, 1024, 4 << 20


@dataclass(frozen=True)
class Completed:
    """The documents behind changes, a row each: `after` with those that were looked up.

    `gone` are rows whose document is deleted by now, which the log will tell. `kept` are rows of a collection that is
    gone, or that may not be read under its new name: `lacking` says so.
    """

    after: Values
    gone: Flags
    kept: Flags
    lacking: str | None = None


class DocumentLookup:
    """Looks up documents over the client of a stream. `size` documents at a time are about as many as memory takes."""

    def __init__(self, config: Config, client: Callable[[], Client]) -> None:
        self.size = _FIRST
        self._config, self._client = config, client

    def completed(self, table: TableId, events: ChangeEvents) -> Completed:
        """The documents of events of one collection. Raises SourceError."""
        gone, kept = np.zeros(len(events), np.bool_), np.zeros(len(events), np.bool_)
        missing = np.flatnonzero(lacks_document(events))
        if not len(missing):
            return Completed(events.after, gone, kept)
        numbers, collections = events.collections
        why: str | None = None
        found_documents: dict[int, bytes] = {}
        for number in np.unique(numbers[missing]).tolist():
            rows = missing[numbers[missing] == number]
            search = _Search(table, collections[number] if number >= 0 else None, _newest(events, rows))
            keys = _keys(events, rows)
            documents = self._documents_of(search, list(dict.fromkeys(keys)))
            if documents is None:
                kept[rows] = True
                why = why or search.lacking
                continue
            found_documents |= {
                row: documents[key] for row, key in zip(rows.tolist(), keys, strict=True) if key in documents
            }
            gone[rows] = True
        gone[list(found_documents)] = False
        self._learn(len(missing), sum(map(len, found_documents.values())))
        return Completed(_with(events.after, found_documents), gone, kept, why)

    def _learn(self, count: int, size: int) -> None:
        """Look up fewer documents at a time where they are large."""
        self.size = max(1, min(_MOST, 2 * self.size, self.size if not size else count * _BYTES // size))

    def _documents_of(self, search: _Search, keys: list[Value]) -> dict[Value, bytes] | None:
        """The documents by the keys; None where there is no such collection."""
        documents = self._read(search, keys)
        if documents is None:
            return None
        by_key = {_id(each): each for each in documents}
        of_keys = {key: by_key.pop(key) for key in keys if key in by_key}
        # A number is equal to one of another type, and a text to another one under a collation.
        others = [key for key in keys if by_key and key not in of_keys]
        return of_keys | {key: each for key in others for each in self._read(search, [key]) or []}

    def _read(self, search: _Search, keys: list[Value]) -> list[bytes] | None:
        def attempt() -> list[bytes] | None:
            with FAILURES.translated(f"{search.table}: documents cannot be looked up"):
                return search.documents(self._client(), keys)

        return retrying(self._config, attempt, FAILURES.is_transient)


@dataclass
class _Search:
    """A collection to be searched, as of a cluster time or later: by its UUID, whatever its name is by now."""

    table: TableId
    uuid: bytes | None
    time: int | None
    lacking: str | None = None

    def documents(self, client: Client, keys: list[Value], name: TableId | None = None) -> list[bytes] | None:
        """The documents of some keys, in any order; None where there is no such collection, or none to be read.

        `name` is a later name of the collection.
        """
        named = name or self.table
        try:
            return [each for batch in batches(client, named, self._find(keys)) for each in batch.raw_documents()]
        except OperationFailure as error:
            if error.code == UNAUTHORIZED and name is not None:
                self.lacking = f"the user may not read {named}, which this collection was renamed to"
                return None
            if error.code != UUID_MISMATCH:
                raise
            now = details(error).get("actualCollection")
        return None if now is None else self.documents(client, keys, table_id(named.database, now))

    def _find(self, keys: list[Value]) -> dict[str, Any]:
        wanted = document(element(b"$in", array(keys)))
        concern: dict[str, Any] = {"level": "majority"}
        if self.time is not None:
            concern["afterClusterTime"] = timestamp(self.time)
        # The server refuses to read another collection of that name, and tells the name that the collection has.
        query = {"filter": RawBSONDocument(document(element(b"_id", (DOCUMENT, wanted)))), "readConcern": concern}
        return {**query, **of_collection(self.uuid)}


def lacks_document(events: ChangeEvents) -> Flags:
    """Which events should have the document and do not."""
    wanted = pc.is_in(events.operations, pa.array(_WITH_DOCUMENT)).to_numpy(zero_copy_only=False)
    lacking: Flags = wanted & ~events.after.present
    return lacking


def _newest(events: ChangeEvents, rows: Ints) -> int | None:
    time = int(events.cluster_times[rows].max())
    return time if time >= 0 else None


def _keys(events: ChangeEvents, rows: Ints) -> list[Value]:
    keys = events.keys.take(rows)
    places = zip(keys.kinds.tolist(), keys.starts.tolist(), keys.ends().tolist(), strict=True)
    return [(kind, bytes(keys.buffer.data[start:end])) for kind, start, end in places]


def _id(raw: bytes) -> Value:
    return next(value for name, value in elements(raw) if name == b"_id")


def _with(values: Values, by_row: dict[int, bytes]) -> Values:
    """The values, with documents in some rows."""
    if not by_row:
        return values
    parts, at = [memoryview(values.buffer.data)[: values.buffer.size]], values.buffer.size
    kinds, starts = values.kinds.copy(), values.starts.copy()
    for row, each in by_row.items():
        parts.append(memoryview(each))
        kinds[row], starts[row] = DOCUMENT, at
        at += len(each)
    return Values(Buffer(parts), kinds, starts)
