"""Schemas of dates and times by mode and precision, up to the twelve digits that a database may have."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from tailrace.connectors.types import temporal
from tailrace.connectors.types.temporal import TimeForm
from tailrace.errors import DecodeError

DEBEZIUM, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."


def name(form: TimeForm) -> tuple[str, str | None]:
    return form.schema.type, form.schema.name


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("adaptive", ("int32", DEBEZIUM + "Date")),
        ("adaptive_time_microseconds", ("int32", DEBEZIUM + "Date")),
        ("microseconds", ("int32", DEBEZIUM + "Date")),
        ("nanoseconds", ("int32", DEBEZIUM + "Date")),
        ("connect", ("int32", CONNECT + "Date")),
        ("isostring", ("string", DEBEZIUM + "IsoDate")),
    ],
)
def test_dates(mode: str, shown: tuple[str, str]) -> None:
    assert name(temporal.date_form(mode)) == shown


@pytest.mark.parametrize(
    ("mode", "digits", "connect", "semantic", "unit"),
    [
        ("adaptive", 0, "int32", DEBEZIUM + "Time", "ms"),
        ("adaptive", 3, "int32", DEBEZIUM + "Time", "ms"),
        ("adaptive", 4, "int64", DEBEZIUM + "MicroTime", "us"),
        ("adaptive", 7, "int64", DEBEZIUM + "NanoTime", "ns"),
        ("adaptive_time_microseconds", 0, "int64", DEBEZIUM + "MicroTime", "us"),
        ("adaptive_time_microseconds", 7, "int64", DEBEZIUM + "MicroTime", "us"),
        ("connect", 7, "int32", CONNECT + "Time", "ms"),
        ("isostring", 7, "string", DEBEZIUM + "IsoTime", "iso"),
        ("microseconds", 7, "int64", DEBEZIUM + "MicroTime", "us"),
        ("nanoseconds", 0, "int64", DEBEZIUM + "NanoTime", "ns"),
    ],
)
def test_times(mode: str, digits: int, connect: str, semantic: str, unit: str) -> None:
    form = temporal.time_form(mode, digits)
    assert (*name(form), form.unit) == (connect, semantic, unit)


@pytest.mark.parametrize(
    ("mode", "digits", "connect", "semantic", "unit"),
    [
        ("adaptive", 3, "int64", DEBEZIUM + "Timestamp", "ms"),
        ("adaptive", 6, "int64", DEBEZIUM + "MicroTimestamp", "us"),
        ("adaptive", 7, "int64", DEBEZIUM + "NanoTimestamp", "ns"),
        ("adaptive", 12, "int64", DEBEZIUM + "NanoTimestamp", "ns"),
        ("adaptive_time_microseconds", 3, "int64", DEBEZIUM + "Timestamp", "ms"),
        ("adaptive_time_microseconds", 7, "int64", DEBEZIUM + "NanoTimestamp", "ns"),
        ("connect", 12, "int64", CONNECT + "Timestamp", "ms"),
        ("isostring", 7, "string", DEBEZIUM + "IsoTimestamp", "iso"),
        ("microseconds", 0, "int64", DEBEZIUM + "MicroTimestamp", "us"),
        ("nanoseconds", 0, "int64", DEBEZIUM + "NanoTimestamp", "ns"),
    ],
)
def test_timestamps(mode: str, digits: int, connect: str, semantic: str, unit: str) -> None:
    form = temporal.timestamp_form(mode, digits)
    assert (*name(form), form.unit) == (connect, semantic, unit)


@pytest.mark.parametrize(
    ("digits", "zero"),
    [(0, "1970-01-01T00:00:00Z"), (3, "1970-01-01T00:00:00.000Z"), (7, "1970-01-01T00:00:00.0000000Z")],
)
def test_zoned_timestamps_are_text(digits: int, zero: str) -> None:
    form = temporal.zoned_timestamp_form(digits)
    assert (*name(form), form.zero) == ("string", DEBEZIUM + "ZonedTimestamp", zero)


def test_nanoseconds_end_in_2262(caplog: pytest.LogCaptureFixture) -> None:
    micros = pa.array([1, None, -1, 2**63 // 1000 + 1, -(2**63)], pa.int64())
    with caplog.at_level(logging.WARNING):
        assert temporal.nanoseconds(micros, strict=False).to_pylist() == [1000, None, -1000, None, None]
    assert "2 timestamps outside 1677 to 2262" in caplog.text
    with pytest.raises(DecodeError, match="1677-09-21 to 2262-04-11"):
        temporal.nanoseconds(micros, strict=True)


def test_coarser_units_are_rounded_towards_the_past() -> None:
    assert temporal.coarser(pa.array([1999, -1, None, 0], pa.int64()), 1000).to_pylist() == [1, -1, None, 0]


@pytest.mark.parametrize(
    ("year", "days", "text"),
    [
        (1970, 0, "1970-01-01"),
        (-43, -735233, "-0043-01-01"),
        (0, -719528, "0000-01-01"),
        (10000, 2932897, "+10000-01-01"),
    ],
)
def test_days_of_any_year(year: int, days: int, text: str) -> None:
    assert temporal.epoch_day(year, 1, 1) == days
    assert temporal.iso_date(year, 1, 1) == text


def test_times_of_day_as_text() -> None:
    micros = pa.array([0, 36_000_000_000, 86_399_999_999, 500_000, None], pa.int64())
    shown = ["00:00:00", "10:00:00", "23:59:59.999999", "00:00:00.5", None]
    assert temporal.clock_text(micros).to_pylist() == shown
    assert temporal.clock(36_000_500_000) == ("10:00:00", 500_000)
