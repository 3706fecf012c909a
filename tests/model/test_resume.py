"""A first snapshot of several micro-batches against a model: transactions of every kind beside it, a crash anywhere.

Every old row image must be what the history so far says of its key, so nothing may be missing, doubled or step back.
The suite runs a few histories, `make model` thousands (TAILRACE_MODEL_EXAMPLES).
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tailrace.connectors.base import Offset
from tests.behaviour.capture import rows
from tests.conftest import Database
from tests.model.sessions import Sessions, run


class Resuming(Sessions):
    """A pipeline that goes on step by step, is killed and started again."""

    @initialize()
    def begin(self) -> None:
        self.capturing(snapshot__max__threads="2", snapshot__max__threads__multiplier="3")
        self._step()

    @rule()
    def step(self) -> None:
        if self._may_plan():
            self._step()

    @precondition(lambda self: not self.busy)
    @rule(reads=st.booleans())
    def crash_before_commit(self, reads: bool) -> None:
        """The batch is planned, perhaps read, and planned again by the next process."""
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

    @precondition(lambda self: not self.busy)
    @rule()
    def lose_export(self) -> None:
        """The connection that holds the exported snapshot ends between two batches."""
        with self.database.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name LIKE %s",
                [f"%{self.capture.offset['pipeline']}% snapshot"],
            )
        self._step()

    def teardown(self) -> None:
        try:
            self.settle()
            for _ in range(200):
                if not self._step() and self.capture.offset["phase"] == "stream":
                    break
            self.agree()
        finally:
            self.close()

    def _may_plan(self) -> bool:
        """A snapshot is exported only once older transactions have ended, and these wait for us."""
        return not self.busy or self.capture.reader._planner._first._initial._export is not None or self._streams()

    def _streams(self) -> bool:
        return bool(self.capture.offset["phase"] == "stream")

    def _commit(self, start: Offset, end: Offset) -> None:
        splits = self.capture.reader.plan(start, end)
        places = [place for name in ("place", "undo") if (place := start.get("reading", {}).get(name))]
        unread = {table.rpartition(".")[2] for place in places for table in place["left"]}
        for change in rows(chunk for split in splits for chunk in self.capture.reader.read(split)):
            self.history.apply(change, unread)
        self.capture.offset = end


@pytest.mark.timeout(0)
def test_history_is_valid(database: Database) -> None:
    run(Resuming, database)
