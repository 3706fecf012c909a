"""Reads the rows of a snapshot split as `r` changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.options.databases import SNAPSHOT_FETCH_SIZE
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.base import Chunk
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.notifications import notify
from tailrace.connectors.retry import retrying
from tailrace.connectors.snapshots import PagingKey, SnapshotPlace
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.images import images, selected
from tailrace.connectors.sql_tables.keys import KeyColumn, after
from tailrace.connectors.sql_tables.tables import Connection, Described
from tailrace.connectors.table_split import TableSplit
from tailrace.model.arrow import repeat
from tailrace.model.change import READ, ChangeBatch, SnapshotRead
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

# Rows of a fetch where snapshot.fetch.size is 0.
_FETCHED = 10_000


class Moment(Protocol):
    """What all rows of a snapshot share. It is picklable, and its text is a name that no other snapshot has."""

    @property
    def position(self) -> Any:
        """Where the log continues: the rows have all changes before it."""

    @property
    def ts_us(self) -> int:
        """The server's time, in microseconds since 1970 UTC."""

    def begins(self, table: TableId) -> str:
        """Where the log begins that rows of the table lack."""

    def source(self, dialect: Any, table: TableId, count: int) -> pa.StructArray:
        """The `source` of so many rows of a table."""

    def introduced(self, dialect: Any, structures: Sequence[Described]) -> list[ChangeBatch]:
        """The structures of tables, which are sent before their rows."""


@dataclass(frozen=True)
class Split(TableSplit):
    """Implements SnapshotSplit: rows of a table above `low` and up to `high` of its key, texts as `keys.py` has them.

    `select` is read instead of the table. `structures` are sent first: the tables there are when a pipeline begins, or
    those of a blocking snapshot.
    """

    moment: Moment
    key: tuple[KeyColumn, ...] = ()
    low: PagingKey | None = None
    high: PagingKey | None = None
    _: KW_ONLY
    select: str | None = None
    is_whole: bool = True
    structures: tuple[Described, ...] = ()

    @property
    def read(self) -> SnapshotRead:
        """What its rows belong to."""
        return self.read_at(self.moment.begins(self.table))

    @property
    @override
    def resume_point(self) -> SnapshotPlace | None:
        if self.low is None:
            return None
        return SnapshotPlace((), self.low, self.snapshot)


def read(dialect: SqlDialect, config: Config, split: Split) -> Iterator[Chunk]:
    """The rows of a split, as Connector.rows has them."""
    if split.structures:
        yield Chunk(split.moment.introduced(dialect, split.structures))
    if split.before:
        yield Chunk([], controls=notify(config, split.before))
    rows = 0
    with closing(_connected(dialect, config, split)) as connection:
        captured = dialect.catalog(connection, config).table(split.table)
        if captured is not None:
            with ExitStack() as transaction:
                transaction.enter_context(
                    dialect.failures.translated(f"{split.table}: the snapshot cannot read the table")
                )
                # Where the log goes on under a lock: exactly the changes before it are in the rows.
                begins = _begun(dialect, config, connection, split.table, transaction)
                read = split.read if begins is None else replace(split.read, position=begins)
                for batch in _Rows(dialect, config, split, captured, read).batches(connection):
                    rows += len(batch)
                    yield Chunk([batch])
    if split.after:
        yield Chunk([], controls=notify(config, [notice.with_rows(rows) for notice in split.after]))


def _begun(dialect: SqlDialect, config: Config, connection: Connection, table: TableId, begun: ExitStack) -> str | None:
    """Begin the transaction, which ends with `begun`, and lock the table; a lock that others hold is waited for."""

    def attempt() -> str | None:
        with ExitStack() as own, dialect.failures.translated(f"{table}: the snapshot cannot lock the table"):
            own.enter_context(dialect.transaction(connection, config))
            begins = dialect.locked(connection, config, table)
            begun.push(own.pop_all())
            return begins

    failures = dialect.failures
    return retrying(config, attempt, lambda error: failures.is_transient(error) and not failures.is_lost(error))


def _connected(dialect: SqlDialect, config: Config, split: Split) -> Connection:
    """A connection; a server that is away is waited for. Rows that were read already are read again by another task."""

    def attempt() -> Connection:
        with dialect.failures.translated(f"{split.table}: the snapshot cannot connect"):
            return dialect.connect(config, "tailrace snapshot", split.table.database)

    return retrying(config, attempt, dialect.failures.is_transient)


@dataclass(frozen=True)
class _Rows:
    """How the rows of a split become batches."""

    dialect: SqlDialect
    config: Config
    split: Split
    captured: CapturedTable
    read: SnapshotRead

    def batches(self, connection: Connection) -> Iterator[ChangeBatch]:
        """The rows; one batch without rows for a table that has none."""
        has_rows = False
        for batch in self.split.marked(self._batches(connection)):
            has_rows = True
            yield batch
        if not has_rows and self.split.is_whole:
            yield self._batch(pa.nulls(0, self.captured.schema.row_type), 0)

    def _batches(self, connection: Connection) -> Iterator[ChangeBatch]:
        order = 0
        for block in connection.blocks(self._statement(), self.config[SNAPSHOT_FETCH_SIZE] or _FETCHED):
            rows = len(block[0])
            yield self._batch(images(self.captured, block, rows), order)
            order += self.dialect.order_step * rows

    def _statement(self) -> str:
        split, dialect = self.split, self.dialect
        listed = ", ".join(selected(dialect.name, self.captured))
        if split.select is not None:
            return f"SELECT {listed} FROM {dialect.derived(split.select)} AS chosen"
        conditions = [
            *([after(dialect, split.key, split.low)] if split.low else []),
            *([f"NOT {after(dialect, split.key, split.high)}"] if split.high else []),
        ]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {listed} FROM {dialect.table(split.table)}{where}"

    def _batch(self, row_images: pa.StructArray, order: int) -> ChangeBatch:
        schema, moment, table = self.captured.schema, self.split.moment, self.split.table
        if Fault.ZERO_HIDDEN_KEYS in self.config[COMPAT_FAULTS]:
            row_images = _without_hidden_keys(schema, row_images)
        size = len(row_images)
        columns = {
            "op": repeat(READ, size),
            "order": pa.array(order + self.dialect.order_step * np.arange(size, dtype=np.int64)),
            "ts_us": pa.repeat(pa.scalar(moment.ts_us, pa.int64()), size),
            "snapshot": repeat("true", size),
            "source": moment.source(self.dialect, table, size),
            "before": pa.nulls(size, row_images.type),
            "after": row_images,
        }
        return ChangeBatch(schema, pa.RecordBatch.from_pydict(columns), self.read)


def _without_hidden_keys(schema: TableSchema, row_images: pa.StructArray) -> pa.StructArray:
    """The reference engine does not read key columns that values leave out, so keys have zeros in their place.

    It reads all columns of a table if values have none.
    """
    shown = [column.in_value for column in schema.columns]
    if all(shown) or not any(shown):
        return row_images
    arrays = [
        values if column.in_value else pa.repeat(_zero(column.arrow), len(row_images))
        for column, values in zip(schema.columns, row_images.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(schema.row_type))


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar("" if pa.types.is_string(kind) else b"" if pa.types.is_binary(kind) else 0, kind)
