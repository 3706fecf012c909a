"""What a replica's Iceberg table holds as Iceberg's own Java code reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column
from tailrace.sinks.replica.form import FormatVersion
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.table import Mark
from tailrace.sinks.replica.upkeep import Upkeep
from tests.servers.iceberg_java import JavaReader, java_reader, why_not_here
from tests.unit.sinks.iceberg.lake import BAG, NAME, ORDERS, Change, Lake, Row, order

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("newer_metadata")]
versions = pytest.mark.parametrize("version", [2, 3])
VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "flag": (pa.bool_(), True),
    "small": (pa.int32(), -(2**31)),
    "large": (pa.int64(), 2**63 - 1),
    "ratio": (pa.float64(), 1.5),
    "price": (pa.decimal128(38, 4), Decimal("-12345678901234567890.1234")),
    "day": (pa.date32(), date(1582, 10, 4)),
    "at": (pa.timestamp("us"), datetime(1, 1, 1, 0, 0, 0, 1)),
    "seen": (pa.timestamp("us", "UTC"), datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=timezone.utc)),
    "text": (pa.string(), "Grüße ✓ \U0001f600"),
    "bytes": (pa.binary(), b"\x00\xff"),
    "tags": (pa.list_(pa.string()), ["a", None, ""]),
    "spot": (pa.struct([("x", pa.float64()), ("name", pa.string())]), {"x": 0.5, "name": None}),
}


@pytest.fixture(scope="module")
def reader() -> Iterator[JavaReader]:
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with java_reader() as made:
        yield made


def by_java(reader: JavaReader, lake: Lake) -> list[Row]:
    return sorted(reader.rows(lake.table.metadata_location), key=repr)


def test_every_type_is_read(tmp_path: Path, reader: JavaReader) -> None:
    options = Lake(tmp_path).options
    rows = pa.table({name: pa.array([value, None], kind) for name, (kind, value) in VALUES.items()})
    lake_at("iceberg://lake", options).create(NAME, rows, Mark("query", 1, "{}"), None)
    there = Lake(tmp_path).table
    found = reader.rows(there.metadata_location)
    assert found == [{name: value for name, (_, value) in VALUES.items()}, dict.fromkeys(VALUES)]


@versions
def test_deletes_renames_and_new_columns_are_read(tmp_path: Path, reader: JavaReader, version: FormatVersion) -> None:
    lake = Lake(tmp_path, version)
    lake.write(*(("c", None, order(number)) for number in range(6)))
    lake.write(("u", None, order(1, "new")), ("d", order(2), None), ("u", order(3), order(30, "moved")))
    assert by_java(reader, lake) == sorted(lake.rows(), key=repr)
    lake.alter(("note", "remark"))
    more = (
        replace(ORDERS.columns[0], arrow=pa.int64()),
        replace(ORDERS.columns[1], name="remark"),
        Column("more", ConnectSchema("string", True), pa.string()),
    )
    lake.write(
        ("u", None, {"id": 30, "remark": "again", "more": "x"}),
        ("d", {"id": 0, "remark": None, "more": None}, None),
        schema=replace(ORDERS, columns=more),
    )
    assert len(by_java(reader, lake)) == 4
    assert by_java(reader, lake) == sorted(lake.rows(), key=repr)


@pytest.mark.parametrize("table", [ORDERS, BAG], ids=["key", "bag"])
@versions
def test_random_changes_and_maintenance_are_read(
    tmp_path: Path, reader: JavaReader, table: Any, version: FormatVersion
) -> None:
    lake, draw = Lake(tmp_path, version), Random(1)
    lake.write(*(("c", None, order(number)) for number in range(50)), schema=table)
    for number in range(40):
        rows = {row["id"]: row for row in lake.rows()}
        changes: list[Change] = []
        for key in draw.sample(range(60), 8):
            if key not in rows:
                changes.append(("c", None, order(key, f"new {number}")))
            elif draw.random() < 0.4:
                changes.append(("d", rows[key], None))
            else:
                changes.append(("u", rows[key], order(key, f"changed {number}")))
        lake.write(*changes, schema=table)
        if number % 13 == 0:
            assert by_java(reader, lake) == sorted(lake.rows(), key=repr)
    assert Upkeep(1).after(lake.batch(0).target(NAME), "query", 0) is None
    assert by_java(reader, lake) == sorted(lake.rows(), key=repr)
