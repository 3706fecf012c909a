"""Row images of the driver's values."""

from __future__ import annotations

import pyarrow as pa

from tailrace.config.masks import Stars
from tailrace.connectors.column_info import ColumnInfo, SourceType
from tailrace.connectors.masking import altered
from tailrace.connectors.sql_tables.images import nulls
from tailrace.connectors.value_type import cast_type, text_type


def test_a_column_of_nulls_alone_is_masked_as_its_nulls_are_elsewhere() -> None:
    source = SourceType(name="varchar", printed="varchar", reported="varchar", length=9, scale=None, is_character=True)
    column = ColumnInfo(name="name", type=source, value=text_type(), required=False, default=None, comment=None)
    kind = altered(text_type(), Stars(5), column, "people.name")
    assert nulls(2, kind).to_pylist() == ["*****", "*****"]
    assert nulls(1, text_type()).to_pylist() == [None]
    assert nulls(1, cast_type("int32", pa.int32(), 0)) == pa.nulls(1, pa.int32())
