"""Tests the plan of a table's events, and that its rules are written in one place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tailrace.events
from tailrace.connectors.postgres.position import SOURCE
from tailrace.events.keychange import split_key_changes
from tailrace.events.plan import NEW_KEY, OLD_KEY, EventPlan, EventPlans, Origin
from tailrace.model.table import TableId, TableSchema
from tests.unit.events.changes import COLUMNS, changes, table
from tests.unit.events.event_recordings import config

EVENTS = Path(tailrace.events.__file__).parent
OLD, NEW = {"id": 1, "code": "a", "note": None}, {"id": 2, "code": "a", "note": None}


def plan(of: TableSchema | None = None, **properties: str) -> EventPlan:
    return EventPlans(config(**properties), SOURCE).of(of or table())


@pytest.mark.parametrize(
    ("rule", "module"),
    [
        ("__debezium.newkey", "plan.py"),
        ("tombstones.on.delete", "plan.py"),
        ("extended.headers.enabled", "headers.py"),
        ("unavailable.value.placeholder", "images.py unavailable.py unfold.py"),
        ('"other_key"', "plan.py keychange.py layouts.py"),
        ("__version__", "plan.py"),
        ("is_message", "plan.py envelope.py layouts.py transactions.py"),
        ("include.schema.changes", "schema_change.py"),
    ],
)
def test_a_rule_of_events_is_in_one_place(rule: str, module: str) -> None:
    """What names these decides them, or makes what the plan reads; a renderer asks the plan."""
    places = {path.name for path in EVENTS.rglob("*.py") if rule in path.read_text(encoding="utf-8")}
    assert places <= set(module.split()), f"{rule}: let {places - set(module.split())} follow events/plan.py"


def test_a_key_is_in_the_new_image_or_in_the_old_one() -> None:
    rows = changes(table(), {"op": "d", "before": OLD}).rows
    assert plan().key_columns(rows) == ("after", "before")


def test_the_fields_of_a_key_have_the_columns_that_they_come_from() -> None:
    two = TableSchema(TableId("golden", "public", "things"), COLUMNS, ("code", "id"), ("code", "id"))
    assert [(field.name, column) for field, column in plan(two).key] == [("code", "code"), ("id", "id")]
    assert plan(table(key=())).key == ()


def test_the_last_field_of_a_key_of_several_tables_in_a_topic_has_no_column() -> None:
    shared = plan(
        topic_naming_strategy="io.debezium.schema.DefaultRegexTopicNamingStrategy",
        topic_regex="(.*)",
        topic_replacement="all",
    )
    keys = changes(table(), {"op": "c", "after": NEW}).rows.column("after")
    assert [column for _, column in shared.key] == ["id", None]
    assert [values.to_pylist() for values in shared.key_values(keys)] == [[2], ["server1.things"]]


def test_the_delete_of_a_key_change_names_the_new_key_and_its_create_the_old_one() -> None:
    row = {"op": "u", "before": OLD, "after": NEW}
    rows = split_key_changes(changes(table(), {"op": "u", "before": OLD, "after": OLD}, row), has_zeros=False).rows
    other = plan().other_key(rows)
    assert other is not None
    assert {name: np.flatnonzero(has_it).tolist() for name, has_it in other.rows.items()} == {
        NEW_KEY: [1],
        OLD_KEY: [2],
    }
    assert other.keys.to_pylist() == [None, {"id": 2}, {"id": 1}]
    assert plan().other_key(rows.slice(0, 1)) is None, "no row of these has one"
    assert plan(table(key=())).other_key(rows) is None


def test_deletes_are_followed_by_tombstones_unless_the_property_says_no() -> None:
    rows = changes(table(), {"op": "c", "after": NEW}, {"op": "d", "before": OLD}).rows
    tombstones = plan().tombstones(rows)
    assert tombstones is not None
    assert tombstones.tolist() == [False, True]
    assert plan().tombstones(rows.slice(0, 1)) is None
    assert plan(tombstones_on_delete="false").tombstones(rows) is None


def test_each_member_of_an_envelope_and_of_its_source_has_an_origin() -> None:
    members = {member.field.name: (member.origin, member.column) for member in plan().members}
    assert members["before"] == (Origin.IMAGE, "before")
    assert members["source"][0] is Origin.BLOCK
    assert {members[name][0] for name in ("ts_ms", "ts_us", "ts_ns")} == {Origin.CLOCK}
    assert {members[name][0] for name in ("op", "transaction")} == {Origin.COLUMN}
    source = {member.field.name: member.origin for member in EventPlans(config(), SOURCE).source.members}
    assert {source[name] for name in ("version", "connector", "name", "db", "schema", "table")} == {Origin.TEXT}
    assert (source["snapshot"], source["sequence"], source["lsn"]) == (Origin.SNAPSHOT, Origin.SEQUENCE, Origin.COLUMN)


def test_a_logical_message_has_no_headers_and_its_content_in_the_new_image() -> None:
    message = TableSchema(TableId("golden", "", ""), COLUMNS[:2], ("id",), ())
    assert not plan(message).has_headers
    image = next(member for member in plan(message).members if member.field.name == "message")
    assert (image.origin, image.column) == (Origin.IMAGE, "after")
