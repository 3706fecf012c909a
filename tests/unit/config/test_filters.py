"""Filters: what the include and exclude lists let through, in which order, and the keys message.key.columns sets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.config import Config
from tailrace.config.filters import TableFilter, key_columns
from tailrace.config.kinds import split_list
from tailrace.config.masks import ColumnMasks, Stars
from tailrace.connectors.postgres.config import resolve
from tailrace.javalike.patterns import compile_pattern
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, TableId, TableNaming


def config(**properties: str) -> Config:
    base = {"database.hostname": "h", "database.user": "u", "database.dbname": "shop", "topic.prefix": "t"}
    return resolve({**base, **{name.replace("__", "."): value for name, value in properties.items()}})


def captured(tables: str, **properties: str) -> list[str]:
    wanted = TableFilter.from_config(config(**properties))
    parts = (name.split(".", 1) for name in tables.split())
    return [f"{schema}.{table}" for schema, table in parts if wanted.captures(TableId("shop", schema, table))]


def table(schema: str, name: str) -> TableId:
    return TableId("shop", schema, name)


TABLES = "public.a public.ab inventory.a hidden.a"


@pytest.mark.parametrize(
    ("properties", "names"),
    [
        ({}, TABLES),
        ({"table__include__list": "public.a"}, "public.a"),
        ({"table__include__list": " PUBLIC.A , inventory.* "}, "public.a inventory.a"),
        ({"table__include__list": "a"}, ""),
        ({"table__exclude__list": r"(.*)\.a"}, "public.ab"),
        ({"schema__include__list": "public"}, "public.a public.ab"),
        ({"table__include__list": "public.a", "signal__data__collection": "hidden.a"}, "public.a hidden.a"),
        ({"table__exclude__list": ".*a", "signal__data__collection": '"inventory"."a"'}, "public.ab inventory.a"),
        ({"schema__include__list": "hidden", "signal__data__collection": "a"}, "public.a hidden.a"),
        ({"schema__exclude__list": "hid.*,inventory"}, "public.a public.ab"),
        ({"schema__include__list": "public", "table__exclude__list": "public.ab"}, "public.a"),
        ({"table__include__list": r"\Qpublic.a\E"}, "public.a"),
    ],
)
def test_tables(properties: dict[str, str], names: str) -> None:
    assert captured(TABLES, **properties) == names.split()


def test_system_tables_are_never_captured() -> None:
    system = "pg_catalog.pg_class information_schema.x pg_toast.t pg_temp_3.t pg_toast_temp_1.t public.spatial_ref_sys"
    assert captured(system, table__include__list=".*") == []
    assert captured(system, table__ignore__builtin="false") == system.split()
    assert captured("pg_catalogue.a") == ["pg_catalogue.a"]


def test_a_comma_in_an_expression_is_escaped() -> None:
    assert captured("public.a,b public.a{2} public.aa public.b", table__include__list=r"public.a\,b,public.b") == [
        "public.a,b",
        "public.b",
    ]
    assert captured("public.aa public.a", table__include__list=r"public.a{2\,3}") == ["public.aa"]


def test_the_snapshot_reads_a_subset() -> None:
    wanted = TableFilter.from_config(config(table__include__list="public.*", snapshot__include__collection__list=".*a"))
    assert wanted.snapshots(table("public", "a"))
    assert not wanted.snapshots(table("public", "b"))
    assert wanted.captures(table("public", "b"))
    assert not wanted.snapshots(table("other", "a"))


def test_columns() -> None:
    names = ("id", "name", "ssn")
    without = TableFilter.from_config(config(column__exclude__list=r"public.people.(ssn|salary)"))
    assert without.columns(table("public", "people"), names) == ("id", "name")
    assert without.columns(table("other", "people"), names) == names
    only = TableFilter.from_config(config(column__include__list="public.people.NAME,public.people.id"))
    assert only.columns(table("public", "people"), names) == ("id", "name")


def test_order_is_that_of_the_include_list() -> None:
    tables = [TableId("shop", "public", name) for name in ("mid", "alpha", "zebra", "zoo")]
    listed = TableFilter.from_config(config(table__include__list="public.z.*,public.mid,public.alpha"))
    assert [table.table for table in listed.order(tables)] == ["zebra", "zoo", "mid", "alpha"]
    assert [table.table for table in TableFilter.from_config(config()).order(tables)] == [
        "alpha",
        "mid",
        "zebra",
        "zoo",
    ]


def test_key_columns() -> None:
    keys = config(message__key__columns="public.customers:email,last_name;(.*).log_lines:part,line;shop.public.x:a")
    names = ("id", "last_name", "email")
    assert key_columns(keys, table("public", "customers"), names) == ("email", "last_name")
    assert key_columns(keys, table("other", "log_lines"), ("line", "part", "text")) == ("part", "line")
    assert key_columns(keys, table("public", "x"), ("a",)) == ("a",)
    assert key_columns(keys, table("public", "orders"), names) is None
    in_databases = TableId("shop", "dbo", "x", shown=DATABASE_SCHEMA_TABLE)
    assert key_columns(config(message__key__columns="shop.dbo.x:a"), in_databases, ("a",)) == ("a",)
    assert key_columns(config(), table("public", "customers"), names) is None


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\\"), min_size=1).map(str.strip).filter(bool)))
def test_a_list_gives_back_its_items(items: list[str]) -> None:
    written = ",".join(item.replace(",", "\\,") for item in items)
    assert split_list(written) == items


@given(st.text(st.characters(codec="ascii")).filter(lambda text: "\\E" not in text))
def test_a_quoted_expression_matches_itself_alone(text: str) -> None:
    assert compile_pattern(f"\\Q{text}\\E").fullmatch(text)
    assert not compile_pattern(f"\\Q{text}\\E").fullmatch(text + "x")


def test_the_table_of_signals_is_captured_and_no_data() -> None:
    wanted = TableFilter.from_config(config(table__include__list="public.a", signal__data__collection="public.s"))
    assert wanted.captures(table("public", "s"))
    assert not wanted.snapshots(table("public", "s"))
    assert wanted.snapshots(table("public", "a"))


def of_databases(**properties: str) -> Config:
    """A configuration of a server that has tables in several databases."""
    return replace(config(**properties), naming=TableNaming(DATABASE_SCHEMA_TABLE, "dbo", "sys|cdc"))


def test_tables_of_several_databases() -> None:
    one, other = (TableId(database, "dbo", "t", DATABASE_SCHEMA_TABLE) for database in ("one", "other"))
    given = of_databases(table__include__list="dbo.t")
    values = {**given.values, "signal.data.collection": ("one.dbo.s", "other.dbo.s")}
    decided = (("other.dbo.t", False), ("one.sales.x", True))
    wanted = TableFilter.from_config(replace(given, values=values, tables=decided))
    assert (wanted.captures(one), wanted.captures(other)) == (True, False)
    signals = [TableId(database, "dbo", "s", DATABASE_SCHEMA_TABLE) for database in ("one", "other", "third")]
    assert [wanted.captures(each) for each in signals] == [True, True, False]
    assert [wanted.snapshots(each) for each in signals] == [False, False, False]
    added = [TableId(database, "sales", "x", DATABASE_SCHEMA_TABLE) for database in ("one", "other")]
    assert [wanted.captures(each) for each in added] == [True, False]
    assert [wanted.names(each) for each in added] == [True, False]
    assert wanted.order([other, one]) == [one, other]


def test_the_systems_own_tables_are_those_of_the_database() -> None:
    wanted = TableFilter.from_config(of_databases())
    assert not wanted.captures(TableId("one", "cdc", "t", DATABASE_SCHEMA_TABLE))
    assert wanted.captures(TableId("one", "pg_catalog", "t", DATABASE_SCHEMA_TABLE))


def test_a_snapshot_may_read_a_table_of_one_database() -> None:
    wanted = TableFilter.from_config(of_databases(snapshot__include__collection__list="one.dbo.t"))
    found = [wanted.snapshots(TableId(each, "dbo", "t", DATABASE_SCHEMA_TABLE)) for each in ("one", "other")]
    assert found == [True, False]


@pytest.mark.parametrize(
    ("given", "tables"),
    [
        (" public.a:v", "a"),
        ("public.a : v , w", ""),  # the blank before the colon is part of the expression
        ("public.a: v ", "a"),
        ("public.a|public.b:v", "b"),
        ("public.a,public.b:v", "b"),
        ("public.(a|b):v", "a b"),
    ],
)
def test_key_columns_as_the_reference_joins_them(given: str, tables: str) -> None:
    keys = config(message__key__columns=given)
    found = [name for name in "ab" if key_columns(keys, table("public", name), ("id", "v")) is not None]
    assert " ".join(found) == tables


def test_key_columns_of_one_database() -> None:
    keys = of_databases(message__key__columns="one.dbo.t:a;dbo.t:b")
    found = [key_columns(keys, TableId(each, "dbo", "t", DATABASE_SCHEMA_TABLE), "ab") for each in ("one", "other")]
    assert found == [("a", "b"), ("b",)]


def test_masks_of_one_database() -> None:
    masks = ColumnMasks.from_config(
        of_databases(column__mask__with__3__chars="one.dbo.t.a", column__mask__with__4__chars="dbo.t.b")
    )
    tables = [TableId(each, "dbo", "t", DATABASE_SCHEMA_TABLE) for each in ("one", "other")]
    assert [masks.of(each, "a", "text") for each in tables] == [Stars(3), None]
    assert [masks.of(each, "b", "text") for each in tables] == [Stars(4), Stars(4)]
