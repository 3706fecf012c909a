"""The newest changes of a chunk are described without their values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from tailrace.model.change import ChangeBatch
from tailrace.model.table import TableId, TableSchema
from tailrace.spark.newest import MOST, newest

IMAGE = pa.struct([("id", pa.int64()), ("note", pa.string()), ("large", pa.string())])
UNCHANGED = pa.struct([("id", pa.bool_()), ("note", pa.bool_()), ("large", pa.bool_())])


def batch(table: str, *changes: tuple[int, str, Any, Any], unchanged: list[Any] | None = None) -> ChangeBatch:
    orders, operations, before, after = zip(*changes, strict=True)
    columns = {
        "op": pa.array(operations),
        "order": pa.array(orders, pa.int64()),
        "ts_us": pa.array([order * 1_000_000 for order in orders], pa.int64()),
        "before": pa.array(before, IMAGE),
        "after": pa.array(after, IMAGE),
    }
    if unchanged is not None:
        columns["unchanged"] = pa.array(unchanged, UNCHANGED)
    return ChangeBatch(TableSchema(TableId("d", "public", table), (), (), ()), pa.record_batch(columns))


def row(id_: int, note: str | None = "secret", large: str | None = None) -> dict[str, Any]:
    return {"id": id_, "note": note, "large": large}


def test_the_newest_of_all_tables_in_their_order_and_no_value_of_them() -> None:
    many = [(each, "c", None, row(each)) for each in range(100, 109)]
    found = newest([batch("a", *many), batch("b", (104, "u", row(7), row(7, None)), (200, "d", row(8, "gone"), None))])
    assert found is not None
    assert "secret" not in found
    assert "gone" not in found
    changes = json.loads(found)
    assert [(each["table"], each["op"], each["ts_us"] // 1_000_000) for each in changes] == [
        *(("public.a", "create", each) for each in range(105, 109)),
        ("public.b", "delete", 200),
    ]
    assert len(changes) == MOST
    assert changes[-1]["row"] == {"id": "***", "note": "***", "large": None}
    sliced = batch("b", *[(each, "c", None, row(each, None if each % 2 else "x")) for each in range(9)]).slice(1, 7)
    nulls = [each["row"]["note"] for each in json.loads(newest([sliced]) or "")]
    assert nulls == [None, "***", None, "***", None]


def test_a_value_that_the_log_did_not_repeat_is_not_null() -> None:
    large = batch("a", (1, "u", None, row(1)), unchanged=[{"id": False, "note": False, "large": True}])
    (change,) = json.loads(newest([large]) or "")
    assert change["row"]["large"] == "***"


def test_a_change_without_a_row_and_a_chunk_without_a_change() -> None:
    (change,) = json.loads(newest([batch("a", (1, "t", None, None))]) or "")
    assert (change["op"], change["row"]) == ("truncate", {})
    assert newest([]) is None
