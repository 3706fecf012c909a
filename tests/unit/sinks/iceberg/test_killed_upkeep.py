"""A process that dies anywhere while it maintains an Iceberg table: no row is lost, and the next one finishes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.sinks.replica.form import FormatVersion
from tailrace.sinks.replica.table import Maintenance, Mark
from tests.unit.sinks.deaths import Killed, killed_at
from tests.unit.sinks.iceberg.lake import NAME, Change, Lake, Row, order
from tests.unit.sinks.iceberg.test_upkeep import older

MARK = Mark(None, -1, "{}")


def maintenance_of(lake: Lake) -> Maintenance:
    there = lake.batch(1).target(NAME).open()
    assert there is not None
    return there.maintenance()


def crowded(folder: Path, version: FormatVersion) -> tuple[Lake, list[Row]]:
    """A table of small files and deletes, the older ones of hours ago; with its rows."""
    lake = Lake(folder, version)
    lake.write(*(("c", None, order(number)) for number in range(8)))
    for number in range(5):
        changes: list[Change] = [("u", None, order(1, str(number))), ("c", None, order(number + 10))]
        lake.write(*changes, ("d", order(number + 2), None))
        if number == 2:
            older(folder, 3)
    return lake, lake.rows()


@contextmanager
def hours_later(monkeypatch: pytest.MonkeyPatch, hours: float) -> Iterator[None]:
    now = time.time
    with monkeypatch.context() as patch:
        patch.setattr("tailrace.sinks.replica.iceberg.maintenance.time.time", lambda: now() + hours * 3600)
        yield


@pytest.mark.long  # some 60 deaths, half a minute of CPU
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("newer_metadata")
@pytest.mark.parametrize("version", [2, 3])
def test_death_anywhere_in_maintenance_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: FormatVersion
) -> None:
    at, is_done = 0, False
    while not is_done:
        at += 1
        lake, rows = crowded(tmp_path / str(at), version)
        with killed_at(at) as clock:
            try:
                maintenance_of(lake).join(32 << 20, MARK)
                with hours_later(monkeypatch, 2.5):
                    maintenance_of(lake).remove(MARK)
                is_done = True
            except Killed:
                pass
        assert lake.read() == [rows] * 3, at
        lake.write(("u", None, order(1, "last")), ("d", order(10), None), ("c", None, order(20)))
        assert lake.write(("u", None, order(1, "last")), again=True) == 0, at
        wanted = [row if row["id"] != 1 else order(1, "last") for row in rows if row["id"] != 10]
        wanted.append(order(20))
        assert lake.read() == [wanted] * 3, at
        maintenance_of(lake).join(32 << 20, MARK)
        older(lake.folder, 6)
        with hours_later(monkeypatch, 6):
            maintenance_of(lake).remove(MARK)
        assert lake.read() == [wanted] * 3, at
        on_disk = {str(file) for file in (lake.folder / "lake").rglob("data/*")}
        assert on_disk == {*maintenance_of(lake).live}, f"{at}: files of the killed one stay"
    assert clock.steps > 30
