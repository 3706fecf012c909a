"""A signal table that cannot be read is told once, and its rows are carried out once, whatever happens to it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.signal_source import NotSignals
from tailrace.connectors.snapshot_ports import Failures, OnDemandSnapshots
from tailrace.errors import SourceError
from tailrace.snapshot.table_signals import TableSignals

NOT_READ = "no signal is read from the signal table"


class Lost(Exception):
    """A connection's end."""


class LosingFailures(Failures):
    driver_error = Lost

    def is_lost(self, error: BaseException) -> bool:
        return isinstance(error, Lost)


class Server:
    """A database whose signal table has `rows`, or `error`."""

    failures = LosingFailures()

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.error: Exception | None = None

    def new_signals(self, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        if self.error is not None:
            raise self.error
        marks = tuple((id_, "said") for id_ in self.rows)
        return [
            Signal(id_, "log", "{}") for id_, mark in zip(self.rows, marks, strict=True) if mark not in handled
        ], marks


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def table(server: Server) -> TableSignals:
    return TableSignals(cast("OnDemandSnapshots", cast("Any", server)))


@pytest.mark.parametrize(
    "error", [SourceError("may not be read"), ValueError("odd"), RecursionError(), NotSignals("two")]
)
def test_an_unreadable_table_is_told_once_until_it_changes(
    server: Server, table: TableSignals, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    handled = (("a", "said"),)
    server.error = error
    assert [table.new(handled) for _ in range(3)] == [([], handled)] * 3
    assert caplog.text.count(NOT_READ) == 1
    server.error, server.rows = None, ["a", "b"]
    (found,), marks = table.new(handled)
    assert (found.id, marks) == ("b", (("a", "said"), ("b", "said")))
    server.error = error
    table.new(marks)
    assert caplog.text.count(NOT_READ) == 2


def test_a_lost_connection_is_not_the_tables_fault(server: Server, table: TableSignals) -> None:
    server.error = Lost()
    with pytest.raises(Lost):
        table.new(())


def test_rows_that_are_there_at_the_first_read_are_not_carried_out(server: Server, table: TableSignals) -> None:
    server.rows = ["a"]
    assert table.at_first() == (("a", "said"),)


def test_what_a_pipeline_began_with_stays_unknown_until_the_table_can_be_read(
    server: Server, table: TableSignals
) -> None:
    server.error = SourceError("more than 1,000")
    assert table.at_first() is None
    assert table.new(None) == ([], None)
    server.error, server.rows = None, ["a"]
    assert table.new(None) == ([], (("a", "said"),))


def test_a_table_that_is_made_later_has_new_signals_alone(server: Server, table: TableSignals) -> None:
    server.error = NotSignals("missing")
    assert table.at_first() == ()


def test_an_id_is_new_again_once_its_row_was_gone(server: Server, table: TableSignals) -> None:
    handled = (("a", "said"), ("b", "said"))
    server.rows = ["b"]
    assert table.new(handled)[0] == []
    server.rows = ["b", "a"]
    assert [signal.id for signal in table.new(handled)[0]] == ["a"]
