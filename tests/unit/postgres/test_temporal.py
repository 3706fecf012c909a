"""Dates, times and intervals in every mode, with values of the reference engine."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.errors import DecodeError
from tests.unit.postgres.test_values import kind, read

MODES = ("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
DEBEZIUM, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."


def in_mode(name: str, mode: str, modifier: int = -1) -> Any:
    return kind(name, modifier, {"time.precision.mode": mode})


DAYS = [17702, -141427, 0, -735160, 2932897, 6956, -2147472692, -2147472691]
ISO_DATES = ["2018-06-20Z", "1582-10-15Z", "1970-01-01Z", "-0043-03-15Z", "+10000-01-01Z", "1989-01-17Z"]
ISO_DATES += ["-5877611-06-21Z", "-5877611-06-22Z"]


@pytest.mark.parametrize(
    ("mode", "semantic", "values"),
    [
        ("adaptive", DEBEZIUM + "Date", DAYS),
        ("adaptive_time_microseconds", DEBEZIUM + "Date", DAYS),
        ("microseconds", DEBEZIUM + "Date", DAYS),
        ("nanoseconds", DEBEZIUM + "Date", DAYS),
        ("connect", CONNECT + "Date", DAYS),
        ("isostring", DEBEZIUM + "IsoDate", ISO_DATES),
    ],
)
def test_dates(mode: str, semantic: str, values: list[Any]) -> None:
    of = in_mode("date", mode)
    texts = ["2018-06-20", "1582-10-15", "1970-01-01", "0044-03-15 BC", "10000-01-01", "1989-01-17"]
    assert read(of, *texts, "infinity", "-infinity") == values
    assert of.schema.name == semantic


@pytest.mark.parametrize(
    ("mode", "modifier", "semantic", "values"),
    [
        ("adaptive", -1, DEBEZIUM + "MicroTime", [54796945104, 0, 86400000000]),
        ("adaptive", 3, DEBEZIUM + "Time", [54796945, 0, 86400000]),
        ("adaptive_time_microseconds", 3, DEBEZIUM + "MicroTime", [54796945104, 0, 86400000000]),
        ("connect", -1, CONNECT + "Time", [54796945, 0, 86400000]),
        ("isostring", -1, DEBEZIUM + "IsoTime", ["15:13:16.945104Z", "00:00:00Z", "00:00:00Z"]),
        ("microseconds", -1, DEBEZIUM + "MicroTime", [54796945104, 0, 86400000000]),
        ("nanoseconds", -1, DEBEZIUM + "NanoTime", [54796945104000, 0, 86400000000000]),
    ],
)
def test_times(mode: str, modifier: int, semantic: str, values: list[Any]) -> None:
    of = in_mode("time", mode, modifier)
    assert read(of, "15:13:16.945104", "00:00:00", "24:00:00") == values
    assert of.schema.name == semantic


INFINITE = [9223372036825200000, -9223372036832400000]


@pytest.mark.parametrize(
    ("mode", "modifier", "semantic", "divisor"),
    [
        ("adaptive", -1, "MicroTimestamp", 1),
        ("adaptive", 3, "Timestamp", 1000),
        ("adaptive_time_microseconds", 2, "Timestamp", 1000),
        ("connect", -1, None, 1000),
        ("microseconds", 3, "MicroTimestamp", 1),
    ],
)
def test_timestamps(mode: str, modifier: int, semantic: str | None, divisor: int) -> None:
    of = in_mode("timestamp", mode, modifier)
    texts = ["2016-11-04 13:51:30.123456", "1969-12-31 23:59:59.999999", "0001-01-01 00:00:00"]
    texts += ["0044-03-15 00:00:00 BC", "10000-01-01 00:00:00"]
    expected = [1478267490123456, -1, -62135596800000000, -735160 * 86400000000, 253402300800000000, *INFINITE]
    assert read(of, *texts, "infinity", "-infinity") == [value // divisor for value in expected]
    assert of.schema.name == (CONNECT + "Timestamp" if semantic is None else DEBEZIUM + semantic)


def test_timestamps_as_text() -> None:
    texts = {
        "2019-07-09 02:28:57.123456": "2019-07-09T02:28:57.123456Z",
        "2019-07-09 02:28:00": "2019-07-09T02:28:00Z",
        "0044-03-15 12:00:00 BC": "-0043-03-15T12:00:00Z",
        "0001-03-15 12:00:00.5 BC": "0000-03-15T12:00:00.5Z",
        "21016-11-04 06:51:30.123456": "+21016-11-04T06:51:30.123456Z",
        "infinity": "+294247-01-10T04:00:25.2Z",
        "-infinity": "-290308-12-21T19:59:27.6Z",
    }
    assert read(in_mode("timestamp", "isostring"), *texts) == list(texts.values())


def test_timestamps_in_nanoseconds() -> None:
    of = in_mode("timestamp", "nanoseconds")
    assert read(of, "2016-11-04 13:51:30.123456", "infinity", "-infinity") == [
        1478267490123456000,
        2**63 - 1,
        -(2**63),
    ]
    far = ["2262-04-12 00:00:00", "1677-09-20 00:00:00", "0044-03-15 12:00:00 BC", "2262-04-11 23:47:16.854775"]
    assert read(of, *far) == [None, None, None, 2**63 - 808]
    settings = {"time.precision.mode": "nanoseconds", "event.converting.failure.handling.mode": "fail"}
    with pytest.raises(DecodeError, match="2262-04-11"):
        read(kind("timestamp", -1, settings), *far)


@pytest.mark.parametrize("mode", MODES)
def test_timestamps_with_zone(mode: str) -> None:
    texts = {
        "2016-11-04 11:51:30.123456+00": "2016-11-04T11:51:30.123456Z",
        "2016-11-04 11:51:30+00": "2016-11-04T11:51:30.000000Z",
        "2016-11-04 11:51:30.05+00": "2016-11-04T11:51:30.050000Z",
        "2016-11-04 11:51:30.1+00": "2016-11-04T11:51:30.100000Z",
        "0044-03-15 12:00:00+00 BC": "-0043-03-15T12:00:00.000000Z",
        "21016-11-04 06:51:30.123456+00": "+21016-11-04T06:51:30.123456Z",
        "infinity": "infinity",
        "-infinity": "-infinity",
    }
    assert read(in_mode("timestamptz", mode), *texts) == list(texts.values())


@pytest.mark.parametrize(
    ("digits", "shown"), [(0, "2016-11-04T11:51:30Z"), (1, "2016-11-04T11:51:30.0Z"), (3, "2016-11-04T11:51:30.000Z")]
)
def test_the_declared_precision_shows_in_the_text(digits: int, shown: str) -> None:
    assert read(kind("timestamptz", digits), "2016-11-04 11:51:30+00") == [shown]


def test_times_with_zone() -> None:
    texts = {
        "13:51:30.123789+02": "11:51:30.123789Z",
        "15:13:16.945-05:30": "20:43:16.945Z",
        "00:00:00+00": "00:00:00Z",
        "00:30:00+01": "23:30:00Z",
        "23:59:59.999999-12": "11:59:59.999999Z",
        "24:00:00+00": "00:00:00Z",
        "10:00:00+15:59:59": "18:00:01Z",
        "10:10:10.1000+00": "10:10:10.1Z",
    }
    assert read(kind("timetz"), *texts) == list(texts.values())


@pytest.mark.parametrize(
    ("printed", "micros", "shown"),
    [
        ("P1Y2M3DT4H5M6.78S", 37091106780000, "P1Y2M3DT4H5M6.78S"),
        ("P1Y2M3DT4H5M6.789S", 37091106789000, "P1Y2M3DT4H5M6.789S"),
        ("P-1Y-2M3DT-4H-5M-6S", -36572706000000, "P-1Y-2M3DT-4H-5M-6S"),
        ("PT0S", 0, "P0Y0M0DT0H0M0S"),
        ("P-3D", -259200000000, "P0Y0M-3DT0H0M0S"),
        ("PT-0.5S", -500000, "P0Y0M0DT0H0M-0.5S"),
        ("PT2562047788H", 9223372036800000000, "P0Y0M0DT2562047788H0M0S"),
    ],
)
def test_intervals(printed: str, micros: int, shown: str) -> None:
    assert read(kind("interval"), printed) == [micros]
    assert read(kind("interval", -1, {"interval.handling.mode": "string"}), printed) == [shown]


def test_interval_arithmetic_is_the_reference_engines() -> None:
    """It multiplies doubles and cuts what is behind the point; a span beyond int64 is its largest value."""
    assert read(kind("interval"), "PT1.001S", "P178000000Y", "P-178000000Y") == [1000999, 2**63 - 1, -(2**63)]


def test_a_replica_has_intervals_to_the_microsecond() -> None:
    exact = kind("interval", -1, {"rows.for.replica": "true"})
    assert read(exact, "PT1.001S", "PT-1.235S", "P280Y1MT0.000001S") == [1001000, -1235000, 8838757800000001]
    assert read(exact, "PT256204778H0.123457S", "P178000000Y", "P-178000000Y") == [
        *(922337200800123457, 2**63 - 1, -(2**63)),
    ]


def test_infinite_intervals() -> None:
    texts, string = ("infinity", "PT1S", "-infinity"), {"interval.handling.mode": "string"}
    assert read(kind("interval"), *texts) == [2**63 - 1, 1_000_000, -(2**63)]
    assert read(kind("interval", -1, string), *texts) == ["infinity", "P0Y0M0DT0H0M1S", "-infinity"]


def test_timestamps_beyond_the_last_microsecond() -> None:
    text = "294276-12-31 23:59:59.999999"
    assert read(kind("timestamp"), text) == [2**63 - 1]
    assert read(kind("timestamp", 3), text) == [9224318015999999]
    assert read(in_mode("timestamp", "connect"), text) == [9224318015999999]
    assert read(in_mode("timestamp", "isostring"), text) == ["+294276-12-31T23:59:59.999999Z"]
    assert read(in_mode("timestamp", "nanoseconds"), text) == [None]
