"""Operations that `skipped.operations` leaves out, where a row alone does not tell its operation."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tailrace.connectors.change_tables.changes import AFTER, BEFORE, DELETED, INSERTED, ChangeRows
from tailrace.connectors.change_tables.dialect import Instance
from tailrace.connectors.change_tables.reader import ChangeTable, RangeReader
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.db2.config import resolve
from tailrace.connectors.db2.snapshot import DIALECT
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_id import SCHEMA_TABLE

TABLE = TableId("SHOP", "S", "T", SCHEMA_TABLE)
BASE = {"database.hostname": "h", "database.dbname": "SHOP", "topic.prefix": "db2"}


def test_a_transaction_of_skipped_changes_alone_has_no_begin_and_no_end() -> None:
    kinds = [INSERTED, BEFORE, AFTER, DELETED]
    commits = pa.array(["1", "2", "2", "3"])
    rows = ChangeRows(
        commit=commits,
        change=commits,
        kind=np.array(kinds, np.int64),
        ts_us=pa.array([0] * 4, pa.int64()),
        images=pa.array([{}] * 4, pa.struct([])),
        mask=pa.nulls(4, pa.binary()),
    )
    captured = CapturedTable(TableSchema(TABLE, (), (), ()), ())
    table = ChangeTable(Instance("CDC_T", TABLE, 1, 2, "", "CDC_T"), captured, "", None, "")
    reader = RangeReader(DIALECT, resolve({**BASE, "skipped.operations": "u,d"}), "SHOP", "0", "9", 0)
    chunk = reader._chunk([(table, rows)], [])
    (batch,) = chunk.batches
    assert batch.rows.column("op").to_pylist() == ["c"]
    assert chunk.marks is not None
    assert chunk.marks.column("id").to_pylist() == ["1", "1"]
