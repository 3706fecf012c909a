"""Row shapes (option `shape`): converts chunks of changes to Arrow batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeGuard

import pyarrow as pa
from pyspark.sql.types import StructType

from tailrace import transforms
from tailrace.capture.capture import Capture
from tailrace.config.failure_handling import FailureHandling
from tailrace.config.faults import Fault
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.config.options.spark import COMPAT_FAULTS, SHAPE
from tailrace.config.topics import TopicNaming
from tailrace.connectors.base import Chunk
from tailrace.events.keychange import split_key_changes, with_identity
from tailrace.events.keymask import mask_images
from tailrace.events.selection import select, without_hidden_changes, without_unchanged
from tailrace.events.shapes import EventShaper
from tailrace.events.transactions import TransactionTracker, with_events
from tailrace.model.change import COMMIT, ChangeBatch, ControlBatch
from tailrace.model.native import native_rows
from tailrace.spark.newest import newest
from tailrace.spark.observed import COUNTS_TYPE, NEWEST, TRANSACTIONS, Transactions, operations
from tailrace.spark.schemas import ARROW_SCHEMA, COUNT_SCHEMA
from tailrace.spark.versions import to_arrow_schema
from tailrace.transforms.encoder import Encoder

Batch = ChangeBatch | ControlBatch

# The class of the Java object that the reference engine prints for a logical message in transaction metadata.
_MESSAGE_OBJECT = "LogicalDecodingMessageMonitor$LogicalDecodingMessageId"


def _is_data(batch: Batch) -> TypeGuard[ChangeBatch]:
    """Whether these are changes of rows, or messages."""
    return isinstance(batch, ChangeBatch) and batch.schema_change is None


class Shaper:
    """Turns the chunks of one read into rows.

    What Debezium does between decoding and converting happens here, in order: key changes are split, operations
    selected, transactions numbered, then the pipeline's steps applied. `split` is the label of what is read, for the
    shape `arrow`.
    """

    def __init__(self, capture: Capture, schema: StructType, steps: str, run_id: str, split: str = "") -> None:
        self.config = config = capture.config
        self.is_old = capture.source.is_old
        self._skips_whole = capture.skips_whole_changes
        self._hides_changes = Fault.UNCHANGED_HIDDEN_KEYS in config[COMPAT_FAULTS]
        self.has_zeros = Fault.ZERO_OLD_KEYS in config[COMPAT_FAULTS]
        self.steps = transforms.parse(steps)
        self.transactions = (
            TransactionTracker(TopicNaming(config), capture.source) if config[PROVIDE_TRANSACTION_METADATA] else None
        )
        if self.transactions is not None and Fault.MESSAGES_NAMED_BY_OBJECT in config[COMPAT_FAULTS]:
            self.transactions.message_object = capture.source.message_schemas + _MESSAGE_OBJECT
        self._blobs = Blobs(split) if config[SHAPE] == "arrow" else None
        self._counted = Transactions()
        self._emit = self._emitter(capture, schema, run_id)

    def rows(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """The rows of a chunk."""
        batches = [batch for batch in map(self._selected, chunk.batches) if len(batch)]
        controls = list(chunk.controls)
        if self.transactions is not None:
            # Schema changes are no events of a transaction, but keep their place.
            events = [each for each in batches if _is_data(each)]
            marks = chunk.marks if chunk.tells_empty_transactions else with_events(chunk.marks, events)
            tracked, marked = self.transactions.track(events, marks)
            rest = iter(tracked)
            batches = [next(rest) if _is_data(each) else each for each in batches]
            controls += [marked] if marked is not None else []
        if self._blobs is not None:
            self._blobs.transactions += self._counted.count(batches)
            self._blobs.newest = newest([batch for batch in batches if isinstance(batch, ChangeBatch)])
        yield from self._emit(transforms.apply([*batches, *controls], self.steps))
        if self._blobs is not None:
            yield from self._emit(batch for batch in chunk.batches if batch.is_note)

    def _selected(self, batch: ChangeBatch) -> ChangeBatch:
        if batch.schema_change is not None:
            return batch
        batch = with_identity(batch) if self.is_old else batch
        if self._hides_changes:
            batch = without_hidden_changes(batch, self.config)
        if self._skips_whole:
            batch = mask_images(split_key_changes(select(batch, self.config), has_zeros=self.has_zeros))
        else:
            batch = select(mask_images(split_key_changes(batch, has_zeros=self.has_zeros)), self.config)
        return without_unchanged(batch, self.config)

    def _emitter(
        self, capture: Capture, schema: StructType, run_id: str
    ) -> Callable[[Iterable[Batch]], Iterator[pa.RecordBatch]]:
        shape = capture.config[SHAPE]
        if shape in ("kafka", "count"):
            encode = Encoder(capture.config, capture.source, run_id, self.steps).encode_all
            return encode if shape == "kafka" else lambda batches: _counted(encode(batches))
        rows_of: Callable[[Batch], Iterator[pa.RecordBatch]]
        if self._blobs is not None:
            rows_of = self._blobs.rows
        elif shape == "event":
            rows_of = partial(
                self._events, EventShaper(capture.config, capture.source), FailureHandling.of(capture.config)
            )
        else:
            rows_of = _TableRows(to_arrow_schema(schema)).rows
        return lambda batches: chain.from_iterable(map(rows_of, batches))

    def _events(self, shaper: EventShaper, failures: FailureHandling, batch: Batch) -> Iterator[pa.RecordBatch]:
        if _is_data(batch):
            for rows in failures.encoded(batch, shaper.encode):
                yield transforms.rename(rows, self.steps)


class Blobs:
    """`arrow`: a few large blobs instead of many rows, for sinks that encode or merge in tasks of their own.

    `transactions` are those that the next row is to count, `newest` the changes that it is to tell of.
    """

    def __init__(self, split: str = "") -> None:
        self.split = split
        self.sequence = self.transactions = 0
        self.newest: str | None = None

    def rows(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        """One row for each batch; for a renamed table one more under the old name, without a record."""
        if isinstance(batch, ControlBatch):
            yield self._row(batch.topic, batch)
            return
        yield self._row(batch.table.id.unique, batch)
        change = batch.schema_change
        if change is not None and change.previous is not None:
            commit = batch.rows.column(COMMIT)[0].as_py()
            yield self._row(change.previous.unique, replace(batch, rows=batch.rows.slice(0, 0), commit=commit))

    def _row(self, name: str, batch: Batch) -> pa.RecordBatch:
        counts = operations(batch) if isinstance(batch, ChangeBatch) else {}
        columns = [
            pa.array([name]),
            pa.array([self.sequence], pa.int64()),
            pa.array([len(batch)], pa.int32()),
            pa.array([batch.to_ipc()], pa.binary()),
            pa.array([self.split], pa.string()),
            pa.array([{**counts, TRANSACTIONS: self.transactions, NEWEST: self.newest}], COUNTS_TYPE),
        ]
        self.sequence += 1
        self.transactions, self.newest = 0, None
        return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)


def _counted(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`count`: one row for each batch of records, which goes no further."""
    for batch in records:
        yield pa.RecordBatch.from_arrays([pa.array([len(batch)], pa.int64())], schema=COUNT_SCHEMA)


class _TableRows:
    """`table`: one table's images as typed structs under the columns it had when the query was made."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.row = schema.field("after").type

    def rows(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        """The batch's rows; control records, schema changes and logical messages have no place in a table."""
        if not _is_data(batch) or batch.table.id.is_message:
            return
        rows = batch.rows
        columns = [
            rows.column("op"),
            self._aligned(native_rows(batch.table, rows.column("before"))),
            self._aligned(native_rows(batch.table, rows.column("after"))),
            rows.column("source"),
            rows.column("ts_us").cast(pa.timestamp("us", "UTC")),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _aligned(self, images: pa.StructArray) -> pa.StructArray:
        """Images under the query's columns: a column added since is left out, one dropped since is null."""
        if images.type == self.row:
            return images
        arrays = []
        for field in self.row:
            place = images.type.get_field_index(field.name)
            arrays.append(pa.nulls(len(images), field.type) if place < 0 else images.field(place).cast(field.type))
        return pa.StructArray.from_arrays(arrays, fields=list(self.row), mask=images.is_null())
