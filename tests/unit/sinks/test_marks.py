"""Records in commits: read back among commits of other writers, and where those have cleaned a table's log."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tailrace.errors import SinkError
from tailrace.model.change import SnapshotRead
from tailrace.sinks.replica.delta.table import USER_METADATA, Delta
from tailrace.sinks.replica.folders import folder
from tailrace.sinks.replica.marks import Extent, LogPlace, Record, TableProgress, newest
from tailrace.sinks.replica.others import other_tables
from tailrace.sinks.replica.table import Mark

ROWS = pa.table({"id": [1]})
TABLE = "public.orders"


def commit(path: Path, mark: Mark) -> None:
    properties = CommitProperties(
        app_transactions=[Transaction(str(mark.app), mark.version)], custom_metadata={USER_METADATA: mark.text}
    )
    write_deltalake(path, ROWS, mode="append", commit_properties=properties)


def progress(path: Path, batch: int, *, repeats: bool | None = None, table: str = TABLE) -> TableProgress:
    there = DeltaTable.is_deltatable(str(path))
    return TableProgress(Delta(DeltaTable(path)) if there else None, "query", table, batch, repeats)


def log(number: int, before: LogPlace | None, upto: LogPlace) -> Extent:
    return Extent(number, before, upto)


def test_the_log_is_known_by_its_places(tmp_path: Path) -> None:
    extent = log(0, None, LogPlace(100, 2))
    assert not progress(tmp_path, 3).has(extent)
    commit(tmp_path, progress(tmp_path, 3).mark(extent))
    # Whatever the number of the micro-batch is.
    for batch in (0, 3, 9):
        assert progress(tmp_path, batch).has(extent)
        assert progress(tmp_path, batch).has(log(7, None, LogPlace(99, 50)))
        assert not progress(tmp_path, batch).has(log(0, extent.upto, LogPlace(100, 3)))
        assert not progress(tmp_path, batch).has(log(0, extent.upto, LogPlace(101, 1)))


def test_positions_may_be_texts(tmp_path: Path) -> None:
    commit(tmp_path, progress(tmp_path, 3).mark(log(0, None, LogPlace("00A1", 2))))
    assert progress(tmp_path, 3).place == LogPlace("00A1", 2)
    assert progress(tmp_path, 3).has(log(0, None, LogPlace("009F", 9)))


def test_deltas_own_mark_ascends(tmp_path: Path) -> None:
    """Delta for Spark leaves a commit out whose number does not."""
    versions = []
    for batch, place in ((5, 100), (6, 200), (2, 300), (3, 400)):
        mark = progress(tmp_path, batch).mark(log(0, None, LogPlace(place, 1)))
        commit(tmp_path, mark)
        versions.append(mark.version)
    assert versions == sorted(set(versions))


def test_readings_of_a_snapshot_are_known_by_their_ids(tmp_path: Path) -> None:
    first = Extent(0, read=SnapshotRead("r1", "s1", 500))
    assert progress(tmp_path, 0).begins(first)
    commit(tmp_path, progress(tmp_path, 0).mark(first))
    assert progress(tmp_path, 0).has(first)
    assert not progress(tmp_path, 0).has(Extent(1, read=SnapshotRead("r1", "s1", 500)))
    again = Extent(0, read=SnapshotRead("r2", "s1", 600))
    assert not progress(tmp_path, 0).has(again)
    assert not progress(tmp_path, 0).begins(again)
    assert progress(tmp_path, 0).begins(Extent(0, read=SnapshotRead("r2", "s2", 600)))
    assert progress(tmp_path, 0).has(log(0, None, LogPlace(499, 1))), "the snapshot shows it"
    assert not progress(tmp_path, 0).has(log(0, None, LogPlace(500, 1)))


def test_a_snapshot_may_lie_before_the_log_that_was_written(tmp_path: Path) -> None:
    """As on a server that was restored: what is read of its log from there on is new."""
    commit(tmp_path, progress(tmp_path, 0).mark(log(0, None, LogPlace(900, 1))))
    commit(tmp_path, progress(tmp_path, 1).mark(Extent(0, read=SnapshotRead("r1", "s1", 500))))
    assert not progress(tmp_path, 2).has(log(0, None, LogPlace(600, 1)))


def test_commits_of_others_are_passed_over(tmp_path: Path) -> None:
    commit(tmp_path, progress(tmp_path, 0).mark(log(0, None, LogPlace(100, 1))))
    for _ in range(20):
        write_deltalake(tmp_path, ROWS, mode="append")
    properties = CommitProperties(custom_metadata={USER_METADATA: '{"tailrace": "a user\'s own"}'})
    write_deltalake(tmp_path, ROWS, mode="append", commit_properties=properties)
    other = Mark("tailrace/other", 1, Record("other", TABLE, 1, LogPlace(999, 1)).to_text())
    commit(tmp_path, other)
    assert progress(tmp_path, 1).place == LogPlace(100, 1)
    assert newest(Delta(DeltaTable(tmp_path))) == Record("other", TABLE, 1, LogPlace(999, 1))


def test_two_tables_in_one_folder_are_refused(tmp_path: Path) -> None:
    commit(tmp_path, progress(tmp_path, 0).mark(log(0, None, LogPlace(100, 1))))
    with pytest.raises(SinkError, match=r"holds the replica of public\.orders"):
        progress(tmp_path, 1, table="public.Orders")


@pytest.fixture
def cleaned(tmp_path: Path) -> Path:
    """A table with the first part of micro-batch 5. Its checkpoint keeps Delta's own number, not what commits said."""
    commit(tmp_path, progress(tmp_path, 5).mark(log(0, None, LogPlace(100, 1))))
    write_deltalake(tmp_path, ROWS, mode="append")
    table = DeltaTable(tmp_path)
    table.create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    return tmp_path


@pytest.mark.parametrize("repeats", [True, None])
def test_a_table_whose_log_was_cleaned_is_known_by_numbers(cleaned: Path, repeats: bool | None) -> None:
    for number, written in ((0, True), (1, False)):
        assert progress(cleaned, 5, repeats=repeats).has(log(number, None, LogPlace(100, 1))) == written
    assert not progress(cleaned, 6, repeats=False).has(log(0, None, LogPlace(100, 1)))
    # From the next record on it is known by places.
    commit(cleaned, progress(cleaned, 6).mark(log(0, None, LogPlace(100, 1))))
    assert not progress(cleaned, 5, repeats=False).has(log(0, None, LogPlace(101, 1)))


@pytest.mark.parametrize("batch", [4, 5])
def test_a_checkpoint_before_a_table_whose_log_was_cleaned_is_refused(cleaned: Path, batch: int) -> None:
    said = r"micro-batch 5(.|\n)*no longer has the commit that says it(.|\n)*put the newest checkpoint back"
    with pytest.raises(SinkError, match=said):
        progress(cleaned, batch, repeats=False).has(log(0, None, LogPlace(100, 1)))


def test_other_tables_of_a_query_are_found_below_a_root(tmp_path: Path) -> None:
    assert other_tables(str(tmp_path / "none"), {}, "source", "query", []) == []
    for table in (TABLE, "public.left", "public.a!2Eb.c d/e"):
        folder_of = tmp_path / folder(table)
        commit(folder_of, progress(folder_of, 1, table=table).mark(log(0, None, LogPlace(1, 1))))
    write_deltalake(tmp_path / "public.foreign", ROWS)
    commit(tmp_path / "_aside" / "public.x", progress(tmp_path / "x", 1).mark(log(0, None, LogPlace(1, 1))))
    found = other_tables(str(tmp_path), {}, "source", "query", [TABLE])
    assert found == ["public.a!2Eb.c d/e", "public.left"]
    assert other_tables(str(tmp_path), {}, "source", "another query", [TABLE]) == []
