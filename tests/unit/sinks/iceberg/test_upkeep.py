"""The upkeep of Iceberg tables: small files are joined, old snapshots and what they alone have are removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tailrace.sinks.replica.iceberg.index import Index
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.table import Mark
from tailrace.sinks.replica.upkeep import Upkeep
from tests.unit.sinks.iceberg.lake import NAME, Lake, order


def test_small_files_and_deletes_are_joined(lake: Lake) -> None:
    for number in range(17):
        lake.write(
            ("u", None, order(1, str(number))), ("d", order(number + 10, None), None), ("c", None, order(number + 11))
        )
    before = lake.rows()
    there = lake_at("iceberg://lake", lake.options).open(NAME)
    assert there is not None
    assert len(there.maintenance().live) > 33
    there.maintenance().join(32 << 20, Mark(None, -1, "{}"))
    assert len(there.maintenance().live) == 1
    assert lake.read() == [before] * 3
    assert Index.stored(lake.table) is not None, "it knows where the rows are now"
    lake.write(("u", None, order(1, "last")), ("d", order(2, None), None))
    assert lake.read() == [[order(1, "last"), *before[2:]]] * 3
    assert lake.write(("u", None, order(1, "last")), again=True) == 0


def test_deletes_of_files_that_stay_are_joined_to_one_file(lake: Lake) -> None:
    lake.write(("d", order(1, None), None))
    lake.write(("d", order(2, None), None), ("c", None, order(7)))
    there = lake_at("iceberg://lake", lake.options).open(NAME)
    assert there is not None
    # Nothing is small for files of some bytes, and of the first one 40 % are deleted.
    there.maintenance().join(10, Mark(None, -1, "{}"))
    assert lake.read() == [[order(3), order(4), order(5), order(7)]] * 3
    lake.write(("d", order(3, None), None))
    assert lake.read() == [[order(4), order(5), order(7)]] * 3


def older(folder: Path, hours: float) -> None:
    """Make all files older than they are."""
    for file in folder.rglob("*"):
        then = file.stat().st_mtime - hours * 3600
        os.utime(file, (then, then))


def test_old_snapshots_and_what_they_alone_have_are_removed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(120)
    for number in range(6):
        lake.write(("u", None, order(1, str(number))))
    data = next(lake.folder.rglob("data"))
    (data / "of-a-killed-task.parquet").write_bytes(b"x")
    files = len(list(data.iterdir()))
    target = lake.batch(1).target(NAME)
    assert upkeep.after(target, "query", 1) is None
    assert len(list(data.iterdir())) == files, "nothing is old enough"
    older(lake.folder, 3)
    now = time.time
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance.time.time", lambda: now() + 3 * 3600)
    there = target.open()
    assert there is not None
    there.maintenance().remove(Mark(None, -1, "{}"))
    monkeypatch.undo()
    assert len(lake.table.metadata.snapshots) == 1
    live = {Path(name).name for name in there.maintenance().live}
    assert {file.name for file in data.iterdir()} == live
    assert lake.read() == [[order(1, "5"), *(order(id_) for id_ in range(2, 6))]] * 3
    assert lake.write(("u", None, order(1, "5")), again=True) == 0, "the mark stays"


def test_a_snapshot_with_a_name_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lake.table.current_snapshot()
    assert first is not None
    lake.table.manage_snapshots().create_tag(first.snapshot_id, "audit").commit()
    lake.write(("u", None, order(1, "new")))
    lake.write(("u", None, order(1, "newer")))
    older(lake.folder, 3)
    now = time.time
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance.time.time", lambda: now() + 3 * 3600)
    there = lake.batch(1).target(NAME).open()
    assert there is not None
    there.maintenance().remove(Mark(None, -1, "{}"))
    monkeypatch.undo()
    assert len(lake.table.metadata.snapshots) == 2
    assert lake.table.scan(snapshot_id=first.snapshot_id).to_arrow().num_rows == 5


def test_the_list_of_snapshots_is_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance._MOST_SNAPSHOTS", 5)
    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance._SPARE", 2)
    for number in range(20):
        lake.write(("u", None, order(1, str(number))))
        there = lake.batch(1).target(NAME).open()
        assert there is not None
        assert Upkeep(120).after(lake.batch(1).target(NAME), "query", there.version) is None
    assert len(lake.table.metadata.snapshots) <= 8


def test_a_table_without_the_columns_of_its_index_is_maintained(lake: Lake) -> None:
    lake.write(("u", None, order(1, "new")))
    lake.alter(dropped=["id"])
    there = lake_at("iceberg://lake", lake.options).open(NAME)
    assert there is not None
    there.maintenance().join(32 << 20, Mark(None, -1, "{}"))
    assert sorted(row["note"] for row in lake.rows()) == ["n", "n", "n", "n", "new"]


def test_whatever_fails_in_maintenance_is_told_and_stops_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise KeyError("of a library")

    monkeypatch.setattr("tailrace.sinks.replica.iceberg.maintenance.Files.small", fails)
    assert "of a library" in str(Upkeep(120).after(lake.batch(1).target(NAME), "query", -100))
