"""Parses events of a change stream into columns, one row for each event."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.mongodb.types.json import STRICT, json_text
from tailrace.connectors.mongodb.types.layout import (
    ABSENT,
    ARRAY,
    DATE,
    DOCUMENT,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    Flags,
    Ints,
    Values,
)
from tailrace.connectors.mongodb.types.names import Names
from tailrace.connectors.mongodb.types.scalars import ValueStyle
from tailrace.connectors.mongodb.types.strings import raw_values, spread, string_column
from tailrace.connectors.mongodb.types.walk import members
from tailrace.model.arrow import indices, mask

_EVENT = Names(
    [
        "_id",
        "operationType",
        "clusterTime",
        "wallTime",
        "ns",
        "to",
        "collectionUUID",
        "documentKey",
        "fullDocument",
        "fullDocumentBeforeChange",
        "updateDescription",
        "lsid",
        "txnNumber",
        "splitEvent",
    ]
)
_NAMESPACE = Names(["db", "coll"])
_KEY = Names(["_id"])
_DESCRIPTION = Names(["updatedFields", "removedFields", "truncatedArrays"])
_TRUNCATED = Names(["field", "newSize"])
_TOKEN = Names(["_data"])
NO_TIME = -1
Namespace = tuple[str | None, str | None]


class ChangeEvents:
    """The events of a batch. Columns are created on first use.

    `documents` are the events as the server sent them. `after`, `before`, `updated_fields` and `document_keys` are BSON
    values in them, absent where an event has none; `json_text` writes them.
    """

    def __init__(self, documents: Values) -> None:
        self.documents = documents
        (
            self.tokens,
            self._operations,
            self._cluster_times,
            self._wall_times,
            self._namespaces,
            self._targets,
            self._collections,
            self.document_keys,
            after,
            before,
            self._descriptions,
            self._sessions,
            self._transactions,
            self.fragments,
        ) = _EVENT.columns(documents, members(documents))
        # Without a full document the server writes null.
        self.after, self.before = _documents(after), _documents(before)

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def operations(self) -> pa.Array:
        """What happened: `insert`, `update`, `replace`, `delete`, `invalidate`, ..."""
        return _strings(self._operations)

    @cached_property
    def cluster_times(self) -> Ints:
        """The times in the oplog as 64-bit BSON timestamps: seconds in the upper half, a number in the lower one.

        -1 where a stage of `cursor.pipeline` has left it out.
        """
        is_given = self._cluster_times.kinds == TIMESTAMP
        times = self.documents.buffer.int64[np.where(is_given, self._cluster_times.starts, 0)]
        return np.where(is_given, times, NO_TIME)

    @cached_property
    def wall_times(self) -> pa.Array:
        """When the change was made, in milliseconds; null before MongoDB 6.0."""
        return _numbers(self._wall_times, DATE)

    @cached_property
    def namespaces(self) -> tuple[Ints, list[Namespace]]:
        """The number of each event's namespace (-1 without one), and the namespaces: database and collection."""
        numbers, first = _distinct(raw_values(self._namespaces))
        return numbers, _names(self._namespaces.take(first))

    @cached_property
    def targets(self) -> list[Namespace]:
        """The new namespace that a `rename` gives; no names for other events."""
        return _names(self._targets)

    @cached_property
    def collections(self) -> tuple[Ints, list[bytes]]:
        """The number of each event's collection (-1: not told), and the 16 bytes of each collection's UUID."""
        numbers, first = _distinct(raw_values(self._collections))
        uuids = self._collections.take(first)
        return numbers, [bytes(uuids.buffer.data[end - 16 : end]) for end in uuids.ends().tolist()]

    @cached_property
    def keys(self) -> Values:
        """The `_id` of each document."""
        (ids,) = _KEY.columns(self.document_keys, members(self.document_keys))
        return ids

    @cached_property
    def sessions(self) -> pa.Array:
        """The session of a transaction as JSON text, null for a change outside of one."""
        both = (self._sessions.kinds == DOCUMENT) & self._transactions.present
        sessions = Values(
            self.documents.buffer, np.where(both, DOCUMENT, ABSENT).astype(np.uint8), self._sessions.starts
        )
        numbers, first = _distinct(raw_values(sessions))
        return json_text(sessions.take(first), STRICT).take(indices(numbers, numbers < 0))

    @cached_property
    def transaction_numbers(self) -> pa.Array:
        """The number of the transaction in its session, null for a change outside of one."""
        numbers = _numbers(self._transactions, INT64)
        return pc.if_else(self.sessions.is_valid(), numbers, pa.scalar(None, pa.int64()))

    @property
    def resume_tokens(self) -> pa.Array:
        """The documents to resume behind each event, as BSON."""
        return raw_values(self.tokens)

    @cached_property
    def token_texts(self) -> pa.Array:
        """The texts by which the server orders the resume tokens."""
        (texts,) = _TOKEN.columns(self.tokens, members(self.tokens))
        return _strings(texts)

    @cached_property
    def _description(self) -> list[Values]:
        return _DESCRIPTION.columns(self._descriptions, members(self._descriptions))

    @property
    def updated_fields(self) -> Values:
        """What an update set, by dotted names."""
        return self._description[0]

    @cached_property
    def removed_fields(self) -> pa.Array:
        """The dotted names that an update removed, a list for each update, null for other events."""
        firsts, items = _items(self._description[1])
        return _lists(firsts, _strings(items), self.is_described)

    @cached_property
    def truncated_arrays(self) -> pa.Array:
        """The dotted names and new sizes of the arrays that an update cut, a list for each update, null for others."""
        firsts, items = _items(self._description[2])
        names, sizes = _TRUNCATED.columns(items, members(items))
        columns = [_strings(names), _numbers(sizes, INT32).cast(pa.int32())]
        return _lists(firsts, pa.StructArray.from_arrays(columns, ["field", "size"]), self.is_described)

    @property
    def is_described(self) -> Flags:
        """Which events have an update description."""
        described: Flags = self._descriptions.kinds == DOCUMENT
        return described

    def key_text(self, style: ValueStyle) -> pa.Array:
        """The JSON text of each document's `_id`."""
        return json_text(self.keys, style)


def _names(namespaces: Values) -> list[Namespace]:
    databases, collections = (_strings(column) for column in _NAMESPACE.columns(namespaces, members(namespaces)))
    return list(zip(databases.to_pylist(), collections.to_pylist(), strict=True))


def _documents(values: Values) -> Values:
    return Values(values.buffer, np.where(values.kinds == DOCUMENT, DOCUMENT, ABSENT).astype(np.uint8), values.starts)


def _strings(values: Values) -> pa.Array:
    rows = np.flatnonzero(values.kinds == STRING)
    return spread(string_column(values.buffer, values.starts[rows]), rows, len(values))


def _numbers(values: Values, kind: int) -> pa.Array:
    """Integers of 64 bits, or of 32 if that is the kind; null for values of another kind."""
    view = values.buffer.int32 if kind == INT32 else values.buffer.int64
    return pa.array(view[values.starts].astype(np.int64), pa.int64(), mask=values.kinds != kind)


def _items(values: Values) -> tuple[Ints, Values]:
    """Where the items of each array begin among all items, and the items; what is no array has none."""
    arrays = np.where(values.kinds == ARRAY, ARRAY, ABSENT).astype(np.uint8)
    items = members(Values(values.buffer, arrays, values.starts))
    return items.firsts, Values(values.buffer, items.kinds, items.starts)


def _lists(firsts: Ints, items: pa.Array, valid: Flags) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(firsts, pa.int32()), items, mask=mask(~valid))


def _distinct(values: pa.Array) -> tuple[Ints, Ints]:
    """The number of each value among those that differ (-1 for null), and the first row of each of these."""
    encoded = values.dictionary_encode()
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.flatnonzero(numbers >= 0)[::-1]
    first = np.zeros(len(encoded.dictionary), np.int64)
    first[numbers[rows]] = rows  # of equal numbers the last assignment counts
    return numbers, first
