"""A signal table of any database: its limit, marks of its rows, and rows of windows that are written again."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.config import Config
from tailrace.connectors import registry
from tailrace.connectors.signal import CLOSE, OPEN, Signal
from tailrace.connectors.signal_source import MOST_ROWS, SignalSource, SignalTable, Stored
from tailrace.connectors.snapshot_ports import Failures
from tailrace.errors import SourceError


class Refused(Exception):
    """What the driver raises."""


class Refusals(Failures):
    driver_error = Refused

    def is_lost(self, error: BaseException) -> bool:
        return str(error) == "lost"


class Table(SignalTable):
    """Rows in memory; writing fails as often as `refuses` says."""

    name = "db.signals"

    def __init__(self) -> None:
        self.rows: list[Stored] = []
        self.written: list[tuple[str, str]] = []
        self.refuses: list[str] = []

    def read(self, connection: Any, limit: int) -> list[Stored]:
        self._refuse()
        return self.rows[:limit]

    def insert(self, connection: Any, id_: str, kind: str, data: str) -> None:
        self._refuse()
        self.written.append((kind, id_))

    def delete(self, connection: Any, id_: str) -> None:
        self._refuse()
        self.written.append(("gone", id_))

    def _refuse(self) -> None:
        if self.refuses:
            raise Refused(self.refuses.pop())


def config(**more: str) -> Config:
    given = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
    names = {name.replace("__", "."): value for name, value in more.items()}
    return registry.named("postgres").load().resolve({**given, **names})


def source(table: Table, **more: str) -> SignalSource:
    return SignalSource(config(**more), Refusals(), {"db": table})


def test_a_row_that_says_something_else_is_another_signal() -> None:
    table = Table()
    table.rows = [(Signal("a", "log", "{}"), None)]
    found, marks = source(table).new(None, ())
    assert [each.id for each in found] == ["a"]
    assert source(table).new(None, marks) == ([], marks)
    table.rows = [(Signal("a", "log", '{"message": "m"}'), None)]
    assert [each.id for each in source(table).new(None, marks)[0]] == ["a"]


def test_a_version_of_a_row_tells_more_than_what_it_says() -> None:
    table = Table()
    table.rows = [(Signal("a", "log", "{}"), "7")]
    assert source(table).new(None, (("a", "6"),))[0] == [table.rows[0][0]]
    assert source(table).new(None, (("a", "7"),))[0] == []


def test_a_mark_is_short_whatever_an_id_is() -> None:
    table = Table()
    table.rows = [(Signal("i\ud800" * 10_000, "log", "x" * 100_000), None)]
    (mark,) = source(table).new(None, ())[1]
    assert len(str(mark)) < 200


def test_too_many_rows_are_an_error_with_its_remedy() -> None:
    table = Table()
    table.rows = [(Signal(str(number), "log", "{}"), None) for number in range(MOST_ROWS + 1)]
    with pytest.raises(SourceError, match=r"holds more than 1,000 signals\n  Remedy: DELETE"):
        source(table).new(None, ())


def test_what_the_server_refuses_is_an_error_that_nobody_tries_again_for() -> None:
    table = Table()
    table.refuses = ["no right"]
    with pytest.raises(SourceError, match="cannot be read: no right") as raised:
        source(table).new(None, ())
    assert raised.value.__cause__ is None
    table.refuses = ["lost"]
    with pytest.raises(Refused):
        source(table).new(None, ())


def test_no_table_is_read_unless_it_is_a_channel() -> None:
    table = Table()
    table.refuses = ["no right"]
    assert source(table, signal__enabled__channels="file", signal__file="f").new(None, ()) == ([], ())


@pytest.mark.parametrize("strategy", ["insert_insert", "insert_delete"])
def test_a_window_that_cannot_be_written_is_tried_again(strategy: str) -> None:
    given = {"signal__emit__failure__max__retries": "2", "signal__emit__failure__backoff__ms": "0"}
    table = Table()
    signals = source(table, incremental__snapshot__watermarking__strategy=strategy, **given)
    table.refuses = ["not now", "not now"]
    opened = signals.open_window(None, "db")
    table.refuses = ["not now", "not now"]
    signals.close_window(None, opened)
    ends = [(CLOSE, "-close")] if strategy == "insert_insert" else [("gone", "-open")]
    assert [(kind, id_[36:]) for kind, id_ in table.written] == [(OPEN, "-open"), *ends]


@pytest.mark.parametrize(("refuses", "retries"), [(["no", "no", "no"], "2"), (["lost"], "2"), (["no"], "0")])
def test_a_window_is_given_up_after_the_last_try_and_with_a_lost_connection(refuses: list[str], retries: str) -> None:
    given = {"signal__emit__failure__max__retries": retries, "signal__emit__failure__backoff__ms": "0"}
    table = Table()
    table.refuses = list(refuses)
    with pytest.raises(Refused):
        source(table, **given).open_window(None, "db")
    assert table.refuses == []


def test_read_only_writes_no_window() -> None:
    table = Table()
    signals = source(table, read__only="true")
    signals.close_window(None, signals.open_window(None, "db"))
    assert table.written == []
