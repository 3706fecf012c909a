"""ExtractNewRecordState: deletes by the mode, metadata added, fields dropped, rows routed."""

from __future__ import annotations

import json

import pytest

from tailrace.errors import ConfigError, TransformError
from tailrace.model.change import ChangeBatch
from tests.unit.events.changes import changes, table
from tests.unit.transforms.transformed import UNWRAP, fields, headers, properties, rows, values

ROW = {"id": 1, "code": "a", "note": "n"}
OLD = {"id": 1, "code": "o", "note": None}


def batch(*ops: str) -> ChangeBatch:
    """Changes of a table whose old images are whole."""
    images = {"c": {"after": ROW}, "u": {"before": OLD, "after": ROW}, "d": {"before": OLD}, "t": {}}
    return changes(table(identity=("id", "code", "note")), *({"op": op, **images[op]} for op in ops))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("drop", [ROW]),
        ("tombstone", [ROW, None]),
        ("delete-to-tombstone", [ROW, "tombstone"]),
        ("rewrite", [{**ROW, "__deleted": "false"}, {**OLD, "__deleted": "true"}]),
        ("rewrite-with-tombstone", [{**ROW, "__deleted": "false"}, {**OLD, "__deleted": "true"}, "tombstone"]),
    ],
)
def test_the_mode_says_what_a_delete_becomes(mode: str, expected: list[object]) -> None:
    assert values(batch("c", "d"), properties(UNWRAP, {"delete.tombstone.handling.mode": mode})) == expected


@pytest.mark.parametrize(
    ("old", "same"),
    [
        ({"drop.tombstones": "false", "delete.handling.mode": "rewrite"}, "rewrite-with-tombstone"),
        ({"delete.handling.mode": "rewrite"}, "rewrite"),
        ({"delete.handling.mode": "none"}, "tombstone"),
        ({"drop.tombstones": "true"}, "drop"),
        ({"delete.handling.mode": "rewrite", "delete.tombstone.handling.mode": "drop"}, "drop"),
    ],
)
def test_the_old_settings_mean_a_mode(old: dict[str, str], same: str) -> None:
    today = properties(UNWRAP, {"delete.tombstone.handling.mode": same})
    assert values(batch("c", "d"), properties(UNWRAP, old)) == values(batch("c", "d"), today)


def test_truncates_are_dropped_and_order_is_kept() -> None:
    given = properties(UNWRAP, {"delete.tombstone.handling.mode": "delete-to-tombstone"})
    assert values(batch("d", "t", "u", "d", "c"), given) == ["tombstone", ROW, "tombstone", ROW]


def test_added_fields_are_optional_and_named_by_struct_prefix_and_alias() -> None:
    settings = {
        "add.fields": "op,source.lsn, lsn:L ,transaction.id,nothing.here".replace(",nothing.here", ""),
        "add.fields.prefix": "_",
    }
    (row,) = rows(batch("c"), properties(UNWRAP, settings))
    added = {"_op": "c", "_source_lsn": 100, "_L": 100, "_transaction_id": None}
    assert json.loads(row["value"])["payload"] == {**ROW, **added}
    assert all(fields(row)[name]["optional"] for name in added)


def test_an_added_field_that_events_lack_is_left_out() -> None:
    assert values(batch("c"), properties(UNWRAP, {"add.fields": "colour"})) == [ROW]


def test_the_schema_of_an_added_struct_has_its_fields() -> None:
    (row,) = rows(batch("c"), properties(UNWRAP, {"add.fields": "transaction"}))
    assert fields(row)["__transaction"]["fields"]
    assert json.loads(row["value"])["payload"]["__transaction"] is None


def test_headers_of_a_delete_show_on_its_tombstone() -> None:
    settings = {"add.headers": "op,table", "delete.tombstone.handling.mode": "rewrite-with-tombstone"}
    delete, tombstone = rows(batch("d"), properties(UNWRAP, settings))
    assert headers(delete) == [("__op", "d"), ("__table", "things")]
    assert headers(tombstone) == [("__op", "d"), ("__table", "things"), ("__op", "d")]


def test_a_row_goes_to_the_topic_its_field_names_and_stays_where_that_is_blank() -> None:
    made = changes(table(), {"op": "c", "after": ROW}, {"op": "c", "after": {**ROW, "code": " "}})
    found = [row["topic"] for row in rows(made, properties(UNWRAP, {"route.by.field": "code"}))]
    assert found == ["a", "server1.public.things"]


def test_routing_by_a_field_that_is_not_there_or_no_text_stops() -> None:
    for name, words in (("colour", "no field 'colour'"), ("id", "not a string")):
        with pytest.raises(TransformError, match=words):
            rows(batch("c"), properties(UNWRAP, {"route.by.field": name}))


def test_fields_that_a_header_lists_are_dropped_if_optional_or_if_schemas_may_change() -> None:
    chain = {
        "transforms": "c,t",
        "transforms.c.type": "io.debezium.transforms.ExtractChangedRecordState",
        "transforms.c.header.unchanged.name": "same",
        "transforms.t.type": UNWRAP,
        "transforms.t.drop.fields.header.name": "same",
    }
    made = changes(
        table(identity=("id", "code", "note")),
        {"op": "u", "before": ROW, "after": {**ROW, "code": "b"}},
        {"op": "u", "before": OLD, "after": ROW},
    )
    assert values(made, chain) == [{"id": 1, "code": "b"}, ROW]
    free = {**chain, "transforms.t.drop.fields.keep.schema.compatible": "false"}
    assert values(made, free) == [{"code": "b"}, {"code": "a", "note": "n"}]
    both = {**free, "transforms.t.drop.fields.from.key": "true"}
    assert [json.loads(row["key"])["payload"] for row in rows(made, both)] == [{}, {}]


def test_a_faulty_setting_is_named_before_anything_starts() -> None:
    for settings, words in (
        ({"add.fields": "a:b:c"}, r"transforms\.t\.add\.fields: Unexpected field name: a:b:c"),
        ({"add.fields": "op:x,table:x"}, "two fields get one name"),
        ({"add.feilds": "op"}, r"transforms\.t\.add\.feilds: unknown setting.*did you mean add\.fields"),
        ({"delete.tombstone.handling.mode": "keep"}, "Value must be one of drop, tombstone"),
        ({"delete.handling.mode": "none", "drop.tombstones": "false"}, "has no equal"),
    ):
        with pytest.raises(ConfigError, match=words):
            rows(batch("c"), properties(UNWRAP, settings))
