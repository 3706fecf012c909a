"""Transactions of changes that `skipped.operations` leaves out."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from tailrace.capture.capture import Capture
from tailrace.connectors.change_tables.changes import AFTER, BEFORE, DELETED, INSERTED, ChangeRows
from tailrace.connectors.change_tables.dialect import Instance
from tailrace.connectors.change_tables.reader import ChangeTable, RangeReader
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.db2.config import resolve
from tailrace.connectors.db2.connector import Db2Connector
from tailrace.connectors.db2.snapshot import DIALECT
from tailrace.connectors.value_type import ValueType
from tailrace.model.schema import INT64
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.model.table_id import SCHEMA_TABLE
from tailrace.spark.shapes import Shaper, spark_schema

TABLE = TableId("SHOP", "S", "T", SCHEMA_TABLE)
GIVEN = {
    "database.hostname": "h",
    "database.dbname": "SHOP",
    "topic.prefix": "db2",
    "provide.transaction.metadata": "true",
    "skipped.operations": "u,d",
    "shape": "kafka",
}


def test_a_transaction_of_skipped_changes_alone_has_no_begin_and_no_end() -> None:
    """The first inserts, the second updates, the third deletes, the fourth changes a key: a deletion and a creation."""
    kinds = [INSERTED, BEFORE, AFTER, DELETED, BEFORE, AFTER]
    commits = pa.array(["1", "2", "2", "3", "4", "4"])
    key = pa.array([1, 1, 1, 2, 1, 3], pa.int64())
    rows = ChangeRows(
        commit=commits,
        change=commits,
        kind=np.array(kinds, np.int64),
        ts_us=pa.array([1_000_000] * len(kinds), pa.int64()),
        images=pa.StructArray.from_arrays([key], names=["ID"]),
        mask=pa.nulls(len(kinds), pa.binary()),
    )
    schema = TableSchema(TABLE, (Column("ID", INT64, pa.int64()),), ("ID",), ("ID",))
    captured = CapturedTable(schema, (ValueType(INT64, pa.int64(), lambda found: found),))
    table = ChangeTable(Instance("CDC_T", TABLE, 1, 2, "", "CDC_T"), captured, "", None, "")
    config = resolve(GIVEN)
    chunk = RangeReader(DIALECT, config, "SHOP", "0", "9", 0)._chunk([(table, rows)], [])
    capture = Capture(Db2Connector(config))
    shaper = Shaper(capture, spark_schema(capture), "[]", "run")
    found = [row for batch in shaper.rows(chunk) for row in batch.to_pylist()]
    told = [json.loads(row["value"])["payload"] for row in found if row["topic"] == "db2.transaction"]
    assert [(each["status"], each["id"], each["event_count"]) for each in told] == [
        ("BEGIN", "1", None),
        ("END", "1", 1),
        ("BEGIN", "4", None),
        ("END", "4", 1),
    ]
    events = [json.loads(row["value"])["payload"]["op"] for row in found if row["topic"] == "db2.S.T"]
    assert events == ["c", "c"]
