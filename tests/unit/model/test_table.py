"""Names of tables as people write them, dots and quotes included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.table import TableId


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("public.t", "public", "t"),
        ("t", "", "t"),
        (' "my.s" . t ', "my.s", "t"),
        ('public."my.t"', "public", "my.t"),
        ("public.my.t", "public", "my.t"),
        ('"say ""hi""".t', 'say "hi"', "t"),
        ("shop.public.t", "public", "t"),
        ("", "", ""),
    ],
)
def test_a_written_name(text: str, schema: str, table: str) -> None:
    assert TableId.parse(text, "shop") == TableId("shop", schema, table)


@given(*[st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1) for _ in range(2)])
def test_what_is_written_is_understood(schema: str, table: str) -> None:
    assert TableId.parse(TableId("", schema, table).written, "") == TableId("", schema, table)
