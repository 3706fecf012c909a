"""A line of transactions for replicas that keep more than the newest rows, with what they have to hold then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pyarrow as pa

from tailrace.model.change import COMMIT, ChangeBatch, SnapshotRead
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import again
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.layout import ReplicaLayout
from tailrace.sinks.replica.modes import Kind, Mode
from tailrace.sinks.replica.parts import parts
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.table_writer import TableWriter
from tailrace.sinks.replica.target import read_table
from tailrace.sinks.replica.upkeep import Upkeep
from tests.behaviour.engines import catalog, database

NAME = "public.notes"
TEXT = ConnectSchema("string", True)
NOTES = TableSchema(
    TableId("db", "public", "notes"),
    (
        Column("id", ConnectSchema("int32", False), pa.int32()),
        Column("note", TEXT, pa.string()),
        Column("document", TEXT, pa.string()),
    ),
    ("id",),
    ("id",),
)
Row = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def at(microseconds: int) -> datetime:
    """A moment."""
    return EPOCH + timedelta(microseconds=microseconds)


@dataclass
class Change:
    """A change of a row, or of all rows; `is_split`: a change of the key comes as a deletion and a creation."""

    op: str
    before: Row | None = None
    after: Row | None = None
    keeps: bool = False
    is_split: bool = False


@dataclass
class Transaction:
    """Changes that were committed at a place in the log, and at a time that need not be later than the one before."""

    commit: int
    time: int
    changes: list[Change]


@dataclass
class Source:
    """A table, its rows after each transaction by the time from which they held, and every version of a row."""

    rows: dict[int, Row] = field(default_factory=dict)
    states: list[tuple[int, list[Row]]] = field(default_factory=list)
    versions: list[Row] = field(default_factory=list)
    clock: int = 0

    def apply(self, transaction: Transaction) -> None:
        """Take over a transaction."""
        self.clock = max(self.clock, transaction.time)
        for change in transaction.changes:
            if change.op == "t":
                for key in list(self.rows):
                    self._end(key)
                continue
            old = None if change.before is None else change.before["id"]
            kept = self.rows.get(change.after["id"] if change.after and old is None else old or 0)
            if change.op in "ud" and old is not None:
                self._end(old)
            if change.after is not None:
                self._begin(
                    {**change.after, **({"document": kept["document"]} if change.keeps and kept else {})}, change
                )
        self.states.append((self.clock, sorted(self.rows.values(), key=lambda row: row["id"])))

    def read(self, time: int) -> None:
        """A snapshot reads all rows."""
        self.clock = max(self.clock, time)
        rows = list(self.rows.values())
        for row in rows:
            self._end(row["id"])
        for row in rows:
            self._begin(row, Change("r"))
        self.states.append((self.clock, sorted(self.rows.values(), key=lambda row: row["id"])))

    def _end(self, key: int) -> None:
        if self.rows.pop(key, None) is not None:
            (current,) = [each for each in self.versions if each["id"] == key and each["valid_to"] is None]
            current["valid_to"] = at(self.clock)

    def _begin(self, row: Row, change: Change) -> None:
        self._end(row["id"])
        self.rows[row["id"]] = row
        op = "c" if change.is_split else change.op
        self.versions.append({**row, "valid_from": at(self.clock), "valid_to": None, "_op": op})

    def as_of(self, moment: int) -> list[Row]:
        """The rows at a moment: those of the last state that held from then or before."""
        return next((rows for time, rows in reversed(self.states) if time <= moment), [])


def drawn(draw: Random, count: int, keys: int = 8, *, keeps: bool = True) -> list[Transaction]:
    """Random transactions of a table that is empty, whose commit times go back now and then.

    Some changes keep the document of their row, which the log does not repeat, unless none `keeps` it.
    """
    rows: dict[int, bool] = {}
    made, time = [], 1_000_000
    for number in range(count):
        time += draw.choice([0, 1, 5, 50])
        changes = [_drawn(draw, rows, keys, 0.4 * keeps) for _ in range(draw.randint(1, 5))]
        made.append(Transaction(100 + 10 * number, time - draw.choice([0, 0, 0, 7, 60]), changes))
    return made


def _drawn(draw: Random, rows: dict[int, bool], keys: int, keeping: float) -> Change:
    free = [key for key in range(1, keys + 1) if key not in rows]
    if free and (not rows or draw.random() < 0.3):
        key = draw.choice(free)
        rows[key] = True
        return Change("c", None, note(key, draw))
    if draw.random() < 0.04:
        rows.clear()
        return Change("t")
    key = draw.choice(list(rows))
    if draw.random() < 0.25:
        del rows[key]
        return Change("d", note(key, None))
    keeps = draw.random() < keeping
    if free and draw.random() < 0.3:
        new = draw.choice(free)
        del rows[key]
        rows[new] = True
        return Change("u", note(key, None), note(new, draw, keeps=keeps), keeps, draw.random() < 0.5)
    return Change("u", None, note(key, draw, keeps=keeps), keeps)


def note(key: int, draw: Random | None = None, *, keeps: bool = False) -> Row:
    """A row; without a source of values, or where it keeps its document, there is none."""
    text = None if draw is None else f"n{draw.randint(0, 9)}"
    return {"id": key, "note": text, "document": None if draw is None or keeps else f"d{draw.randint(0, 999)}"}


class Line:
    """A replica of the table, in one of the formats, that micro-batches write as the sink's tasks do."""

    def __init__(self, folder: Path, lake: str, mode: Kind, upkeep: Upkeep | None = None, **names: str) -> None:
        self.root, self.options = str(folder / "lake"), {}
        if lake == "iceberg":
            self.root, self.options = "iceberg://lake", catalog(folder)
        elif lake == "postgres":
            self.root, self.options = database(folder / "lake")
        self.layout = ReplicaLayout(mode=Mode.of(mode, names))
        self.number, self.upkeep = 0, upkeep

    def batch(self) -> MicroBatch:
        """The micro-batch of now."""
        copies = again.folders(self.root, self.options)
        return MicroBatch(
            *(self.root, "query", self.number, self.options), upkeep=self.upkeep, layout=self.layout, copies=copies
        )

    def write(self, *batches: ChangeBatch, most_rows: int = 500_000) -> list[TableReport]:
        """Write a micro-batch."""
        self.number += 1
        blobs = [pa.py_buffer(each.to_ipc()) for each in batches]
        writer = TableWriter(self.batch(), NAME)
        found = [writer.write(part) for part in parts(blobs, most_rows, layout=self.layout)]
        if self.upkeep is not None:
            batch = self.batch()
            assert batch.keep(batch.target(NAME), [report.version for report in found]) is None
        return found

    def commit(
        self, transactions: Iterable[Transaction], most_rows: int = 500_000, schema: TableSchema = NOTES
    ) -> list[TableReport]:
        """Write a micro-batch of transactions."""
        return self.write(*logged(transactions, schema), most_rows=most_rows)

    def rows(self, table: str = NAME) -> list[Row]:
        """All rows of the table."""
        found: list[Row] = read_table(self.root, table, self.options).to_pylist()
        return found


def logged(transactions: Iterable[Transaction], schema: TableSchema = NOTES) -> list[ChangeBatch]:
    """Transactions as the log has them: a batch each."""
    return [_logged(each, schema) for each in transactions]


def _logged(transaction: Transaction, schema: TableSchema) -> ChangeBatch:
    rows: list[tuple[str, Row | None, Row | None, Row | None, bool]] = []
    for each in transaction.changes:
        if each.is_split and each.before is not None and each.after is not None:
            old, new = ({"id": row["id"]} for row in (each.before, each.after))
            rows += [("d", each.before, None, new, False), ("c", None, each.after, old, each.keeps)]
        else:
            rows.append((each.op, each.before, each.after, None, each.keeps))
    flags = [{name: keeps and name == "document" for name in schema.row_type.names} for *_, keeps in rows]
    columns = {
        "op": pa.array([op for op, *_ in rows]),
        "order": pa.array(range(len(rows)), pa.int64()),
        "ts_us": pa.array([transaction.time] * len(rows), pa.int64()),
        "before": pa.array([before for _, before, *_ in rows], schema.row_type),
        "after": pa.array([after for _, _, after, *_ in rows], schema.row_type),
        "other_key": pa.array([other for *_, other, _ in rows], pa.struct([("id", pa.int32())])),
        "unchanged": pa.array(flags, pa.struct([(name, pa.bool_()) for name in schema.row_type.names])),
        "transaction": pa.array([{"id": f"tx{transaction.commit}"}] * len(rows), pa.struct([("id", pa.string())])),
        COMMIT: pa.array([transaction.commit] * len(rows), pa.int64()),
    }
    return ChangeBatch(schema, pa.RecordBatch.from_pydict(columns))


def read(rows: Sequence[Row], place: int, time: int, schema: TableSchema = NOTES, **more: Any) -> ChangeBatch:
    """Rows of a snapshot that begins at a place in the log; `more` are members of its SnapshotRead."""
    nothing = pa.nulls(len(rows), schema.row_type)
    columns = {
        "op": pa.array(["r"] * len(rows), pa.string()),
        "order": pa.array(range(len(rows)), pa.int64()),
        "ts_us": pa.array([time] * len(rows), pa.int64()),
        "before": nothing,
        "after": pa.array(rows, schema.row_type) if rows else nothing,
    }
    found = {"snapshot": str(place), "position": place, **more}
    return ChangeBatch(schema, pa.RecordBatch.from_pydict(columns), SnapshotRead(uuid4().hex, **found))
