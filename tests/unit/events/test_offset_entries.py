"""Entries of the reference's partitions and offsets, by its subclasses of CommonOffsetContext."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.connectors.db2.position import BLOCK as DB2
from tailrace.connectors.postgres.position import SOURCE, SOURCE_TYPE
from tailrace.connectors.sqlserver.position import BLOCK as SQL_SERVER
from tailrace.events.offset_entries import offset_entries
from tailrace.model.change import TRANSACTION_TYPE, ChangeBatch
from tailrace.model.source import SourceBlock
from tests.unit.events.changes import changes, table

IMAGE = {"id": 1, "code": "a", "note": None}
PLACES = [None, "true", "last", "incremental"]


def batch(source: dict[str, int], **columns: pa.Array) -> ChangeBatch:
    """A change that is streamed, and changes of each kind of snapshot."""
    made = changes(table(), *({"op": "r", "after": IMAGE, "snapshot": place} for place in PLACES), **columns)
    at = made.rows.schema.get_field_index("source")
    return made.with_rows(made.rows.set_column(at, "source", pa.array([source] * len(made), SOURCE_TYPE)))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # server; ts_usec, txId, lsn; then messageType, or snapshot, last_snapshot_record and snapshot_completed, or all
        # of them with the four of an incremental snapshot.
        ({"txId": 7, "lsn": 1}, [5, 7, 7, 12]),
        # lsn_proc and lsn_commit as well.
        ({"txId": 7, "lsn": 1, "last_commit": 1}, [7, 9, 9, 14]),
        ({"txId": 7, "lsn": 1, "last_commit": 1, "xmin": 3}, [8, 10, 10, 15]),
        ({"lsn": 1}, [4, 6, 6, 11]),
    ],
)
def test_entries_of_postgres(source: dict[str, int], found: list[int]) -> None:
    assert offset_entries(batch(source), SOURCE.offset).tolist() == found


@pytest.mark.parametrize(("block", "found"), [(SQL_SERVER, [5, 7, 7, 11]), (DB2, [4, 4, 4, 4])])
def test_entries_of_change_tables(block: SourceBlock, found: list[int]) -> None:
    assert offset_entries(batch({"lsn": 1}), block.offset).tolist() == found


def test_a_transaction_adds_its_id_and_counts_of_tables() -> None:
    blocks = [
        {"id": "7", "total_order": 2, "data_collection_order": 2},
        None,
        None,
        {"id": "7", "total_order": 3, "data_collection_order": 1},
    ]
    transaction = pa.array(blocks, TRANSACTION_TYPE)
    found = offset_entries(batch({"txId": 7, "lsn": 1}, transaction=transaction), SOURCE.offset)
    assert found.tolist() == [5 + 2, 7, 7, 12 + 3]
