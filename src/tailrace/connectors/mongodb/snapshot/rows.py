"""Reads the documents of a snapshot split as `r` changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pymongo.errors import OperationFailure

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.mongodb import record_format
from tailrace.connectors.mongodb.client import (
    FAILURES,
    SNAPSHOT_TOO_OLD,
    UUID_MISMATCH,
    Client,
    code_of,
    connect,
    details,
)
from tailrace.connectors.mongodb.config import condition
from tailrace.connectors.mongodb.documents import Documents
from tailrace.connectors.mongodb.log.changes import ORDER_STEP, source_column
from tailrace.connectors.mongodb.options import SNAPSHOT_FETCH_SIZE
from tailrace.connectors.mongodb.position import DESCRIPTION_TYPE, end_of
from tailrace.connectors.mongodb.snapshot.reads import at_time, batches, between, of_collection
from tailrace.connectors.mongodb.types.layout import Buffer, Values
from tailrace.connectors.notifications import notify
from tailrace.connectors.snapshots import SnapshotGone, SnapshotPlace
from tailrace.connectors.table_split import TableSplit
from tailrace.errors import SourceError
from tailrace.model.arrow import repeat
from tailrace.model.change import READ, UPDATE_DESCRIPTION, ChangeBatch, SnapshotRead
from tailrace.model.table import TableSchema
from tailrace.override import override

_NOTHING = Values.documents(Buffer([]), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Moment:
    """Implements SnapshotHandle: a cluster time, and a name that no other snapshot has."""

    time: int
    name: str

    @property
    def position(self) -> str:
        """Where the log continues: the rows have all changes of that time."""
        return end_of(self.time)

    @override
    def __str__(self) -> str:
        return f"{self.position} {self.name}"


@dataclass(frozen=True)
class Split(TableSplit):
    """Implements SnapshotSplit: the documents of a collection from `low` on and before `high` (BSON `{_id: ...}`).

    `is_whole`: no other split reads the collection. `uuid` is that of the collection: another one may have its name by
    the time that it is read.
    """

    moment: Moment
    low: bytes | None = None
    high: bytes | None = None
    low_text: str | None = None
    _: KW_ONLY
    condition: str | None = None
    is_whole: bool = True
    uuid: bytes | None = None

    @property
    def read(self) -> SnapshotRead:
        """What its rows belong to."""
        return self.read_at(self.moment.position)

    @property
    @override
    def resume_point(self) -> SnapshotPlace | None:
        if self.low_text is None:
            return None
        return SnapshotPlace((), (self.low_text,), self.snapshot)


def read(config: Config, split: Split) -> Iterator[Chunk]:
    """The rows of a split, as Connector.rows has them. Raises SourceError where the server no longer has that time."""
    if split.before:
        yield Chunk([], controls=notify(config, split.before))
    client = connect(config, "tailrace snapshot reader")
    try:
        reader, has_rows = _Rows(config, split, Written.of(client, config, split.moment)), False
        for batch in split.marked(reader.batches(client)):
            has_rows = True
            yield Chunk([batch])
        if not has_rows and split.is_whole:
            yield Chunk([reader.batch(_NOTHING, 0)])
    finally:
        client.close()
    if split.after:
        yield Chunk([], controls=notify(config, split.after))


class _Rows:
    """How the documents of a split become batches."""

    def __init__(self, config: Config, split: Split, written: Written) -> None:
        self._config, self._split, self._written = config, split, written
        self._documents = Documents(config)
        self._table = self._documents.schema(split.table)

    def batches(self, client: Client) -> Iterator[ChangeBatch]:
        """The documents of the split, none if there are none."""
        config, split, order = self._config, self._split, 0
        # A collection that is not cut comes in its natural order: the reference's, and the fastest to read.
        bounds = {} if split.is_whole else between(split.low, split.high)
        options: dict[str, Any] = {**at_time(split.moment.time), **of_collection(split.uuid), **bounds}
        options["filter"] = condition(split.condition)
        if config[SNAPSHOT_FETCH_SIZE]:
            options["batchSize"] = config[SNAPSHOT_FETCH_SIZE]
        with FAILURES.translated(f"{split.table}: the snapshot cannot read the collection"):
            try:
                for batch in batches(client, split.table, options):
                    if len(batch.documents):
                        yield self.batch(batch.documents, order)
                        order += ORDER_STEP * len(batch.documents)
            except OperationFailure as error:
                if code_of(error) == SNAPSHOT_TOO_OLD:
                    raise _too_old(split) from error
                if code_of(error) != UUID_MISMATCH:
                    raise
                _check_dropped(split, details(error).get("actualCollection"))

    def batch(self, documents: Values, order: int) -> ChangeBatch:
        """Documents as a batch, the first of them the `order`th."""
        rows = reads(documents, self._table, self._documents, order, self._written)
        return ChangeBatch(self._table, rows, self._split.read)


@dataclass(frozen=True)
class Written:
    """What `source` says of the rows of a snapshot, and the members that the envelope has for updates."""

    ord: int = -1
    set_name: str | None = None
    ts_us: int | None = None
    members: tuple[pa.Field, ...] = (pa.field(UPDATE_DESCRIPTION, DESCRIPTION_TYPE),)

    @staticmethod
    def of(client: Client, config: Config, moment: Moment) -> Written:
        """Today the time of the read; in earlier releases its place in the log."""
        if record_format.is_current(config):
            return Written()
        name = str(client.admin.command("hello").get("setName", ""))
        written = Written(moment.time & 0xFFFFFFFF, name, (moment.time >> 32) * 1_000_000)
        texts = (pa.field(record_format.PATCH, pa.string()), pa.field(record_format.FILTER, pa.string()))
        return replace(written, members=texts) if record_format.is_debezium_1(config) else written


def reads(documents: Values, table: TableSchema, rows: Documents, order: int, written: Written) -> pa.RecordBatch:
    """Documents as rows of a first snapshot."""
    size = len(documents)
    numbers = pa.repeat(pa.scalar(written.ord, pa.int32()), size)
    ts_us = time.time_ns() // 1000 if written.ts_us is None else written.ts_us
    after = rows.images(table, documents, rows.keys(documents))
    columns = {
        "op": repeat(READ, size),
        "order": pa.array(order + ORDER_STEP * np.arange(size, dtype=np.int64)),
        "ts_us": pa.repeat(pa.scalar(ts_us, pa.int64()), size),
        "snapshot": repeat("true", size),
        "source": source_column(size, [numbers], written.set_name),
        "before": pa.nulls(size, table.row_type),
        "after": after,
        **{member.name: pa.nulls(size, member.type) for member in written.members},
    }
    return pa.RecordBatch.from_pydict(columns)


def _check_dropped(split: Split, now: str | None) -> None:
    """Raise SnapshotGone where the collection has another name now; of one that was dropped nothing is left to read.

    The log has the drop, or the rename, behind the snapshot.
    """
    if now is not None:
        what = f"it was renamed to {now} while the snapshot was read, so what is left is read as of a newer time"
        raise SnapshotGone(what, where=str(split.table))


def _too_old(split: Split) -> SourceError:
    return SourceError(
        "the server no longer has the documents as of the snapshot's time",
        where=str(split.table),
        remedy="a larger minSnapshotHistoryWindowInSeconds (300 by default), or fewer splits at once, gives a batch "
        "more time. A restart reads what is left as of a newer time",
    )
