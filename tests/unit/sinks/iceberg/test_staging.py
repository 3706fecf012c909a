"""A snapshot that Spark's MERGE makes in a branch becomes the table's newest one, unless anything came between.

Here pyiceberg writes the branch, as Spark does in test_iceberg_merge.py.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from tailrace.sinks.replica.iceberg.commits import MARK, WRITTEN, refuse_others
from tailrace.sinks.replica.iceberg.maintenance import Files
from tailrace.sinks.replica.iceberg.staging import BRANCH, PROPERTIES, begin, publish
from tailrace.sinks.replica.iceberg.table import Iceberg
from tailrace.sinks.replica.table import LakeError, LostRaceError, Mark
from tests.unit.sinks.iceberg.lake import NAME, Lake, Row, order

MARKED = Mark("app", 7, '{"tailrace": "${x} \\"y\\""}')


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    made.write(("c", None, order(1)))
    return made


def merge(lake: Lake, row: Row, text: str = MARKED.text, branch: str = BRANCH) -> None:
    """What another process commits to a branch."""
    table = lake.table
    rows = pa.Table.from_pylist([row], Iceberg(table).schema)
    table.append(rows, snapshot_properties={MARK: text}, branch=branch)


def test_a_snapshot_of_the_branch_becomes_the_tables(lake: Lake) -> None:
    table = lake.table
    before = begin(table)
    merge(lake, order(2))
    assert lake.rows() == [order(1)], "nobody sees it yet"
    made = publish(table, before, MARKED)
    assert lake.read() == [[order(1), order(2)]] * 3
    written = Iceberg(lake.table)
    assert written.version == made.sequence_number == (before.sequence_number or 0) + 1
    assert next(iter(written.commits())).text == MARKED.text
    assert written.written("app") == 7
    assert written.properties[WRITTEN + "app"] == "7"
    assert PROPERTIES.items() <= dict(written.properties).items()
    assert [*lake.table.metadata.refs] == ["main"]


def test_a_snapshot_is_not_published_over_one_that_came_between(lake: Lake) -> None:
    table = lake.table
    before = begin(table)
    merge(lake, order(2))
    merge(lake, order(3), "{}", "main")
    with pytest.raises(CommitFailedException):
        publish(table, before, MARKED)
    assert lake.rows() == [order(1), order(3)]


def test_a_version_that_is_no_longer_the_newest_is_not_begun(lake: Lake) -> None:
    table = lake.table
    merge(lake, order(3), "{}", "main")
    with pytest.raises(CommitFailedException):
        begin(table)
    assert BRANCH not in lake.table.metadata.refs


@pytest.mark.parametrize("texts", [[], ["of another"], [MARKED.text, MARKED.text], ["of another", MARKED.text]])
def test_a_branch_that_another_process_has_written_is_not_published(lake: Lake, texts: list[str]) -> None:
    table = lake.table
    before = begin(table)
    for number, text in enumerate(texts):
        merge(lake, order(2 + number), text)
    with pytest.raises(LostRaceError):
        publish(table, before, MARKED)
    assert lake.rows() == [order(1)]


def test_a_branch_that_a_killed_process_has_left_is_set_anew(lake: Lake) -> None:
    begin(lake.table)
    merge(lake, order(2))
    table = lake.table
    before = begin(table)
    merge(lake, order(2))
    publish(table, before, MARKED)
    assert lake.rows() == [order(1), order(2)]
    assert [commit.text for commit in Iceberg(lake.table).commits()].count(MARKED.text) == 1


@pytest.mark.slow
def test_files_of_a_branch_that_was_given_up_are_removed(lake: Lake) -> None:
    begin(lake.table)
    merge(lake, order(2))
    table = lake.table
    before = begin(table)
    merge(lake, order(2))
    publish(table, before, MARKED)
    Files(lake.table).keep(1, MARKED)
    time.sleep(1.1)
    Files(lake.table).remove(MARKED)
    assert len(lake.table.metadata.snapshots) == 1
    assert len(Files(lake.table).others()) == 0
    assert lake.read() == [[order(1), order(2)]] * 3


def test_a_table_that_was_made_and_not_written_is_begun(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.catalog.create_namespace("lake")
    table: Table = lake.catalog.create_table(("lake", NAME), pa.schema([("id", pa.int32()), ("note", pa.string())]))
    before = begin(table)
    merge(lake, order(2))
    publish(table, before, MARKED)
    assert lake.rows() == [order(2)]


def test_a_table_of_another_form_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.catalog.create_namespace("lake")
    schema = pa.schema([("id", pa.int32())])
    table = lake.catalog.create_table(("lake", NAME), schema, properties={"format-version": "1"})
    with pytest.raises(LakeError, match="format version 1"):
        refuse_others(table)
