"""Old images of tables without a key get the large values that an update left, or it is said that nobody has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.model.schema import ConnectSchema
from tailrace.model.table import ALL, UNTOUCHED, Column, TableId, TableSchema
from tailrace.sinks.replica.old_values import with_old_values

TEXT = ConnectSchema("string", optional=True)
MARK = "gone"
PLACEHOLDER = f"hex:{MARK.encode().hex()}"


def table(lacks: str | None, placeholder: str | None) -> TableSchema:
    columns = (
        Column("n", ConnectSchema("int32"), pa.int32()),
        Column("note", TEXT, pa.string(), placeholder=placeholder, old_lacks=lacks),
    )
    return TableSchema(TableId("", "dbo", "bag"), columns, (), ("n", "note"))


@pytest.mark.parametrize(
    ("lacks", "placeholder", "op", "old", "new", "whole", "is_known"),
    [
        (ALL, PLACEHOLDER, "u", MARK, "a", "a", True),
        (ALL, PLACEHOLDER, "u", MARK, None, None, True),
        (ALL, PLACEHOLDER, "u", None, "a", None, False),
        (ALL, PLACEHOLDER, "d", None, None, None, False),
        (ALL, PLACEHOLDER, "d", MARK, None, MARK, True),
        (UNTOUCHED, PLACEHOLDER, "u", MARK, "a", "a", True),
        (UNTOUCHED, PLACEHOLDER, "u", None, "a", None, True),
        (UNTOUCHED, None, "u", None, None, None, True),
        (UNTOUCHED, None, "u", None, "a", None, False),
        (UNTOUCHED, None, "u", "b", "a", "b", True),
        (UNTOUCHED, None, "d", None, None, None, True),
        (None, None, "u", None, "a", None, True),
    ],
)
def test_old_values(
    lacks: str | None,
    placeholder: str | None,
    op: str,
    old: str | None,
    new: str | None,
    whole: str | None,
    is_known: bool,
) -> None:
    schema = table(lacks, placeholder)
    before = pa.array([{"n": 1, "note": old}, None], schema.row_type)
    after = pa.array([None if op == "d" else {"n": 2, "note": new}, {"n": 3, "note": None}], schema.row_type)
    found, why = with_old_values(schema, pa.array([op, "c"]), before, after)
    assert found.to_pylist() == [{"n": 1, "note": whole}, None]
    assert why == (
        None
        if is_known
        else "1 rows of a table without a key were changed, and the log does not have their old values of note"
    )


def test_binary_placeholders() -> None:
    columns = (
        Column(
            "raw",
            ConnectSchema("bytes", optional=True),
            pa.binary(),
            True,
            out_of_range="error",
            placeholder=PLACEHOLDER,
            old_lacks=ALL,
        ),
    )
    schema = TableSchema(TableId("", "dbo", "bag"), columns, (), ("raw",))
    before = pa.array([{"raw": MARK.encode()}, {"raw": b"x"}], schema.row_type)
    after = pa.array([{"raw": b"y"}, {"raw": b"z"}], schema.row_type)
    found, why = with_old_values(schema, pa.array(["u", "u"]), before, after)
    assert (found.to_pylist(), why) == ([{"raw": b"y"}, {"raw": b"x"}], None)
