"""What `skipped.operations` leaves out: halves of changed keys, and transactions of left out changes alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.capture.capture import Capture
from tailrace.connectors import registry
from tailrace.connectors.change_tables.change_table import ChangeTable
from tailrace.connectors.change_tables.changes import AFTER, BEFORE, DELETED, INSERTED, ChangeRows
from tailrace.connectors.change_tables.reader import RangeReader
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.db2.snapshot import DIALECT as DB2
from tailrace.connectors.sqlserver.snapshot import DIALECT as SQLSERVER
from tailrace.connectors.value_type import ValueType
from tailrace.model.schema import INT64
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.model.table_id import SCHEMA_TABLE
from tailrace.spark.schemas import spark_schema
from tailrace.spark.shapes import Shaper

TABLE = TableId("SHOP", "S", "T", SCHEMA_TABLE)
DIALECTS = {"db2": DB2, "sqlserver": SQLSERVER}
GIVEN = {
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "p",
    "database.dbname": "SHOP",
    "database.names": "SHOP",
    "topic.prefix": "t",
    "provide.transaction.metadata": "true",
    "header.converter": "org.apache.kafka.connect.json.JsonConverter",
    "shape": "kafka",
}


def _told(connector: str, skipped: str, kinds: list[int], commits: list[str], key: list[int]) -> tuple[list[Any], ...]:
    """What is sent of these rows of a change table: events as op, key and order; ends of transactions."""
    rows = ChangeRows(
        commit=pa.array(commits),
        change=pa.array(commits),
        kind=np.array(kinds, np.int64),
        ts_us=pa.array([1_000_000] * len(kinds), pa.int64()),
        images=pa.StructArray.from_arrays([pa.array(key, pa.int64())], names=["ID"]),
        mask=pa.nulls(len(kinds), pa.binary()),
    )
    schema = TableSchema(TABLE, (Column("ID", INT64, pa.int64()),), ("ID",), ("ID",))
    captured = CapturedTable(schema, (ValueType(INT64, pa.int64(), lambda found: found),))
    table = ChangeTable(Instance("CDC_T", TABLE, 1, 2, start="", changes="CDC_T"), captured, "", None, "")
    package = registry.named(connector).load()
    names = {"db2": "database.names", "sqlserver": "database.dbname"}
    given = {name: value for name, value in GIVEN.items() if name != names[connector]}
    config = package.resolve({**given, "skipped.operations": skipped})
    chunk = RangeReader(DIALECTS[connector], config, "SHOP", "0", "9", 0)._chunk([(table, rows)], [])
    capture = Capture(package.connector(config))
    shaper = Shaper(capture, spark_schema(capture), "[]", "run")
    found = [row for batch in shaper.rows(chunk) for row in batch.to_pylist()]
    events, ends = [], []
    for row in found:
        value = row["value"] and json.loads(row["value"])["payload"]
        if row["topic"] == "t.transaction":
            ends += [(value["id"], value["event_count"])] if value["status"] == "END" else []
        else:
            key_of = json.loads(row["key"])["payload"]["ID"]
            order = value and value["transaction"]["total_order"]
            events.append((value["op"] if value else "tombstone", key_of, order))
    return events, ends


def test_a_transaction_of_skipped_changes_alone_has_no_begin_and_no_end() -> None:
    """The first inserts, the second updates, the third deletes, the fourth changes a key: a deletion and a creation."""
    kinds = [INSERTED, BEFORE, AFTER, DELETED, BEFORE, AFTER]
    events, ends = _told("db2", "u,d", kinds, ["1", "2", "2", "3", "4", "4"], [1, 1, 1, 2, 1, 3])
    assert ends == [("1", 1), ("4", 1)]
    assert events == [("c", 1, 1), ("c", 3, 1)]


def test_both_halves_of_a_changed_key_are_sent_where_the_query_of_the_log_skips_operations() -> None:
    """A sink that upserts would lose the row, or keep it under both keys, without one of them."""
    kinds, commits, key = [BEFORE, AFTER, BEFORE, AFTER], ["1"] * 4, [1, 2, 5, 5]
    halves = [("d", 1, 1), ("tombstone", 1, None), ("c", 2, 2), ("u", 5, 3)]
    for skipped in ("c", "d", "c,d", "none"):
        assert _told("sqlserver", skipped, kinds, commits, key) == (halves, [("1", 3)])


def test_each_half_of_a_changed_key_is_skipped_by_itself_elsewhere() -> None:
    kinds, commits, key = [BEFORE, AFTER], ["1"] * 2, [1, 2]
    assert _told("db2", "c", kinds, commits, key) == ([("d", 1, 1), ("tombstone", 1, None)], [("1", 1)])
    assert _told("db2", "d", kinds, commits, key) == ([("c", 2, 1)], [("1", 1)])
    assert _told("db2", "c,d", kinds, commits, key) == ([], [])
