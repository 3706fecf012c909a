"""Which columns of a table are captured, and what each becomes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.faults import NO_FAULTS, Fault
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.columns import CapturedTable, ColumnRules
from tailrace.connectors.defaults import Default
from tailrace.connectors.value_type import text_type
from tailrace.errors import ConfigError
from tailrace.model.table import TableId
from tests.unit.connectors.rules import INTEGER, column, config

TABLE = TableId("shop", "dbo", "people")
ID = column("id", INTEGER, type_name="int", length=10, is_character=False, required=True)
NAME, NOTE = column("name", comment="given name"), column("note", default=Default("'-'", "-"))


def captured(columns: Sequence[ColumnInfo], key: tuple[str, ...] = ("id",), **properties: object) -> CapturedTable:
    names = tuple(each.name for each in columns)
    found = ColumnRules(config(**properties)).captured(TABLE, columns, key, names)
    assert found is not None
    return found


def test_columns_key_and_old_images() -> None:
    found = captured([ID, NAME, NOTE])
    schema = found.schema
    assert [each.name for each in schema.columns] == ["id", "name", "note"]
    assert [each.schema.optional for each in schema.columns] == [False, True, True]
    assert schema.column("note").schema.default == "-"
    assert (schema.key, schema.identity) == (("id",), ("id", "name", "note"))
    assert found.types[0].convert(pa.array(["7"])).to_pylist() == [7]


def test_an_excluded_column_is_neither_in_values_nor_in_old_images() -> None:
    schema = captured([ID, NAME, NOTE], column__exclude__list="dbo.people.name").schema
    assert [each.name for each in schema.columns] == ["id", "note"]
    assert schema.identity == ("id", "note")


def test_an_excluded_key_column_stays_in_the_key() -> None:
    schema = captured([ID, NAME], column__exclude__list=r".*\.id").schema
    assert [(each.name, each.in_value) for each in schema.columns] == [("name", True), ("id", False)]
    assert schema.key == ("id",)


def test_message_key_columns_names_another_key() -> None:
    assert captured([ID, NAME], message__key__columns=r"dbo\.people\.name").schema.key == ("name",)


def test_a_type_without_a_mapping_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        schema = captured([ID, column("place", None, type_name="geography")]).schema
    assert [each.name for each in schema.columns] == ["id"]
    assert "dbo.people.place is left out: type the type geography has no mapping" in caplog.text


def test_a_table_without_captured_columns_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert ColumnRules(config()).captured(TABLE, [column("place", None)], (), ()) is None
    assert "dbo.people has no columns to capture" in caplog.text


def test_comments_are_shown_only_if_configured() -> None:
    assert captured([ID, NAME]).schema.column("name").schema.doc is None
    assert captured([ID, NAME], include__schema__comments=True).schema.column("name").schema.doc == "given name"


def test_a_mask_replaces_values_and_is_in_the_schema() -> None:
    found = captured([ID, NAME], column__mask__with__3__chars=r"dbo\.people\.name")
    assert found.types[1].convert(pa.array(["Ada"])).to_pylist() == ["***"]
    assert dict(found.schema.column("name").schema.parameters) == {"masked": "true"}


def test_asterisks_in_a_key_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"dbo\.people\.name"):
        captured([ID, NAME], ("name",), column__mask__with__3__chars=r"dbo\.people\.name")


def test_a_placeholder_is_masked_by_a_fault_alone() -> None:
    given: dict[str, Any] = {"column__mask__with__3__chars": r"dbo\.people\.note"}
    given["unavailable__value__placeholder"] = "unknown"
    for faults, shown in ((NO_FAULTS, None), (frozenset({Fault.MASKED_PLACEHOLDERS}), "***")):
        found = captured([ID, NAME, NOTE], **given, compat__faults=faults)
        assert [each.placeholder for each in found.schema.columns] == [None, None, shown]


def test_a_key_that_a_replica_keeps_in_part_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    at = column("at", replace(INTEGER, loses="its zone"), type_name="timetz", required=True)
    for _ in range(2):
        captured([at, NAME], ("at",), value__loss__handling__mode="text")
    assert [each.getMessage() for each in caplog.records] == [
        "dbo.people: a replica keeps the key column at without its zone, so rows whose keys differ in that alone "
        "are one row there"
    ]
    captured([replace(at, name="other"), NAME], ("other",))
    assert len(caplog.records) == 1, "events have the value"


def test_columns_without_a_mapping_are_known() -> None:
    found = captured([ID, column("place", None, type_name="sql_variant")])
    assert (found.schema.row_type.names, found.left_out) == (["id"], ("place",))


def test_a_key_that_would_make_one_row_of_two_is_exact_in_a_replica() -> None:
    at = column("at", replace(INTEGER, loses="its zone"), type_name="timetz", required=True)
    at, exact = replace(at, exact=text_type()), {"value__loss__handling__mode": "text"}
    schema = captured([at, NAME], ("at",), **exact).schema
    assert (schema.column("at").schema.type, schema.column("at").loses) == ("string", None)
    assert captured([at, NAME], ("name",), **exact).schema.column("at").loses == "its zone"
    assert captured([at, NAME], ("at",)).schema.column("at").schema.type == "int32", "events are the reference's"
