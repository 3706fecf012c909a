"""The rows of a snapshot as `r` changes: what a task reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pymssql

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.change_tables.changes import ORDER_STEP
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.retry import retrying
from tailrace.connectors.snapshots import Place
from tailrace.connectors.sqlserver.arrays import images, selected
from tailrace.connectors.sqlserver.catalog import Catalog, Described
from tailrace.connectors.sqlserver.client import FAILURES, Connection, connect
from tailrace.connectors.sqlserver.log.last import LastChange
from tailrace.connectors.sqlserver.log.schema_changes import initial_batches
from tailrace.connectors.sqlserver.position import SOURCE_TYPE
from tailrace.connectors.sqlserver.snapshot.keys import KeyColumn, after
from tailrace.connectors.sqlserver.statements import table as table_name
from tailrace.events.encode.arrow import repeat
from tailrace.events.notifications import Notice, notify
from tailrace.model.change import READ, ChangeBatch, SnapshotRead
from tailrace.model.table import TableId, TableSchema

_LEVELS = {"read_uncommitted": "READ UNCOMMITTED", "read_committed": "READ COMMITTED", "snapshot": "SNAPSHOT"}
_REPEATABLE = "REPEATABLE READ"


@dataclass(frozen=True)
class Moment:
    """What all rows of a snapshot share: where the log begins after it, the server's time, and a name of its own.

    A snapshot on demand has the `last` change of each database, too.
    """

    position: Reading
    ts_us: int
    name: str
    last: tuple[tuple[str, LastChange], ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Split:
    """Implements SnapshotSplit: rows of a table above `low` and up to `high` of its key, texts as `keys.py` has them.

    `first` and `last` are the markers of its first and last row. `select` is read instead of the table. `structures`
    are told first: the tables there are when a pipeline begins.
    """

    moment: Moment
    table: TableId
    key: tuple[KeyColumn, ...] = ()
    low: tuple[str | None, ...] | None = None
    high: tuple[str | None, ...] | None = None
    first: str | None = None
    last: str | None = None
    select: str | None = None
    bytes: int = 0
    is_whole: bool = True
    began: str | None = None
    structures: tuple[Described, ...] = ()
    before: tuple[Notice, ...] = ()
    after: tuple[Notice, ...] = ()
    read_id: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """See SnapshotSplit.names."""
        return (str(self.table),)

    @property
    def read(self) -> SnapshotRead:
        """What its rows belong to."""
        lsn = self.moment.position.lsn(self.table.database)
        return SnapshotRead(self.read_id, self.began or str(self.moment), lsn)

    @property
    def resume_point(self) -> Place | None:
        """See SnapshotSplit.resume_point."""
        if self.low is None:
            return None
        return Place((), tuple(value or "" for value in self.low), self.began or str(self.moment))

    def announced(self, notices: tuple[Notice, ...]) -> Split:
        """See SnapshotSplit.announced."""
        return replace(self, before=(*notices, *self.before))


def read(config: Config, split: Split) -> Iterator[Chunk]:
    """See Connector.rows."""
    if split.structures:
        yield Chunk(initial_batches(split.structures, dict(split.moment.position.lsns)))
    if split.before:
        yield Chunk([], controls=notify(config, split.before))
    rows = 0
    with closing(_connected(config, split)) as connection:
        captured = Catalog(connection, config).table(split.table)
        if captured is not None:
            with (
                FAILURES.translated(f"{split.table}: the snapshot cannot read the table"),
                at_level(connection, config),
            ):
                read = _locked(connection, config, split)
                for batch in _batches(connection, config, split, captured, read):
                    rows += len(batch)
                    yield Chunk([batch])
    if split.after:
        yield Chunk([], controls=notify(config, [notice.with_rows(rows) for notice in split.after]))


def _connected(config: Config, split: Split) -> Connection:
    """A connection; a server that is away is waited for. Rows that were read already are read again by another task."""

    def attempt() -> Connection:
        with FAILURES.translated(f"{split.table}: the snapshot cannot connect"):
            return connect(config, "tailrace snapshot", split.table.database)

    return retrying(config, attempt, FAILURES.is_transient)


def _locked(connection: Connection, config: Config, split: Split) -> SnapshotRead:
    """What the rows belong to. With the level `exclusive` nobody writes to the table until the transaction ends.

    The end of the log is asked for under that lock: exactly the changes before it are in the rows.
    """
    if config.text("snapshot.isolation.mode") != "exclusive" or config.text("snapshot.locking.mode") == "none":
        return split.read
    limit = config.number("snapshot.lock.timeout.ms")
    connection.run(
        f"SET LOCK_TIMEOUT {limit}",
        f"SELECT TOP 0 1 AS one FROM {table_name(split.table)} WITH (TABLOCK, HOLDLOCK)",
        "SET LOCK_TIMEOUT -1",
    )
    end = connection.value("SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())")
    return replace(split.read, position=str(end))


class at_level:  # it reads as a statement
    """A transaction of the isolation level that snapshot.isolation.mode says; it ends with the block."""

    def __init__(self, connection: Connection, config: Config) -> None:
        mode = config.text("snapshot.isolation.mode")
        is_read_only = (config.optional("driver.applicationIntent") or "").lower() == "readonly"
        self._connection = connection
        self._level = "SNAPSHOT" if is_read_only else _LEVELS.get(mode, _REPEATABLE)

    def __enter__(self) -> None:
        self._connection.run(f"SET TRANSACTION ISOLATION LEVEL {self._level}", "BEGIN TRANSACTION")

    def __exit__(self, *_: object) -> None:
        # Of a connection that is cut the server ends the transaction itself.
        with suppress(pymssql.Error):
            self._connection.run(
                "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
            )


def statement(split: Split, captured: CapturedTable) -> str:
    """The SELECT of a split."""
    listed = ", ".join(selected(captured))
    if split.select is not None:
        return f"SELECT {listed} FROM ({split.select}) AS chosen"
    conditions = [
        *([after(split.key, split.low)] if split.low else []),
        *([f"NOT ({after(split.key, split.high)})"] if split.high else []),
    ]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {listed} FROM {table_name(split.table)}{where}"


def _batches(
    connection: Connection, config: Config, split: Split, captured: CapturedTable, read: SnapshotRead
) -> Iterator[ChangeBatch]:
    """The rows, with markers on the first and the last; one batch without rows for a table that has none."""
    held: ChangeBatch | None = None
    order = 0
    for block in connection.blocks(statement(split, captured), config.number("snapshot.fetch.size")):
        found = images(captured, list(zip(*block, strict=True)), len(block))
        if config.flag("compat.faults"):
            found = _without_hidden_keys(captured.schema, found)
        batch = ChangeBatch(captured.schema, reads(found, order, split.moment, split.table), read)
        if held is None:
            batch = marked(batch, 0, split.first)
        else:
            yield held
        held = batch
        order += ORDER_STEP * len(block)
    if held is None:
        if split.is_whole:
            nothing = pa.nulls(0, captured.schema.row_type)
            yield ChangeBatch(captured.schema, reads(nothing, 0, split.moment, split.table), read)
        return
    # The very first row keeps its marker even as the last of its table, not as the last of all.
    keeps_first = order == ORDER_STEP and split.first == "first" and split.last != "last"
    yield held if keeps_first else marked(held, len(held) - 1, split.last)


def _without_hidden_keys(schema: TableSchema, found: pa.StructArray) -> pa.StructArray:
    """The reference engine does not read key columns that no value has: their place in keys has zeros."""
    if all(column.in_value for column in schema.columns):
        return found
    arrays = [
        values if column.in_value else pa.repeat(_zero(column.arrow), len(found))
        for column, values in zip(schema.columns, found.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(schema.row_type))


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar("" if pa.types.is_string(kind) else b"" if pa.types.is_binary(kind) else 0, kind)


def reads(found: pa.StructArray, order: int, moment: Moment, table: TableId) -> pa.RecordBatch:
    """Row images as rows of a first snapshot."""
    size = len(found)
    last = dict(moment.last).get(table.database)
    lsn = moment.position.lsn(table.database) or None
    values = (None, lsn, None) if last is None else (last.change, last.commit, last.serial)
    source = [pa.repeat(pa.scalar(value, field.type), size) for value, field in zip(values, SOURCE_TYPE, strict=True)]
    columns = {
        "op": repeat(READ, size),
        "order": pa.array(order + ORDER_STEP * np.arange(size, dtype=np.int64)),
        "ts_us": pa.repeat(pa.scalar(moment.ts_us, pa.int64()), size),
        "snapshot": repeat("true", size),
        "source": pa.StructArray.from_arrays(source, fields=list(SOURCE_TYPE)),
        "before": pa.nulls(size, found.type),
        "after": found,
    }
    return pa.RecordBatch.from_pydict(columns)


def marked(batch: ChangeBatch, row: int, marker: str | None) -> ChangeBatch:
    """The batch with one row's snapshot marker set."""
    if marker is None:
        return batch
    place = batch.rows.schema.get_field_index("snapshot")
    markers = batch.rows.column(place)
    edited = pa.concat_arrays([markers.slice(0, row), pa.array([marker], pa.string()), markers.slice(row + 1)])
    return batch.with_rows(batch.rows.set_column(place, "snapshot", edited))
