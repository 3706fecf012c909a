"""Transaction metadata: the block in each change's envelope, and BEGIN and END records on their own topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.topics import TopicNaming
from tailrace.model.arrow import flags, indices, join, literal
from tailrace.model.change import READ, TRANSACTION_TYPE, ChangeBatch, ControlBatch
from tailrace.model.marks import END
from tailrace.model.schema import INT64, OPTIONAL_INT64, STRING, ConnectSchema, Field
from tailrace.model.source import SourceBlock
from tailrace.model.text.json import dump, encode

Integers = npt.NDArray[np.int64]

_MESSAGES = "LOGICAL_DECODING_MESSAGE"

_COMMON = "io.debezium.connector.common."
_COUNTS = ConnectSchema(
    "struct",
    optional=True,
    name="event.collection",
    version=1,
    fields=(Field("data_collection", STRING), Field("event_count", INT64)),
)
KEY = ConnectSchema("struct", name=_COMMON + "TransactionMetadataKey", version=1, fields=(Field("id", STRING),))
VALUE = ConnectSchema(
    "struct",
    name=_COMMON + "TransactionMetadataValue",
    version=1,
    fields=(
        Field("status", STRING),
        Field("id", STRING),
        Field("event_count", OPTIONAL_INT64),
        Field("data_collections", ConnectSchema("array", optional=True, items=_COUNTS)),
        Field("ts_ms", INT64),
    ),
)


def with_events(marks: pa.RecordBatch, batches: Sequence[ChangeBatch]) -> pa.RecordBatch:
    """The marks of the transactions that have an event in the batches; `marks` are BEGIN and END by turns, by order."""
    columns = [batch.rows.column("order").to_numpy(zero_copy_only=False) for batch in batches]
    orders = np.sort(np.concatenate([np.empty(0, np.int64), *columns]))
    places = np.searchsorted(orders, marks.column("order").to_numpy(zero_copy_only=False))
    return marks.filter(pa.array(np.repeat(places[1::2] > places[::2], 2)))


@dataclass
class _Events:
    """The changes of a chunk in log order: which batch and row, which table, and in which transaction (0: carried)."""

    batch: Integers
    row: Integers
    table: Integers
    transaction: Integers


@dataclass
class TransactionTracker:
    """Counts the events of each transaction; keep one for a read, as a transaction may span several chunks.

    Logical messages are counted as events of one data collection. With `message_object` each is a collection of its
    own, named so with a number, as in the reference.
    """

    naming: TopicNaming
    source: SourceBlock
    message_object: str | None = None
    _messages: int = 0
    _open: bool = False
    _counts: dict[str, int] = field(default_factory=dict)

    def track(
        self, batches: Sequence[ChangeBatch], marks: pa.RecordBatch
    ) -> tuple[list[ChangeBatch], ControlBatch | None]:
        """The batches with the column `transaction`, and the records of the marks (schema MARKS, by order).

        A change outside any transaction, and a snapshot's read, has a null block.
        """
        order = marks.column("order").to_numpy(zero_copy_only=False)
        ends = flags(pc.equal(marks.column("status"), literal(END)))
        names = [self._names(batch) for batch in batches]
        tables = list(dict.fromkeys([*self._counts, *chain.from_iterable(names)]))
        events = _sorted(batches, names, tables, order[~ends], order[ends], self._open)
        blocks = self._blocks(batches, events, len(tables))
        records = self._records(marks, ends, events, tables) if len(marks) else None
        self._carry(events, tables, order[~ends], order[ends])
        return blocks, records

    def _names(self, batch: ChangeBatch) -> list[str]:
        """The data collection of a batch, or one for each row."""
        if not batch.table.id.is_message:
            return [str(batch.table.id)]
        if self.message_object is None:
            return [_MESSAGES]
        first, self._messages = self._messages, self._messages + len(batch)
        return [f"{self.message_object}@{number:x}" for number in range(first, self._messages)]

    def _blocks(self, batches: Sequence[ChangeBatch], events: _Events, tables: int) -> list[ChangeBatch]:
        carried = np.array([*self._counts.values()] + [0] * (tables - len(self._counts)), np.int64)
        total = _rank(events.transaction) + np.where(events.transaction == 0, carried.sum(), 0)
        of_table = _rank(events.transaction * tables + events.table)
        if tables:
            of_table += np.where(events.transaction == 0, carried[events.table], 0)
        out = []
        for index, batch in enumerate(batches):
            is_own = events.batch == index
            rows, counts = events.row[is_own], np.zeros((2, len(batch)), np.int64)
            counts[0, rows], counts[1, rows] = total[is_own], of_table[is_own]
            column = pa.StructArray.from_arrays(
                [self._ids(batch), indices(counts[0]), indices(counts[1])],
                fields=list(TRANSACTION_TYPE),
                mask=pa.array(counts[0] == 0, pa.bool_()),
            )
            out.append(batch.with_rows(batch.rows.append_column("transaction", column)))
        return out

    def _ids(self, batch: ChangeBatch) -> pa.Array:
        """The transaction's id as of each row."""
        source = batch.rows.column("source")
        parts: list[str | pa.Array] = []
        for name in self.source.transaction_id:
            parts += [":", pc.cast(source.field(source.type.get_field_index(name)), pa.string())]
        return join(*parts[1:]) if parts else pa.nulls(len(batch), pa.string())

    def _records(
        self, marks: pa.RecordBatch, ends: npt.NDArray[np.bool_], events: _Events, tables: list[str]
    ) -> ControlBatch:
        transaction = np.cumsum(~ends, dtype=np.int64)
        pair, place, count = self._pairs(events, len(tables))
        bounds = np.searchsorted(place, np.arange(transaction[-1] + 2))
        totals = np.bincount(place, weights=count, minlength=int(transaction[-1]) + 1).astype(np.int64)[transaction]
        names = pa.array([dump(name) for name in tables], pa.string()).take(indices(pair))
        item = join('{"data_collection":', names, ',"event_count":', pc.cast(indices(count), pa.string()), "}")
        lists = pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), item), literal(","))
        id_ = encode(marks.column("id"), STRING)
        millis = np.floor_divide(marks.column("ts_us").to_numpy(zero_copy_only=False), 1000)
        is_end = pa.array(ends, pa.bool_())
        ended = join(
            pc.cast(indices(totals), pa.string()), ',"data_collections":[', lists.take(indices(transaction)), "]"
        )
        value = join(
            '{"status":',
            encode(marks.column("status"), STRING),
            ',"id":',
            id_,
            ',"event_count":',
            pc.if_else(is_end, ended, literal('null,"data_collections":null')),
            ',"ts_ms":',
            pc.cast(indices(millis), pa.string()),
            "}",
        )
        columns = {"key": join('{"id":', id_, "}"), "value": value, "partition": pa.nulls(len(marks), pa.int32())}
        rows = pa.record_batch(list(columns.values()), names=list(columns))
        return ControlBatch(self.naming.transaction, KEY, VALUE, rows)

    def _pairs(self, events: _Events, tables: int) -> tuple[Integers, Integers, Integers]:
        """Table, transaction and number of events of each pair that has some, by transaction and first appearance."""
        keys = np.concatenate([np.arange(len(self._counts)), events.transaction * tables + events.table])
        weights = np.concatenate([[*self._counts.values()], np.ones(len(events.row), np.int64)])
        pairs, first, index = np.unique(keys.astype(np.int64), return_index=True, return_inverse=True)
        counts = np.bincount(index, weights=weights, minlength=len(pairs)).astype(np.int64)
        transaction, table = pairs // max(tables, 1), pairs % max(tables, 1)
        by = np.lexsort((first, transaction))
        return table[by], transaction[by], counts[by]

    def _carry(self, events: _Events, tables: list[str], begins: Integers, ends: Integers) -> None:
        """Remember the counts of the transaction that the chunk leaves open."""
        last = len(begins)
        closed = len(ends) > 0 and (last == 0 or ends[-1] > begins[-1])
        pair, place, count = self._pairs(events, len(tables))
        self._open = not closed and (last > 0 or self._open)
        mine = place == last
        self._counts = (
            {tables[table]: int(n) for table, n in zip(pair[mine], count[mine], strict=True)} if self._open else {}
        )


def _sorted(
    batches: Sequence[ChangeBatch],
    names: list[list[str]],
    tables: list[str],
    begins: Integers,
    ends: Integers,
    is_open: bool,
) -> _Events:
    """The changes that belong to a transaction, in log order; `names` are those of the batches' tables, or rows."""
    if not batches:
        return _Events(*(np.empty(0, np.int64) for _ in range(4)))
    order = np.concatenate([batch.rows.column("order").to_numpy(zero_copy_only=False) for batch in batches])
    lengths = [len(batch) for batch in batches]
    batch = np.repeat(np.arange(len(batches)), lengths)
    row = np.concatenate([np.arange(length) for length in lengths])
    places = {name: place for place, name in enumerate(tables)}
    table = np.concatenate(
        [np.resize([places[name] for name in some], length) for some, length in zip(names, lengths, strict=True)]
    ).astype(np.int64)
    read = np.concatenate([flags(pc.equal(each.rows.column("op"), literal(READ))) for each in batches])
    transaction = np.searchsorted(begins, order, side="right")
    over = np.searchsorted(ends, order, side="right")
    inside = (transaction + int(is_open) > over) & ~read
    by = np.argsort(order[inside], kind="stable")
    return _Events(batch[inside][by], row[inside][by], table[inside][by], transaction[inside][by])


def _rank(groups: Integers) -> Integers:
    """The place of each item among those of its group, from 1, in the order they stand."""
    by = np.argsort(groups, kind="stable")
    ordered = groups[by]
    new = np.ones(len(groups), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    starts = np.maximum.accumulate(np.where(new, np.arange(len(groups)), 0))
    rank = np.empty(len(groups), np.int64)
    rank[by] = np.arange(len(groups)) - starts + 1
    return rank
