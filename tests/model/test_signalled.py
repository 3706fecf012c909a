"""Snapshots that signals ask for against a model: incremental and blocking, paused, stopped, with a crash anywhere.

Every row they read must be the one that the history so far knows, as its batch ends behind it in the log; and a row
that rests from a signal on until its snapshot is done must have been read.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tailrace.connectors.base import Offset
from tests.behaviour.capture import rows
from tests.conftest import Database
from tests.model.sessions import TABLES, Sessions, old, run

Rows = set[tuple[Any, ...]]
BLOCKING = {"true", "first", "first_in_data_collection", "last_in_data_collection", "last"}
KEYED = sorted(table for table, key in TABLES.items() if key)


class Signalled(Sessions):
    """A pipeline that streams, and is asked for snapshots."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0
        self.awaited: dict[str, Rows] = {}
        self.is_blocking = False

    @initialize(read_only=st.booleans(), strategy=st.sampled_from(["insert_insert", "insert_delete"]))
    def begin(self, read_only: bool, strategy: str) -> None:
        with self.database.connect() as connection:
            connection.execute(
                f"CREATE TABLE {self.schema}.signals (id text PRIMARY KEY, type text, data text)".encode()
            )
        self.capturing(
            signal__data__collection=f"{self.schema}.signals",
            incremental__snapshot__chunk__size="7",
            incremental__snapshot__watermarking__strategy=strategy,
            read__only=str(read_only).lower(),
        )
        while self.capture.offset["phase"] != "stream":
            self._step()
            self._ask("log", message="so that the log has something to read")

    @rule(tables=st.sets(st.sampled_from(KEYED), min_size=1))
    def read_incrementally(self, tables: set[str]) -> None:
        self._read(tables)

    @rule(tables=st.sets(st.sampled_from(sorted(TABLES)), min_size=1))
    def read_by_values(self, tables: set[str]) -> None:
        """By a column that is neither unique nor a key."""
        self._read(tables, **{"surrogate-key": "v"})

    def _read(self, tables: set[str], **how: str) -> None:
        for table in tables:
            known = {row for row, count in self.history.rows[table].items() if count}
            self.awaited[table] = self.awaited.get(table, set()) | known
        self._ask("execute-snapshot", **{"data-collections": self._names(tables), **how})

    @rule(tables=st.sets(st.sampled_from(sorted(TABLES)), min_size=1))
    def read_blocking(self, tables: set[str]) -> None:
        self.is_blocking = True
        self._read(tables, type="blocking")

    @precondition(lambda self: not self.busy)
    @rule()
    def lose_export(self) -> None:
        """The connection that holds the exported snapshot of a blocking one ends between two batches."""
        with self.database.connect() as connection:
            query = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = %s"
            connection.execute(query, ["tailrace snapshot"])
        self._step()

    @rule(type_=st.sampled_from(["pause-snapshot", "resume-snapshot"]))
    def pause(self, type_: str) -> None:
        self._ask(type_)

    @rule(tables=st.sets(st.sampled_from(KEYED)))
    def stop(self, tables: set[str]) -> None:
        for table in tables or set(self.awaited):
            self.awaited.pop(table, None)
        self._ask("stop-snapshot", **({"data-collections": self._names(tables)} if tables else {}))

    @rule(times=st.integers(1, 4))
    def step(self, times: int) -> None:
        for _ in range(times):
            if self._may_plan():
                self._step()

    @rule(reads=st.booleans())
    def crash_before_commit(self, reads: bool) -> None:
        """The batch is planned, perhaps read, and planned again by the next process, without the chunk."""
        if not self._may_plan():
            return
        start = self.capture.offset
        end = self.capture.reader.head(start, None, None)
        if end != start:
            splits = self.capture.reader.plan(start, end)
            if reads:
                rows(chunk for split in splits for chunk in self.capture.reader.read(split))
        self.restart()
        if end != start:
            self._commit(start, end)

    @precondition(lambda self: not self.busy)
    @rule()
    def crash_after_commit(self) -> None:
        self.restart()
        self._step()

    def teardown(self) -> None:
        try:
            self.settle()
            self._ask("resume-snapshot")
            resting = 0
            # Requests may queue for many tables, of some steps each.
            for _ in range(3000):
                resting = 0 if self._step() else resting + 1
                if resting == 3 and not self._queue():
                    break
            assert not self._queue(), "the snapshots do not end"
            self.agree()
        finally:
            self.close()

    def _names(self, tables: set[str]) -> list[str]:
        return [f"{self.schema}.{table}" for table in sorted(tables)]

    def _ask(self, type_: str, **data: Any) -> None:
        self.sent += 1
        with self.database.connect() as connection:
            connection.execute(
                f"INSERT INTO {self.schema}.signals VALUES (%s, %s, %s)".encode(),
                [f"{self.sent:03}", type_, json.dumps(data)],
            )

    def _queue(self) -> list[dict[str, Any]]:
        queue: list[dict[str, Any]] = self.capture.offset["snapshots"]["queue"]
        return queue

    def _may_plan(self) -> bool:
        """A blocking snapshot waits for older transactions, and these wait for us."""
        return not self.busy or not self.is_blocking

    def _commit(self, start: Offset, end: Offset) -> None:
        splits = self.capture.reader.plan(start, end)
        before = {table: +known for table, known in self.history.rows.items()}
        changes = [
            change
            for change in rows(chunk for split in splits for chunk in self.capture.reader.read(split))
            if change["table"].rpartition(".")[2] in TABLES
        ]
        for change in changes:
            self.history.apply(change, ())
            self._seen(change)
        if start["phase"] == "stream" and changes and all(change["snapshot"] in BLOCKING for change in changes):
            told = {table: +known for table, known in self.history.rows.items()}
            assert told == before, "a blocking snapshot reads something else than what the log has told"
        self.capture.offset = end
        if end["phase"] == "stream":
            self._check_done(end)

    def _seen(self, change: dict[str, Any]) -> None:
        """Whatever is told of a row, it need not be read any more."""
        rows_of_table = self.awaited.get(change["table"].rpartition(".")[2], set())
        rows_of_table.discard(old(rows_of_table, change))
        if change["after"] is not None:
            rows_of_table.discard(tuple(change["after"].values()))
        if change["op"] == "t":
            rows_of_table.clear()

    def _check_done(self, end: Offset) -> None:
        progress = end["snapshots"]
        if f"{self.sent:03}" not in [mark["id"] for mark in progress["handled"]]:
            return
        self.is_blocking = self.is_blocking and bool(progress["queue"])
        under_way = {request["table"].rpartition(".")[2] for request in progress["queue"]}
        for table in [table for table in self.awaited if table not in under_way]:
            left = self.awaited.pop(table)
            # What the last batch read is lost if the driver dies before its commit; it is read again then.
            assert not left or progress["undo"] is not None, f"{table}: {left} were not read"


@pytest.mark.timeout(0)
def test_history_is_valid(database: Database) -> None:
    run(Signalled, database)
