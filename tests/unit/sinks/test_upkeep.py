"""Maintenance of a replica's table: what is joined, what is removed and when, and what stays readable."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tailrace.sinks.replica import retention
from tailrace.sinks.replica.delta.maintenance import Files, properties
from tailrace.sinks.replica.delta.table import USER_METADATA, Delta
from tailrace.sinks.replica.marks import Extent, LogPlace, TableProgress
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.upkeep import Upkeep

UPKEEP = Upkeep(120)
HOUR_S = 3600


class Replica:
    """A table written by a query, whose commits and files can be made older."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "public.orders"
        self.place = Target(str(folder), "public.orders")
        self.commits = 0

    def write(self, mode: Any = "overwrite", size: int = 0, **more: Any) -> int:
        """A commit with so many bytes; the version it makes."""
        target = self.place.open()
        self.commits += 1
        extent = Extent(0, None, LogPlace(self.commits, 1))
        mark = TableProgress(target, "query", "public.orders", self.commits).mark(extent)
        properties = CommitProperties(
            app_transactions=[Transaction(str(mark.app), mark.version)], custom_metadata={USER_METADATA: mark.text}
        )
        rows = pa.table({"id": [self.commits], **({"load": [os.urandom(size)]} if size else {})})
        write_deltalake(str(self.path), rows, mode=mode, commit_properties=properties, **more)
        return self.table.version()

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.path)

    def age(self, hours: float) -> None:
        """Make all commits and files older than they are."""
        for log in (self.path / "_delta_log").glob("*.json"):
            lines = [_older(line, int(hours * HOUR_S * 1000)) for line in log.read_text().splitlines()]
            log.write_text("\n".join(lines) + "\n")
        for file in self.path.rglob("*"):
            then = file.stat().st_mtime - hours * HOUR_S
            os.utime(file, (then, then))

    def keep(self, first: int) -> None:
        assert UPKEEP.after(self.place, "query", first) is None

    @property
    def place_in_log(self) -> LogPlace | None:
        return TableProgress(Delta(self.table), "query", "public.orders", 99).place

    def files(self) -> set[Path]:
        return set(self.path.glob("*.parquet"))


def _older(line: str, milliseconds: int) -> str:
    import json

    node = json.loads(line)
    for action, name in (("commitInfo", "timestamp"), ("remove", "deletionTimestamp"), ("add", "modificationTime")):
        if action in node:
            node[action][name] -= milliseconds
    return json.dumps(node)


@pytest.fixture
def replica(tmp_path: Path) -> Replica:
    return Replica(tmp_path)


def test_files_are_removed_when_they_are_unneeded_for_long(replica: Replica) -> None:
    replica.write(), replica.write()
    replica.age(3)
    replaced = replica.files()
    assert len(replaced) == 2
    kept = replica.write()
    replica.keep(kept)
    # The first was replaced three hours ago, the second just now.
    assert len(replica.files()) == 2
    assert DeltaTable(replica.path, version=1).to_pyarrow_table().num_rows == 1
    assert replica.place_in_log == LogPlace(3, 1)
    assert replica.table.transaction_version("tailrace/query") is not None


def test_an_old_file_that_was_replaced_lately_stays(replica: Replica) -> None:
    """Its age is no sign: somebody may read the version it belongs to."""
    replica.write()
    replica.age(1000)
    before = replica.table
    replica.keep(replica.write())
    assert before.scan().read_all().num_rows == 1
    replica.age(1)
    replica.keep(replica.write())
    assert before.scan().read_all().num_rows == 1
    replica.age(2)
    replica.keep(replica.write())
    assert len(replica.files()) == 2, "the newest version's and the one before"


def test_nothing_is_done_between_two_marks_of_the_clock(replica: Replica) -> None:
    replica.write()
    replica.age(1000)
    replica.write()
    for _ in range(3):
        first = replica.write()
        replica.keep(first)
    assert len(replica.files()) == 5


@pytest.mark.slow
def test_without_a_retention_the_disk_space_decides(replica: Replica) -> None:
    """Twenty seconds a commit, each of which replaces all rows."""
    for number in range(15):
        replica.age(20 / HOUR_S)
        before = replica.place.open()
        first = replica.write(size=200_000)
        assert Upkeep().after(replica.place, "query", first) is None
        assert number == 0 or (before is not None and before.scan().read_all().num_rows == 1), "readers have some time"
        assert len(replica.files()) <= 5, "what was replaced takes at most three times what is live, before the next"
    assert replica.table.metadata().configuration["delta.deletedFileRetentionDuration"] != "interval 7200 seconds"
    for _ in range(12):
        replica.age(600 / HOUR_S)
        assert Upkeep().after(replica.place, "query", replica.write(size=200_000)) is None
    assert (Delta(replica.table).maintenance().kept_seconds or 0) >= 300, "it is longer when less is written"


def test_small_tables_keep_versions_for_two_hours(replica: Replica) -> None:
    for _ in range(20):
        replica.age(20 / HOUR_S)
        assert Upkeep().after(replica.place, "query", replica.write()) is None
    assert len(replica.files()) == 20


def test_large_tables_keep_versions_for_as_long_as_a_query_of_them_takes() -> None:
    large = retention.Space(10_000_000_000, {f"old{number}": 9_000_000_000 for number in range(9)})
    assert large.is_over()
    assert large.shorter(2560) == 1280
    assert large.shorter(1280) is None
    assert retention.Space(1000, {"old": 70_000}).is_over()
    assert not retention.Space(1000, {"old": 60_000}).is_over()


def test_what_a_killed_writer_left_is_removed(replica: Replica) -> None:
    replica.write()
    replica.age(3)
    (replica.path / "part-of-a-killed-task.parquet").write_bytes(b"x")
    (replica.path / "old-part-of-a-killed-task.parquet").write_bytes(b"x")
    os.utime(replica.path / "old-part-of-a-killed-task.parquet", (time.time() - 3 * HOUR_S,) * 2)
    replica.keep(replica.write())
    assert {file.name for file in replica.files() if "killed" in file.name} == {"part-of-a-killed-task.parquet"}


@pytest.mark.slow
def test_small_files_are_joined_and_the_record_stays(replica: Replica) -> None:
    for _ in range(50):
        first = replica.write("append")
        replica.keep(first)
    assert len(replica.table.file_uris()) < 33
    assert sorted(replica.table.to_pyarrow_table().column("id").to_pylist()) == list(range(1, 51))
    assert replica.place_in_log == LogPlace(50, 1)


def test_a_process_thought_dead_repeats_no_older_record(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commit joins files on top of a newer micro-batch, which another process has written meanwhile."""
    replica.write("append"), replica.write("append")
    old = replica.place.open()
    assert old is not None

    def meanwhile(files: Files) -> dict[str, int]:
        replica.write("append")
        return {str(number): 1 for number in range(99)}

    monkeypatch.setattr(Files, "live", property(meanwhile))
    UPKEEP._after(old, "query", 0)
    assert replica.table.history(1)[0]["operation"] == "OPTIMIZE"
    assert replica.place_in_log == LogPlace(3, 1)


def test_a_table_of_an_older_release_gets_the_retention(replica: Replica) -> None:
    replica.write()
    assert replica.table.metadata().configuration == {}
    replica.age(3)
    replica.keep(replica.write())
    assert replica.table.metadata().configuration == properties(UPKEEP.kept_seconds)
    assert replica.place_in_log == LogPlace(2, 1)
    replica.age(3)
    version = replica.write()
    replica.keep(version)
    assert replica.table.version() <= version + 2, "the properties are not written again"


@pytest.mark.long
def test_the_log_is_cleaned_and_the_record_stays(replica: Replica) -> None:
    replica.write(configuration=properties(UPKEEP.kept_seconds))
    for _ in range(98):
        replica.write("append")
    replica.age(3)
    for _ in range(102):
        replica.keep(replica.write("append"))
    assert len([*(replica.path / "_delta_log").glob("*.json")]) < 120
    assert replica.place_in_log == LogPlace(201, 1)
    assert replica.table.to_pyarrow_table().num_rows == 201


def test_a_failure_of_maintenance_is_logged(replica: Replica) -> None:
    replica.write()
    replica.age(3)
    first = replica.write()
    for log in (replica.path / "_delta_log").glob("*.json"):
        log.write_text("{")
    told = UPKEEP.after(replica.place, "query", first)
    assert told is not None
    assert "public.orders" in told
