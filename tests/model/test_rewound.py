"""A replica whose checkpoint is put back, or loses its newest files, at any moment.

In a snapshot, beside signals, in the middle of a micro-batch: in the end the replica is what its source is.

The suite runs a few histories, `make model` thousands (TAILRACE_MODEL_EXAMPLES).
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from pyspark.sql.types import StructType

from tailrace.capture.log_split import LogSplit
from tailrace.connectors.base import Offset
from tailrace.connectors.offset import BEGIN
from tailrace.errors import SinkError
from tailrace.model.change import ChangeBatch, from_ipc
from tailrace.sinks.replica import contents
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.parts import parts
from tailrace.sinks.replica.target import read_table
from tailrace.spark.shapes import Shaper
from tests.conftest import Database
from tests.model.sessions import STATEMENTS, TABLES, Sessions, run

KEYED = sorted(table for table, key in TABLES.items() if key)
WRITES = st.tuples(st.sampled_from(STATEMENTS), st.integers(0, 420), st.integers(0, 60))


class Killed(Exception):
    """The process has ended between two commits."""


class Rewound(Sessions):
    """A pipeline into a replica. `starts` are the checkpoints it may be put back to: the slot is not beyond them."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(mkdtemp())
        self.number, self.sent, self.rows_a_part = 0, 0, 3
        self.starts: list[tuple[Offset, int]] = []
        self.is_blocking = False

    @initialize(several=st.booleans(), large=st.sampled_from(["", "numbers, words"]))
    def begin(self, several: bool, large: str) -> None:
        with self.database.connect() as connection:
            connection.execute(
                f"CREATE TABLE {self.schema}.signals (id text PRIMARY KEY, type text, data text)".encode()
            )
            for table in large.split(", ") if large else ():
                # Values that the log does not repeat, neither in rows whose key changes.
                connection.execute(
                    f"ALTER TABLE {self.schema}.{table} ADD w text, ALTER w SET STORAGE EXTERNAL, "
                    "REPLICA IDENTITY DEFAULT".encode()
                )
                connection.execute(f"UPDATE {self.schema}.{table} SET w = repeat(md5(v::text), 100)".encode())
        threads = {"snapshot__max__threads": "2", "snapshot__max__threads__multiplier": "3"} if several else {}
        signals = {"signal__data__collection": f"{self.schema}.signals", "incremental__snapshot__chunk__size": "7"}
        self.capturing(**signals, **threads, shape="arrow")
        self._step()

    @rule(times=st.integers(1, 3))
    def step(self, times: int) -> None:
        for _ in range(times):
            if self._may_plan():
                self._step()

    @rule(kills=st.integers(0, 3), keeps=st.booleans(), rows_a_part=st.sampled_from([1, 3, 1000]))
    def crash(self, kills: int, keeps: bool, rows_a_part: int) -> None:
        """The process ends after so many commits. Of the micro-batch the checkpoint has the offset, or has lost it."""
        if not self._may_plan():
            return
        start = self.capture.offset
        end = self.capture.reader.head(start, None, None)
        if end != start:
            with contextlib.suppress(Killed):
                self._write(start, end, kills)
        self._restart(rows_a_part)
        if end != start and keeps:
            self._commit(start, end)

    @rule(data=st.data())
    def fail_and_try_again(self, data: st.DataObject) -> None:
        """A task fails, and Spark runs it again: the micro-batch is not planned again."""
        if not self._may_plan():
            return
        start = self.capture.offset
        end = self.capture.reader.head(start, None, None)
        if end != start:
            with contextlib.suppress(Killed):
                self._write(start, end, data.draw(st.integers(0, 3)))
            self._commit(start, end)

    @rule(
        data=st.data(),
        rows_a_part=st.sampled_from([1, 3, 1000, 1000]),
        before=st.lists(WRITES, min_size=1, max_size=4),
        after=st.lists(WRITES, min_size=1, max_size=4),
    )
    def rewind(
        self,
        data: st.DataObject,
        rows_a_part: int,
        before: list[tuple[str, int, int]],
        after: list[tuple[str, int, int]],
    ) -> None:
        """The checkpoint of an earlier moment is put back; what was written since comes again, together with more."""
        if not self._may_plan():
            return
        for statement, n, m in before:
            self.write(0, statement, n, m, "none", at_once=True)
        if self._step():
            place = data.draw(st.integers(0, len(self.starts) - 1))
            self.capture.offset, self.number = self.starts[place]
            del self.starts[place + 1 :]
            self._restart(rows_a_part)
            if self.capture.offset["phase"] == BEGIN:
                # Nothing proves any more that the slot is this pipeline's own; the error says to drop it.
                with self.database.connect() as connection:
                    self._drop_slot(connection)
        for statement, n, m in after:
            self.write(0, statement, n, m, "none", at_once=True)

    @rule(tables=st.sets(st.sampled_from(KEYED), min_size=1))
    def read_incrementally(self, tables: set[str]) -> None:
        self._ask(**{"data-collections": self._names(tables)})

    @rule(tables=st.sets(st.sampled_from(sorted(TABLES)), min_size=1))
    def read_blocking(self, tables: set[str]) -> None:
        self.is_blocking = True
        self._ask(type="blocking", **{"data-collections": self._names(tables)})

    def teardown(self) -> None:
        try:
            self.settle()
            resting = 0
            for _ in range(1000):
                resting = 0 if self._step() else resting + 1
                if resting == 3 and self.capture.offset["phase"] == "stream":
                    break
            self.agree()
        finally:
            self.close()
            shutil.rmtree(self.root)

    def agree(self) -> None:
        for table in TABLES:
            with self.database.connect() as connection:
                source = Counter(connection.execute(f"SELECT * FROM {self.schema}.{table}".encode()).fetchall())
            replica = self._replica(table)
            assert (source - replica, replica - source) == (Counter(), Counter()), table

    def _replica(self, table: str) -> Counter[tuple[Any, ...]]:
        try:
            found = read_table(str(self.root), f"{self.schema}.{table}").to_pylist()
        except SinkError:
            return Counter()
        if table == "late":
            found = [{**row, "id": UUID(row["id"])} for row in found]
        return Counter(tuple(row.values()) for row in found)

    def _names(self, tables: set[str]) -> list[str]:
        return [f"{self.schema}.{table}" for table in sorted(tables)]

    def _ask(self, **data: Any) -> None:
        self.sent += 1
        with self.database.connect() as connection:
            connection.execute(
                f"INSERT INTO {self.schema}.signals VALUES (%s, 'execute-snapshot', %s)".encode(),
                [f"{self.sent:03}", json.dumps(data)],
            )

    def _may_plan(self) -> bool:
        """An exported snapshot waits for older transactions, and these wait for us."""
        streams = self.capture.offset["phase"] == "stream"
        return not self.busy or (streams and not self.is_blocking)

    def _restart(self, rows_a_part: int) -> None:
        self.capture.forget_streams()
        self.restart()
        self.rows_a_part = rows_a_part

    def _commit(self, start: Offset, end: Offset) -> None:
        self._write(start, end, None)
        self.number += 1
        self.capture.offset = end
        if end["phase"] == "stream" and not end["snapshots"]["queue"]:
            self.is_blocking = False

    def _write(self, start: Offset, end: Offset, kills: int | None) -> None:
        """Read the micro-batch and write it; the process ends after so many commits."""
        splits = self.capture.reader.plan(start, end)
        if any(isinstance(split, LogSplit) and split.range.start < split.range.end for split in splits):
            self.starts.clear()
        if (start, self.number) not in self.starts:
            self.starts.append((start, self.number))
        shaper = Shaper(self.capture.reader, StructType(), "[]", "run")
        blobs: dict[str, list[pa.Buffer]] = {}
        for split in splits:
            for chunk in self.capture.reader.read(split):
                for row in shaper.rows(chunk):
                    found = blobs.setdefault(row.column("table")[0].as_py(), [])
                    found.extend(_cut(row.column("bytes")[0].as_buffer(), self.rows_a_part))
        batch = MicroBatch(str(self.root), "query", self.number)
        for table, its in blobs.items():
            for part in parts(iter(its), self.rows_a_part):
                if kills == 0:
                    raise Killed
                kills = None if kills is None else kills - 1
                contents.write(batch, table, part)


def _cut(blob: pa.Buffer, rows: int) -> list[pa.Buffer]:
    """A batch as several, so that parts end within transactions."""
    batch = from_ipc(blob)
    if not isinstance(batch, ChangeBatch) or len(batch) <= rows:
        return [blob]
    return [pa.py_buffer(batch.slice(at, rows).to_ipc()) for at in range(0, len(batch), rows)]


@pytest.mark.timeout(0)
def test_the_replica_is_its_source(database: Database) -> None:
    run(Rewound, database)
