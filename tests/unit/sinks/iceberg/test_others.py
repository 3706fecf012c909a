"""An Iceberg table that other programs have written too: its rows are counted right, and what they did is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.manifest import DataFileContent
from pyiceberg.table.snapshots import Operation

from tailrace.sinks.replica.health import seen, why_not_ours
from tailrace.sinks.replica.iceberg.commits import SnapshotChange, commit
from tailrace.sinks.replica.iceberg.files import write_rows
from tailrace.sinks.replica.iceberg.manifests import entries
from tailrace.sinks.replica.iceberg.table import Iceberg
from tailrace.sinks.replica.table import Mark
from tests.unit.sinks.iceberg.lake import Lake, order

_OF_ANOTHER = Mark(None, -1, "{}")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    made.write(*(("c", None, order(id_)) for id_ in range(1, 6)))
    return made


def rewritten(lake: Lake) -> None:
    """Write the rows into another file, as programs do that leave the deletes of the former one."""
    table = lake.table
    data = [each for each in entries(table) if each.data_file.content == DataFileContent.DATA]
    files = [file for file, _ in write_rows(table, table.schema(), Iceberg(table).scan())]
    commit(table, SnapshotChange(Operation.REPLACE, files, data), _OF_ANOTHER)


def test_rows_are_counted_where_a_summary_has_no_totals(lake: Lake) -> None:
    lake.write(("d", order(1, None), None))
    table = lake.table
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    for name in [each for each in snapshot.summary.additional_properties if each.startswith("total-")]:
        del snapshot.summary.additional_properties[name]
    assert Iceberg(table).count() == 4
    commit(table, SnapshotChange(Operation.APPEND), _OF_ANOTHER)
    after = lake.table.current_snapshot()
    assert after is not None
    assert after.summary is not None
    assert "total-records" not in after.summary.additional_properties, "nobody knows it"


def test_deletes_that_a_compaction_has_left_are_not_rows(lake: Lake) -> None:
    lake.write(*(("d", order(id_, None), None) for id_ in (1, 2, 3)))
    rewritten(lake)
    assert Iceberg(lake.table).count() == 2
    assert lake.read() == [[order(4), order(5)]] * 3
    lake.write(*(("d", order(id_, None), None) for id_ in (4, 5)))
    assert Iceberg(lake.table).count() == 0


def test_a_table_that_was_put_back_is_seen_behind_a_compaction(lake: Lake) -> None:
    first = lake.table.current_snapshot()
    lake.write(("u", None, order(1, "new")))
    last = seen(Iceberg(lake.table))
    rewritten(lake)
    assert why_not_ours(Iceberg(lake.table), last, "query") is None
    assert first is not None
    lake.table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    rewritten(lake)
    assert "was put back to version 1, and it had version 2" in str(why_not_ours(Iceberg(lake.table), last, "query"))
