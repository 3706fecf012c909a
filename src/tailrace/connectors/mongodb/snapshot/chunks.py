"""Reads chunks of incremental snapshots in `_id` order, each as of one cluster time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from bson import decode
from pymongo.errors import OperationFailure

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.mongodb.catalog import Collections
from tailrace.connectors.mongodb.client import ALL_DATES, FAILURES, UUID_MISMATCH, Client, code_of
from tailrace.connectors.mongodb.documents import Documents
from tailrace.connectors.mongodb.position import SOURCE_TYPE, end_of
from tailrace.connectors.mongodb.snapshot.reads import (
    at_time,
    batches,
    between,
    cluster_time,
    first_id,
    id_of,
    key_bytes,
    of_collection,
    value_of,
)
from tailrace.connectors.mongodb.snapshot.reads import key_text as text_of
from tailrace.connectors.mongodb.snapshot.user_filter import limit, user_filter
from tailrace.connectors.refusals import refusals
from tailrace.connectors.signal_source import SignalSource
from tailrace.connectors.snapshot_ports import ChunkSession, ChunkTable, Page
from tailrace.connectors.snapshots import Fence, Flags, PagingKey, Unread
from tailrace.errors import SourceError
from tailrace.model.arrow import flags
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override


@dataclass(frozen=True, slots=True)
class ReadTime(Fence):
    """Implements Fence: the position behind the cluster time of a read."""

    position: str

    @staticmethod
    def parse(text: str) -> ReadTime:
        """From its text."""
        return ReadTime(text)

    @override
    def supersedes(self, batch: ChangeBatch) -> Flags:
        return flags(pc.greater_equal(batch.rows.column(COMMIT), self.position))


@dataclass(frozen=True)
class Session(ChunkSession):
    """Implements ChunkSession."""

    client: Client
    config: Config
    signals: SignalSource

    @override
    def window(self, table: TableId) -> AbstractContextManager[None]:
        return self.signals.window(self.client, table.database)

    @contextmanager
    @override
    def table(self, table: TableId, name: str, condition: str | None) -> Iterator[TableAtTime]:
        uuid = Collections(self.client, self.config).identities().get(table)
        if uuid is None:
            raise _gone()
        read = TableAtTime(self.client, self.config, table, cluster_time(self.client), uuid)
        origin = "the condition of the signal (additional-conditions)"
        try:
            with refusals(FAILURES, table, origin) if condition is not None else nullcontext():
                yield read
        except (OperationFailure, SourceError) as error:
            if code_of(error) != UUID_MISMATCH:
                raise
            raise _gone() from error


def _gone() -> Unread:
    return Unread("there is no such collection", "EMPTY")


@dataclass(frozen=True)
class TableAtTime(ChunkTable):
    """Implements ChunkTable: a chunk reaches to the time it is read at, so the log up to there has all it lacks."""

    client: Client
    config: Config
    id: TableId
    time: int
    uuid: bytes

    @property
    def at(self) -> dict[str, Any]:
        """The options of a read of this collection as of that time."""
        return {**at_time(self.time), **of_collection(self.uuid)}

    @property
    @override
    def schema(self) -> TableSchema:
        return Documents(self.config).schema(self.id)

    @override
    def page(self, condition: str | None, surrogate: str | None) -> Paging:
        """By `_id`."""
        return Paging(self, condition)

    @override
    def fence(self) -> str:
        return end_of(self.time)

    @override
    def end(self) -> str:
        return end_of(self.time)

    @override
    def rows_of(self, keys: Sequence[Key]) -> tuple[pa.StructArray, pa.StructArray]:
        """Keys are texts as events have them."""
        wanted = [value_of(key[0]) for key in keys]
        images = self.read({"filter": {"_id": {"$in": wanted}}, "hint": {"_id": 1}})
        existing = set(images.field(self.schema.key[0]).to_pylist())
        gone = pa.array([key[0] for key in keys if key[0] not in existing], pa.string())
        return images, Documents(self.config).of_keys(self.schema, gone)

    @override
    def source(self, count: int, end: str) -> pa.StructArray:
        """The time of the read."""
        columns = [pa.nulls(count, field.type) for field in SOURCE_TYPE]
        columns[0] = pa.repeat(pa.scalar(self.time & 0xFFFFFFFF, pa.int32()), count)
        return pa.StructArray.from_arrays(columns, fields=list(SOURCE_TYPE))

    def read(self, options: dict[str, Any]) -> pa.StructArray:
        """Images of documents."""
        document_batches = batches(self.client, self.schema.id, {**self.at, **options})
        rows, table = Documents(self.config), self.schema
        parts = [rows.images(table, batch.documents, rows.keys(batch.documents)) for batch in document_batches]
        return pa.concat_arrays(parts)


@dataclass(frozen=True)
class Paging(Page):
    """Implements Page. A key is the text of `{_id: ...}` with its types."""

    table: TableAtTime
    condition: str | None

    @property
    @override
    def key_text(self) -> str:
        return "_id"

    @override
    def check(self) -> None:
        """The server reads the filter, of no document."""
        if self.condition is not None:
            self._first({"filter": {"$and": [{"_id": {"$in": []}}, user_filter(self.condition)]}})

    @override
    def estimate(self) -> int:
        place = self.table.schema.id
        return int(self.table.client[place.database][place.table].estimated_document_count())

    @override
    def maximum(self) -> PagingKey | None:
        last = self._first({"sort": {"_id": -1}, "hint": {"_id": 1}, "filter": user_filter(self.condition)})
        return None if last is None else (text_of(decode(last, ALL_DATES)["_id"]),)

    @override
    def after(
        self, last: PagingKey | None, maximum: PagingKey, size: int
    ) -> tuple[pa.StructArray, PagingKey | None, int]:
        """Bounds of an index compare values of all types; the upper one excludes itself."""
        nothing = self.table.schema.row_type
        if last == maximum:
            return pa.nulls(0, nothing), None, 0
        wanted = user_filter(self.condition)
        low = None if last is None or last[0] is None else key_bytes(last[0])
        assert maximum[0] is not None
        bounds = between(low, key_bytes(maximum[0]))
        keys = self._keys({**bounds, "filter": wanted, "limit": size + (low is not None)})
        keys = [key for key in keys if key != low][:size]
        if len(keys) < size:
            ending = {"filter": {"$and": [wanted, {"_id": id_of(maximum[0])}]}}
            ending_key = self._first(ending)
            keys += [ending_key] if ending_key is not None else []
        if not keys:
            return pa.nulls(0, nothing), None, 0
        # All of this chunk: from the first key on, so many, as of the same time.
        rows = self.table.read({**between(keys[0], None), "filter": wanted, "limit": len(keys), **self._limit})
        return rows, (text_of(decode(keys[-1], ALL_DATES)["_id"]),), len(rows)

    def _keys(self, options: dict[str, Any]) -> list[bytes]:
        wanted = {**self.table.at, **options, "projection": {"_id": 1}, **self._limit}
        document_batches = batches(self.table.client, self.table.id, wanted)
        return list(itertools.chain.from_iterable(each.raw_documents() for each in document_batches))

    def _first(self, options: dict[str, Any]) -> bytes | None:
        return first_id(self.table.client, self.table.id, {**self.table.at, **options, **self._limit})

    @property
    def _limit(self) -> dict[str, int]:
        return limit(self.table.config, self.condition)
