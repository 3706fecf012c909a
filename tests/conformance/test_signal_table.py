"""Whatever is in the signal table, or keeps it from being read, the log goes on, and somebody is told once."""

from __future__ import annotations

import pytest

from tailrace.connectors.signal_source import MOST_ROWS
from tests.conformance.stepped import pipeline, row
from tests.conformance.subject import Insert, Source, Subject

NOT_READ = "no signal is read from the signal table"


def test_more_signals_than_are_read_never_stop_a_pipeline(
    subject: Subject, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    with pipeline(subject, source) as line:
        for number in range(MOST_ROWS + 1):
            source.signal(f"{number}", "log", "{}")
        source.commit(Insert(line.table, row(2)))
        assert line.steps() == [("c", 2)]
        assert line.steps() == []
        assert caplog.text.count("holds more than 1,000 signals") == 1
        source.clear_signals()
        line.ask("0")
        assert line.steps() == [("r", 1), ("r", 2)]


def test_a_pipeline_begins_with_more_signals_than_are_read(
    subject: Subject, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    source.clear_signals()
    for number in range(MOST_ROWS + 1):
        source.signal(f"{number}", "log", "{}")
    with pipeline(subject, source) as line:
        source.commit(Insert(line.table, row(2)))
        assert ("c", 2) in line.steps()
        assert caplog.text.count("holds more than 1,000 signals") == 1
        source.clear_signals()
        line.steps()
        line.ask("new")
        assert [each for each in line.steps() if each[0] == "r"] == [("r", 1), ("r", 2)]


@pytest.mark.parametrize("signals", ["nowhere", "data"])
def test_a_signal_table_that_is_none_never_stops_a_pipeline(
    subject: Subject, source: Source, caplog: pytest.LogCaptureFixture, signals: str
) -> None:
    """One that is missing, and one whose columns hold other data."""
    if signals == "data":
        source.create("data")
        source.commit(Insert("data", row(7)), Insert("data", row(8)))
    with pipeline(subject, source, signals) as line:
        source.commit(Insert(line.table, row(2)))
        assert ("c", 2) in line.steps()
        source.commit(Insert(line.table, row(3)))
        assert line.steps() == [("c", 3)]
        assert caplog.text.count(NOT_READ) <= 1


def test_an_id_is_used_again_once_its_row_is_gone(subject: Subject, source: Source) -> None:
    source.clear_signals()
    with pipeline(subject, source) as line:
        line.steps()
        for _ in range(2):
            line.ask("nightly")
            assert [each for each in line.steps() if each[0] == "r"] == [("r", 1)]
            source.clear_signals()
            assert line.steps() == []
