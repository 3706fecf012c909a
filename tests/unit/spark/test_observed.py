"""Counts of operations and transactions at the source."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.errors import ConfigError
from tailrace.spark.observed import OPERATIONS, Transactions, observe, operations


def batch(commits: list[Any], operation: str = "c", **more: Any) -> Any:
    kind = pa.string() if commits and isinstance(commits[0], str) else pa.int64()
    rows = pa.record_batch({"op": pa.array([operation] * len(commits), pa.string()), "commit": pa.array(commits, kind)})

    class Rows(SimpleNamespace):
        def __len__(self) -> int:
            return int(rows.num_rows)

        def column(self, name: str) -> pa.Array | None:
            return self.rows.column(name) if name in self.rows.schema.names else None

    return Rows(rows=rows, **{"read": None, "schema_change": None, **more})


@pytest.mark.parametrize("as_position", [int, "{:06d}".format])
def test_a_transaction_of_several_tables_and_chunks_is_counted_once(as_position: Any) -> None:
    def commits(*numbers: int) -> list[Any]:
        return [as_position(number) for number in numbers]

    counted = Transactions()
    assert counted.count([batch(commits(1, 1, 2)), batch(commits(1, 3))]) == 3
    assert counted.count([batch(commits(3, 4))]) == 1, "3 goes on"
    assert counted.count([batch(commits(4)), batch([])]) == 0
    assert counted.count([]) == 0
    assert counted.count([batch(commits(5, 6, 7))]) == 3
    rows_of_a_snapshot = batch(commits(9), read=object())
    assert counted.count([rows_of_a_snapshot, batch(commits(9), schema_change=object())]) == 0


def test_messages_outside_of_transactions_are_of_none() -> None:
    message = batch([1], "m")
    message.rows = message.rows.drop_columns(["commit"])
    assert Transactions().count([message, batch([1])]) == 1


def test_operations_are_counted() -> None:
    assert operations(batch([1, 1], "u")) == {**dict.fromkeys(OPERATIONS, 0), "updates": 2}
    mixed = batch([1] * 6)
    column = pa.array(["t", "c", "u", "u", "d", "m", "r", "c"]).slice(1, 6)
    mixed.rows = mixed.rows.set_column(0, "op", column)
    assert operations(mixed) == {"reads": 1, "creates": 1, "updates": 2, "deletes": 1, "truncates": 0, "messages": 1}
    assert set(operations(batch([1], schema_change=object())).values()) == {0}
    assert set(operations(batch([])).values()) == {0}


def test_other_shapes_are_refused() -> None:
    frame: Any = SimpleNamespace(columns=["topic", "key", "value"])
    with pytest.raises(ConfigError, match="shape arrow or event are expected"):
        observe(frame)
