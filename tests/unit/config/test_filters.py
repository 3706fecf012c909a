"""Filters: what the include and exclude lists let through, in which order, and the keys message.key.columns sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.config import Config
from tailrace.config.filters import TableFilter, key_columns
from tailrace.config.kinds import compile_pattern, split_list
from tailrace.connectors.postgres.config import resolve
from tailrace.model.table import TableId


def config(**properties: str) -> Config:
    base = {"database.hostname": "h", "database.user": "u", "database.dbname": "shop", "topic.prefix": "t"}
    return resolve({**base, **{name.replace("__", "."): value for name, value in properties.items()}})


def captured(tables: str, **properties: str) -> list[str]:
    wanted = TableFilter.from_config(config(**properties))
    return [name for name in tables.split() if wanted.captures(*name.split(".", 1))]


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
    assert wanted.snapshots("public", "a")
    assert not wanted.snapshots("public", "b")
    assert wanted.captures("public", "b")
    assert not wanted.snapshots("other", "a")


def test_columns() -> None:
    names = ("id", "name", "ssn")
    without = TableFilter.from_config(config(column__exclude__list=r"public.people.(ssn|salary)"))
    assert without.columns("public", "people", names) == ("id", "name")
    assert without.columns("other", "people", names) == names
    only = TableFilter.from_config(config(column__include__list="public.people.NAME,public.people.id"))
    assert only.columns("public", "people", names) == ("id", "name")


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
    assert key_columns(keys, "public", "customers", names) == ("email", "last_name")
    assert key_columns(keys, "other", "log_lines", ("line", "part", "text")) == ("part", "line")
    assert key_columns(keys, "public", "x", ("a",)) == ("a",)
    assert key_columns(keys, "public", "orders", names) is None
    assert key_columns(config(), "public", "customers", names) is None


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
    assert wanted.captures("public", "s")
    assert not wanted.snapshots("public", "s")
    assert wanted.snapshots("public", "a")
