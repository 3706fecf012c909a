"""Keys of SQL Server's tables: with nulls, in other code pages, compared by the column's own rules. On the stand-in."""

from __future__ import annotations

import json

import pytest

from tests.behaviour.stepping import Stepped
from tests.conformance.sqlserver import SqlServerSource


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


def test_a_snapshot_that_resumes_among_keys_with_nulls_reads_each_row_once(source: SqlServerSource) -> None:
    source.run("CREATE TABLE loose (a int, b int)", "CREATE UNIQUE INDEX loose_key ON loose (a, b)")
    keys = [(None, b) for b in range(1, 9)] + [(-1, 1), (0, 0), (5, 5)]
    for a, b in keys:
        source.run(f"INSERT INTO loose VALUES ({'NULL' if a is None else a}, {b})")
    given = {"table.include.list": r"dbo\.loose", "snapshot.max.threads": "2", "snapshot.max.threads.multiplier": "2"}
    found: list[tuple[int | None, int]] = []
    offset = None
    for steps in (3, 8):
        stream = Stepped("sqlserver", source, given)
        stream.offset = stream.offset if offset is None else json.loads(json.dumps(offset))
        batches = [[(event["after"]["a"], event["after"]["b"]) for event in stream.step()[0]] for _ in range(steps)]
        offset = stream.offset
        stream.close()
        # The first process has ended while its last batch was written: the second one reads it again.
        found += [key for batch in (batches[:-1] if steps == 3 else batches) for key in batch]
    assert sorted(found, key=str) == sorted(keys, key=str)
