"""Settings that decide how values are kept: others than before make a table incomplete, if they were its columns'."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tailrace.capture.kept_values import KeptSettings
from tailrace.config.faults import Fault
from tailrace.connectors.columns import ColumnRules
from tailrace.connectors.types import temporal
from tailrace.connectors.types.binary import binary_type
from tailrace.connectors.types.decimal import fixed_type
from tailrace.connectors.value_type import as_string
from tailrace.model.differences import differences
from tailrace.model.structure import Stored, Structure
from tailrace.model.table import TableId
from tests.unit.connectors.rules import INTEGER, column, config

TABLE = TableId("shop", "dbo", "people")
OVERRIDE = {"snapshot__select__statement__overrides__dbo.people": "SELECT 1"}
LEFT_OUT = "skipped.operations or a filter step left out some of its changes"
ALL = {"column__out__of__range__null": ".*"}


def described(steps: Sequence[object] = (), **properties: object) -> Structure:
    settings = replace(config(**properties), steps=json.dumps(steps))
    columns = [
        column("id", INTEGER, type_name="int", length=10, is_character=False, required=True),
        column("name"),
        column("at", temporal.timestamp_form("adaptive", 6).read_by(as_string, 6), is_character=False),
        column("octets", binary_type(settings), is_character=False),
        column("price", fixed_type(10, 2, settings), is_character=False),
    ]
    found = ColumnRules(settings).captured(TABLE, columns, ("id",), [each.name for each in columns])
    assert found is not None
    structure = Structure("1", {each.name: str(place) for place, each in enumerate(columns)})
    return KeptSettings(settings).described(structure, found.schema)


def lost(before: Structure, now: Structure) -> Sequence[str]:
    """The columns whose values may be others."""
    start, end = "the settings by which values of ", " are kept were changed"
    return [each.removeprefix(start).removesuffix(end) for each in differences(Stored.of(before), now).why]


@pytest.mark.parametrize(
    ("before", "now", "columns"),
    [
        ({}, {}, []),
        (ALL, ALL, []),
        (ALL, {"column__out__of__range__text": ".*"}, ["at"]),
        (ALL, {}, ["at"]),
        ({}, ALL, []),  # no row had such a value
        ({"column__mask__with__3__chars": ".*name"}, {}, ["name"]),
        ({}, {"column__mask__with__3__chars": ".*name"}, ["name"]),
        ({"column__mask__with__3__chars": ".*name"}, {"column__mask__with__4__chars": ".*name"}, ["name"]),
        ({"column__mask__with__3__chars": ".*other"}, {}, []),
        ({"column__truncate__to__2__chars": ".*"}, {}, ["name", "octets"]),
        ({"column__mask__hash__v2__SHA-256__with__salt__a": ".*name"}, {}, ["name"]),
        ({"binary__handling__mode": "hex"}, {"binary__handling__mode": "base64"}, ["octets"]),
        ({"decimal__handling__mode": "double"}, {}, ["price"]),
        ({}, {"decimal__handling__mode": "string"}, ["price"]),
        ({"decimal__handling__mode": "string"}, {}, ["price"]),
        ({"time__precision__mode": "connect"}, {}, []),  # rows in native types are of full precision in any mode
    ],
)
def test_other_settings_make_those_columns_differ_that_they_apply_to(
    before: dict[str, str], now: dict[str, str], columns: list[str]
) -> None:
    assert lost(described(**before), described(**now)) == columns


def test_changes_that_were_skipped_make_the_table_differ_once_they_are_not() -> None:
    both, none = described(skipped__operations={"d", "t"}), described(skipped__operations=set())
    assert lost(both, described(skipped__operations={"t"})) == [LEFT_OUT]
    assert lost(none, both) == []


@pytest.mark.parametrize(
    ("filters", "is_lost"),
    [
        ([], True),
        ([{"operations": ["delete", "READ", "create", "u"]}], True),
        ([{"operations": ["create", "update", "read"]}, {"tables": ["dbo[.]PEOPLE"]}], False),
        ([{"tables": ["dbo[.]people", ".*[.]other"], "operations": ["c", "r"]}], False),
        ([{"tables": ["dbo[.]other"]}], False),
    ],
)
def test_changes_that_a_filter_left_out_make_the_table_differ_once_it_does_not(
    filters: list[dict[str, list[str]]], is_lost: bool
) -> None:
    before = described([{"filter": {"operations": ["c", "u", "r"]}}, {"route": {}}])
    assert lost(before, described([{"filter": each} for each in filters])) == ([LEFT_OUT] if is_lost else [])


def test_rows_that_snapshots_left_out_make_the_table_differ_once_they_do_not() -> None:
    everything = described()
    for part in (
        {"snapshot__include__collection__list": (re.compile("dbo.other"),)},
        {"snapshot__select__statement__overrides": ["dbo.people"], **OVERRIDE},
    ):
        assert lost(described(**part), everything) == ["snapshots did not read all of its rows"]
        assert lost(everything, described(**part)) == []


def test_other_faults_make_the_table_differ() -> None:
    assert lost(described(compat__faults={Fault.UNSIGNED_SCALES}), described()) == [
        "compat.faults or value.loss.handling.mode was changed, and maybe values with it"
    ]


def test_a_description_of_an_earlier_release_and_a_new_column_differ_in_no_setting() -> None:
    now = described(column__mask__with__3__chars=".*name")
    assert not lost(Structure("1", now.columns), now)


def test_a_description_does_not_contain_the_salt() -> None:
    stored = described(**{"column__mask__hash__v2__SHA-256__with__salt__s3cr3t": ".*name"}).stored
    assert "s3cr3t" not in stored
