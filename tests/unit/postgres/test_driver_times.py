"""Dates, and times in arrays, as the reference engine's driver reads them. What is expected was recorded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.connectors.postgres.types.driver_times import as_read_from_arrays, date_as_read


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("time", "24:00:00", "00:00:00"),
        ("time", "12:34:56.789012", "12:34:56.789"),
        ("timetz", "12:34:56.789012+00", "12:34:56+00"),
        ("timestamp", "1582-10-15 00:00:00", "1582-10-15 00:00:00"),
        ("timestamp", "1582-10-10 12:00:00", "1582-10-20 12:00:00"),
        ("timestamp", "1000-06-01 01:02:03.456789", "1000-06-07 01:02:03.456789"),
        ("timestamp", "0001-01-01 00:00:00", "0001-12-30 00:00:00 BC"),
        ("timestamp", "0044-03-15 00:00:00 BC", "0044-03-13 00:00:00 BC"),
        ("timestamp", "infinity", "infinity"),
        ("timestamptz", "1582-10-10 12:00:00+00", "1582-10-20 12:00:00+00"),
        ("timestamptz", "1000-06-01 01:02:03+00", "1000-06-01 01:02:03+00"),
        ("timestamptz", "0044-03-15 00:00:00+00 BC", "0044-03-15 00:00:00+00"),
        ("date", "0044-03-15 BC", "0044-03-15 BC"),
    ],
)
def test_values(name: str, text: str, read: str) -> None:
    assert as_read_from_arrays(name, pa.array([None, text, text])).to_pylist() == [None, read, read]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0044-03-15 BC", "0044-03-15"),
        ("1582-10-04", "1582-10-04"),
        ("1582-10-05", "1582-10-15"),
        ("1582-10-10", "1582-10-20"),
        ("1582-10-14", "1582-10-24"),
        ("1582-10-15", "1582-10-15"),
        ("-infinity", "-infinity"),
    ],
)
def test_dates(text: str, read: str) -> None:
    assert date_as_read(pa.array([None, text])).to_pylist() == [None, read]
