"""Key columns that values leave out, in the keys of a snapshot as the reference engine has them (`compat.faults`)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.connectors.sql_tables.rows import _without_hidden_keys
from tailrace.model.schema import INT64
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.model.table_id import SCHEMA_TABLE


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ((True, True), {"a": 7, "b": 8}),
        ((False, True), {"a": 0, "b": 8}),
        ((False, False), {"a": 7, "b": 8}),
    ],
)
def test_they_are_zero_unless_no_column_is_shown(shown: tuple[bool, bool], expected: dict[str, int]) -> None:
    columns = tuple(Column(name, INT64, pa.int64(), in_value=is_in) for name, is_in in zip("ab", shown, strict=True))
    schema = TableSchema(TableId("d", "s", "t", SCHEMA_TABLE), columns, ("a", "b"), ("a", "b"))
    found = pa.array([{"a": 7, "b": 8}], schema.row_type)
    assert _without_hidden_keys(schema, found).to_pylist() == [expected]
