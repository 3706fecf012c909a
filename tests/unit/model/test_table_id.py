"""Names of tables as people write them and as databases tell them apart, dots and quotes included."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import SchemaChange
from tailrace.model.table import Column, TableSchema
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, DATABASE_TABLE, SCHEMA_TABLE, TableId

PARTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1)
SHOWN = st.sampled_from([SCHEMA_TABLE, DATABASE_TABLE, DATABASE_SCHEMA_TABLE])


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


@pytest.mark.parametrize(
    ("text", "shown", "parts"),
    [
        ("testdb.dbo.t", DATABASE_SCHEMA_TABLE, ("testdb", "dbo", "t")),
        ("sales.t", DATABASE_SCHEMA_TABLE, ("shop", "sales", "t")),
        ("t", DATABASE_SCHEMA_TABLE, ("shop", "dbo", "t")),
        ("testdb.dbo.my.t", DATABASE_SCHEMA_TABLE, ("testdb", "dbo", "my.t")),
        ('"my.db".dbo.t', DATABASE_SCHEMA_TABLE, ("my.db", "dbo", "t")),
        ("inventory.dbz.dotted", DATABASE_TABLE, ("inventory", "dbo", "dbz.dotted")),
    ],
)
def test_a_written_name_with_its_database(text: str, shown: tuple[str, ...], parts: tuple[str, str, str]) -> None:
    assert TableId.parse(text, "shop", "dbo", shown) == TableId(*parts, shown)


@given(PARTS, PARTS, PARTS, SHOWN)
def test_written_names_are_parsed_back(database: str, schema: str, table: str, shown: tuple[str, ...]) -> None:
    id_ = TableId(database if "database" in shown else "", schema if "schema" in shown else "", table, shown)
    assert TableId.parse(id_.written, "", "", shown) == id_


def test_the_printed_forms() -> None:
    forms = {
        SCHEMA_TABLE: ("s.t", "s.t", "s.t"),
        DATABASE_TABLE: ("d.t", "d.t", "d.t"),
        DATABASE_SCHEMA_TABLE: ("d.s.t", "s.t", "d.s.t"),
    }
    for shown, expected in forms.items():
        id_ = TableId("d", "s", "t", shown)
        assert (str(id_), id_.filtered, id_.unique) == expected
    assert TableId("d", "s", "t", DATABASE_SCHEMA_TABLE).column("c") == ("s.t.c", "d.s.t.c")
    assert TableId("d", "s", "t").column("c") == ("s.t.c",)
    assert TableId("d", 's"1', "t").quoted(DATABASE_SCHEMA_TABLE) == '"d"."s""1"."t"'
    assert TableId("d", "", "t").quoted(DATABASE_SCHEMA_TABLE) == '"d"."t"'
    assert TableId("d", "", "t", DATABASE_TABLE).full == "d.t"


@given(st.tuples(PARTS, PARTS, PARTS), st.tuples(PARTS, PARTS, PARTS))
def test_no_two_tables_have_one_unique_name(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    names = {TableId(*parts, DATABASE_SCHEMA_TABLE).unique for parts in (one, other)}
    assert len(names) == len({one, other})


@pytest.mark.parametrize("shown", [SCHEMA_TABLE, DATABASE_SCHEMA_TABLE])
def test_it_survives_json(shown: tuple[str, ...]) -> None:
    id_ = TableId("d", "s", "t", shown)
    table = TableSchema(id_, (Column("id", ConnectSchema("int32"), pa.int32()),), ("id",), ())
    assert TableSchema.from_json(table.to_json()) == table
    change = SchemaChange("ALTER", None, 7, previous=id_)
    assert SchemaChange.from_json(change.to_json()) == change
    assert TableId.from_json(asdict(id_)) == id_


def test_the_json_of_a_schema_and_a_table_leaves_out_what_is_shown() -> None:
    assert TableId("d", "s", "t").to_json() == ["d", "s", "t"]
    assert TableId.from_json(["d", "s", "t"]) == TableId("d", "s", "t")
    assert TableId.from_json({"database": "d", "schema": "s", "table": "t"}) == TableId("d", "s", "t")
