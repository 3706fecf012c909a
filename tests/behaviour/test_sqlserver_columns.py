"""Columns of SQL Server that change tables have other values for than tables, and new types. On the stand-in."""

from __future__ import annotations

import json
import logging

import pytest

from tailrace.connectors.sqlserver.catalog import _tell
from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.sqlserver import ENABLE, SqlServerSource

MADE = "CREATE TABLE parts (id int PRIMARY KEY, n int, twice AS (n * 2), kept AS (n + 1) PERSISTED)"


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


@pytest.mark.parametrize("mode", ["include", "exclude"])
def test_computed_columns_have_null_in_changes_or_are_left_out(
    source: SqlServerSource, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    """Microsoft, "About change data capture": "values for computed columns will always be null"."""
    _tell.cache_clear()
    source.run(MADE, ENABLE.format("parts"), "INSERT INTO parts (id, n) VALUES (1, 1)")
    given = {"table.include.list": r"dbo\.parts", "computed.columns": mode}
    with caplog.at_level(logging.WARNING):
        stream = Stepped("sqlserver", source, given)
        found = [event["after"] for _ in range(2) for event in stream.step()[0]]
        source.run("UPDATE parts SET n = 5")
        found += [event["after"] for event in stream.step()[0]]
    stream.close()
    if mode == "include":
        assert found == [{"id": 1, "n": 1, "twice": 2, "kept": 2}, {"id": 1, "n": 5, "twice": None, "kept": None}]
        assert "computed" not in caplog.text
    else:
        assert found == [{"id": 1, "n": 1}, {"id": 1, "n": 5}]
        assert "parts: the columns twice, kept are computed and left out" in caplog.text


@pytest.mark.parametrize("mode", ["direct", "function"])
@pytest.mark.parametrize("left", ["later", "none"])
def test_a_change_without_its_transaction_has_a_time(source: SqlServerSource, mode: str, left: str) -> None:
    """As after a clean-up that was interrupted."""
    metadata = {"provide__transaction__metadata": "true", "data__query__mode": mode}
    with stepping("sqlserver", source, table__include__list=r"dbo\.orders", **metadata) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        source.run("INSERT INTO orders VALUES (2, 1, N'a')")
        source.settle()
        lsn = "SELECT MIN(__$start_lsn) FROM cdc.dbo_orders_CT"
        source.run(f"DELETE FROM cdc.lsn_time_mapping WHERE start_lsn = ({lsn})")
        if left == "none":
            last = "SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping"
            source.run(f"DELETE FROM cdc.lsn_time_mapping WHERE start_lsn < ({last})")
        events, _ = stream.step()
    assert [event["after"]["id"] for event in events] == [1, 2]
    assert all(event["source"]["ts_ms"] > 1_700_000_000_000 for event in events)
    assert json.loads(json.dumps(events)) == events


def test_json_and_vectors_come_as_texts(source: SqlServerSource) -> None:
    source.run("CREATE TABLE docs (id int PRIMARY KEY, doc json, v vector(3))", ENABLE.format("docs"))
    source.run("""INSERT INTO docs VALUES (1, '{"a": 1}', '[0.1, 2, 30]')""")
    stream = Stepped("sqlserver", source, {"table.include.list": r"dbo\.docs"})
    found = [event["after"] for _ in range(2) for event in stream.step()[0]]
    source.run("UPDATE docs SET doc = NULL, v = '[1, 2, 3]'")
    found += [event["after"] for event in stream.step()[0]]
    stream.close()
    assert found == [{"id": 1, "doc": '{"a": 1}', "v": "[0.1, 2, 30]"}, {"id": 1, "doc": None, "v": "[1, 2, 3]"}]
