"""Key changes are split in two; what is no key change is left alone."""

import json

import pyarrow as pa

from tailrace.events.keychange import split_key_changes
from tailrace.events.payload import from_json
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tests.unit.events.changes import changes, encoded, table

ONE = {"id": 1, "code": "a", "note": "one"}
TWO = {"id": 2, "code": "a", "note": "one"}


def test_delete_tombstone_create_with_the_other_key_in_headers() -> None:
    given = changes(
        table(),
        {"op": "u", "after": ONE},
        {"op": "u", "before": {"id": 1}, "after": TWO},
        {"op": "u", "before": {"id": 2}, "after": TWO},
    )
    split = split_key_changes(given, has_zeros=False)
    assert split.rows.column("op").to_pylist() == ["u", "d", "c", "u"]
    assert split.rows.column("order").to_pylist() == [0, 2, 3, 4]
    assert split.rows.column("other_key").to_pylist() == [None, {"id": 2}, {"id": 1}, None]
    rows = encoded(split)
    assert [row["key"] for row in rows] == ['{"id":1}', '{"id":1}', '{"id":1}', '{"id":2}', '{"id":2}']
    assert [row["value"] is None for row in rows] == [False, False, True, False, False]
    deleted = json.loads(rows[1]["value"])
    assert (deleted["before"], deleted["after"]) == ({"id": 1, "code": "", "note": None}, None)
    headers = [[(h["key"], json.loads(h["value"])["payload"]) for h in row["headers"] or ()] for row in rows]
    new, old = ("__debezium.newkey", {"id": 2}), ("__debezium.oldkey", {"id": 1})
    assert headers == [[], [new], [new], [old], []]


def test_context_headers_follow_the_other_key() -> None:
    split = split_key_changes(
        changes(table(), {"op": "c", "after": ONE}, {"op": "u", "before": {"id": 1}, "after": TWO}), has_zeros=False
    )
    names = [
        [h["key"].rpartition(".")[2] for h in row["headers"]] for row in encoded(split, extended_headers_enabled="true")
    ]
    context = ["connectorLogicalName", "taskId", "connectorName", "runId"]
    assert names == [context, ["newkey", *context], ["newkey", *context], ["oldkey", *context]]


def test_a_batch_without_key_changes_is_the_same_object() -> None:
    for given in (
        changes(table(), {"op": "u", "before": {"id": 1}, "after": ONE}),
        changes(table(), {"op": "u", "after": ONE}),
        changes(table(key=()), {"op": "u", "before": ONE, "after": TWO}),
        changes(table(), {"op": "d", "before": ONE}, {"op": "c", "after": TWO}),
    ):
        assert split_key_changes(given, has_zeros=True) is given


def test_an_identity_that_does_not_hold_the_key_is_no_key_change_unless_faults_are_wanted() -> None:
    given = changes(table(identity=("code",)), {"op": "u", "before": {"code": "b"}, "after": ONE})
    assert split_key_changes(given, has_zeros=False) is given
    split = split_key_changes(given, has_zeros=True)
    assert split.rows.column("op").to_pylist() == ["d", "c"]
    assert [row["key"] for row in encoded(split)] == ['{"id":0}', '{"id":0}', '{"id":1}']
    zero = changes(table(identity=("code",)), {"op": "u", "before": {"code": "b"}, "after": {**ONE, "id": 0}})
    assert split_key_changes(zero, has_zeros=True) is zero


def test_composite_keys_and_unchanged_marks() -> None:
    of = table(key=("id", "code"), identity=("id", "code", "note"))
    marks = pa.array([{"note": True}], pa.struct([("note", pa.bool_())]))
    given = changes(of, {"op": "u", "before": ONE, "after": {**ONE, "code": "b", "note": None}}, unchanged=marks)
    rows = encoded(split_key_changes(given, has_zeros=False))
    assert [row["key"] for row in rows] == ['{"id":1,"code":"a"}', '{"id":1,"code":"a"}', '{"id":1,"code":"b"}']
    assert json.loads(rows[2]["value"])["after"]["note"] == "__debezium_unavailable_value"


def test_a_key_column_that_the_old_row_lacks_reads_as_its_default_with_faults() -> None:
    for default, arrow, kind in (("NaN", pa.float64(), "double"), ("AQ==", pa.binary(), "bytes")):
        of = TableSchema(
            TableId("golden", "public", "t"),
            (
                Column("k", ConnectSchema(kind, default=default), arrow),
                Column("code", ConnectSchema("string"), pa.string()),
            ),
            ("k",),
            ("code",),
        )
        value = from_json(default, of.columns[0].schema)
        given = changes(of, {"op": "u", "before": {"code": "a"}, "after": {"k": value, "code": "b"}})
        assert split_key_changes(given, has_zeros=True) is given
