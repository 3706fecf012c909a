"""The timezone converter: each type of time, the hours that clocks skip or repeat, and what the lists choose."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tailrace.errors import ConfigError
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tests.unit.events.changes import changes
from tests.unit.transforms.transformed import properties, values

CONVERTER = "io.debezium.transforms.TimezoneConverter"
HOUR = 3600 * 1_000_000
NOON = 1_578_744_000_000_000  # 2020-01-11 12:00 UTC


def logical(kind: str, name: str, **more: Any) -> ConnectSchema:
    return ConnectSchema(kind, optional=True, name=f"io.debezium.time.{name}", version=1, **more)


TABLE = TableSchema(
    TableId("golden", "public", "times"),
    (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("us", logical("int64", "MicroTimestamp"), pa.int64()),
        Column("ms", logical("int64", "Timestamp", default=0), pa.int64()),
        Column("tz", logical("string", "ZonedTimestamp"), pa.string()),
        Column("day", logical("int32", "Date"), pa.int32()),
    ),
    ("id",),
    ("id",),
)


def after(settings: dict[str, str], **row: Any) -> dict[str, Any]:
    """The row of an insert after conversion."""
    made = changes(TABLE, {"op": "c", "after": {"id": 1, **row}})
    given = properties(CONVERTER, {"converted.timezone": "Europe/Paris", **settings})
    (value,) = values(made, given)
    found: dict[str, Any] = {**value["after"], "source": value["source"]}
    return found


@pytest.mark.parametrize(
    ("local", "offset"),
    [
        (NOON, 1),
        (1_594_468_800_000_000, 2),  # 2020-07-11 12:00
        (1_585_449_000_000_000, 1),  # 2020-03-29 02:30, which no clock showed
        (1_603_593_000_000_000, 2),  # 2020-10-25 02:30, which clocks showed twice
        (253_402_300_800_000_000 + NOON, 1),  # beyond the year 9999
    ],
)
def test_a_time_without_a_zone_is_taken_to_be_of_the_zone(local: int, offset: int) -> None:
    assert after({}, us=local)["us"] == local - offset * HOUR


@pytest.mark.parametrize(
    ("column", "infinite"),
    [("us", 9223372036825200000), ("us", -9223372036832400000), ("ms", -9223372036832400)],
)
def test_infinite_times_stay(column: str, infinite: int) -> None:
    given: dict[str, Any] = {column: infinite}
    assert after({}, **given)[column] == infinite


@pytest.mark.parametrize(
    ("zone", "text", "expected"),
    [
        ("Europe/Paris", "2020-01-11T16:40:30.120000Z", "2020-01-11T17:40:30.12+01:00"),
        ("Europe/Paris", "2020-12-31T23:30:00Z", "2021-01-01T00:30:00+01:00"),
        ("UTC", "2020-01-11T16:40:30.000000Z", "2020-01-11T16:40:30Z"),
        ("+05:30", "2020-01-11T16:40:30Z", "2020-01-11T22:10:30+05:30"),
        ("-03:00", "+12020-01-01T01:00:00Z", "+12019-12-31T22:00:00-03:00"),
        ("Europe/Paris", "infinity", "infinity"),
    ],
)
def test_a_zoned_time_keeps_its_instant(zone: str, text: str, expected: str) -> None:
    assert after({"converted.timezone": zone}, tz=text)["tz"] == expected


def test_null_stays_null_unless_its_column_has_a_default() -> None:
    found = after({}, us=None, ms=None, tz=None, day=3)
    assert found | {"source": 0} == {"id": 1, "us": None, "ms": -3600_000, "tz": None, "day": 3, "source": 0}


@pytest.mark.parametrize(
    ("settings", "moved"),
    [
        ({"include.list": "source:times:us"}, {"us"}),
        ({"include.list": "source:times"}, {"us", "ms"}),
        ({"include.list": "times:after.ms"}, {"ms"}),
        ({"include.list": "topic:server1.public.times:us"}, {"us"}),
        ({"include.list": "source:other"}, set()),
        ({"exclude.list": "source:times:us"}, {"ms"}),
        ({"exclude.list": "source:times"}, set()),
        ({"exclude.list": "other"}, None),
        ({"exclude.list": "source:other"}, {"us", "ms"}),
    ],
)
def test_lists_choose_tables_topics_and_fields(settings: dict[str, str], moved: set[str] | None) -> None:
    if moved is None:
        with pytest.raises(ConfigError, match="Invalid exclude list format"):
            after(settings)
        return
    found = after(settings, us=NOON, ms=NOON // 1000)
    assert {name for name, was in (("us", NOON), ("ms", NOON // 1000)) if found[name] != was} == moved


def test_times_of_the_source_move_where_they_are_named() -> None:
    before, moved = after({}), after({"include.list": "source:times:source.ts_ms"})
    assert moved["source"]["ts_ms"] - before["source"]["ts_ms"] == 3600_000
    assert moved["source"]["ts_us"] == before["source"]["ts_us"]


def test_a_wrong_zone_or_list_is_named() -> None:
    for settings, words in (
        ({"converted.timezone": "Mars/Olympus"}, "Invalid timezone format"),
        ({"include.list": "source:a", "exclude.list": "source:b"}, "Please specify only one"),
    ):
        with pytest.raises(ConfigError, match=words):
            after(settings)
