"""Folders of replicas: reversible or hashed, ordinary names as ever, and never one for two tables."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import SinkError
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, DATABASE_TABLE, TableId
from tailrace.sinks.replica.folders import folder, shown
from tailrace.sinks.replica.target import Target, read_table

ROWS = pa.table({"id": [1]})
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=80)


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (TableId("d", "public", "orders"), "public.orders"),
        (TableId("d", "Public", "Orders_2.old-1"), "Public.Orders_2.old-1"),
        (TableId("d", "public", "a $b@c+d~e"), "public.a!20$b@c+d~e"),
        (TableId("d", "public", "Müller"), "public.M!C3!BCller"),
        (TableId("d", "public", "a!b"), "public.a!21b"),
        (TableId("d", "public", "a/../b "), "public.a!2F..!2Fb!20"),
        (TableId("d", "a.b", "c"), "a!2Eb.c"),
        (TableId("d", "a", "b.c"), "a.b.c"),
        (TableId("one", "dbo", "t", DATABASE_SCHEMA_TABLE), "one.dbo.t"),
        (TableId("my.db", "dbo", "t.u", DATABASE_SCHEMA_TABLE), "my!2Edb.dbo.t.u"),
        (TableId("inventory", "", "a.b", DATABASE_TABLE), "inventory.a.b"),
    ],
)
def test_names(table: TableId, name: str) -> None:
    assert folder(table.unique) == name


@given(NAMES, NAMES)
def test_a_name_survives_whatever_it_holds(schema: str, table: str) -> None:
    name = folder(TableId("d", schema, table).unique)
    assert re.fullmatch(r"[A-Za-z0-9._~$@+!-]+", name)
    assert len(name) <= 200
    assert name == name.rstrip()
    if "!-" not in name:
        assert shown(name) == f"{schema}.{table}"


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_no_two_tables_share_a_folder(one: tuple[str, str], other: tuple[str, str]) -> None:
    names = {folder(TableId("d", *each).unique) for each in (one, other)}
    assert len(names) == len({one, other})


def test_the_replica_of_a_table_in_one_of_several_databases(tmp_path: Path) -> None:
    one, other = (TableId(name, "dbo", "t", DATABASE_SCHEMA_TABLE) for name in ("one", "other"))
    write_deltalake(Target(str(tmp_path), one.unique).uri, ROWS)
    assert read_table(str(tmp_path), one).to_pylist() == read_table(str(tmp_path), "one.dbo.t").to_pylist()
    with pytest.raises(SinkError):
        read_table(str(tmp_path), other)


def test_long_names_that_begin_alike_differ() -> None:
    names = {folder(TableId("d", "public", "日" * 100 + end).unique) for end in "ab"}
    assert len(names) == 2
    assert all(shown(name).startswith("public.日日") for name in names)
