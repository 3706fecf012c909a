"""The fold against a dictionary: whatever changes come, their net effect leaves the same table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import SinkError
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica.codes import value_codes
from tailrace.sinks.replica.fold import COUNT, FROM, KEEP, Net, fold, merge_key

KEYED = TableSchema(
    TableId("db", "public", "t"),
    (
        Column("a", ConnectSchema("int32"), pa.int32()),
        Column("b", ConnectSchema("string"), pa.string()),
        Column("v", ConnectSchema("string", True), pa.string()),
        Column("w", ConnectSchema("array", True), pa.list_(pa.int32())),
    ),
    ("a", "b"),
    ("a", "b"),
)
KEYLESS = TableSchema(KEYED.id, KEYED.columns, (), ("a", "b", "v", "w"))
KEY_TYPE = pa.struct([("a", pa.int32()), ("b", pa.string())])
MASK_TYPE = pa.struct([(name, pa.bool_()) for name in "abvw"])

Change = dict[str, Any]


def batch(table: TableSchema, changes: list[Change]) -> ChangeBatch:
    rows = {
        "op": pa.array([change["op"] for change in changes], pa.string()),
        "before": pa.array([change.get("before") for change in changes], table.row_type),
        "after": pa.array([change.get("after") for change in changes], table.row_type),
    }
    if any("other_key" in change for change in changes):
        rows["other_key"] = pa.array([change.get("other_key") for change in changes], KEY_TYPE)
    if any("unchanged" in change for change in changes):
        rows["unchanged"] = pa.array([change.get("unchanged") for change in changes], MASK_TYPE)
    return ChangeBatch(table, pa.RecordBatch.from_pydict(rows))


class Source:
    """A table that tells its changes as the log would."""

    def __init__(self, rows: dict[tuple[int, str], dict[str, Any]]) -> None:
        self.rows = dict(rows)
        self.changes: list[Change] = []

    def put(self, key: tuple[int, str], v: str | None, w: list[int] | None) -> None:
        op = "u" if key in self.rows else "c"
        self.rows[key] = {"a": key[0], "b": key[1], "v": v, "w": w}
        self.changes.append({"op": op, "after": self.rows[key]})

    def touch(self, key: tuple[int, str], w: list[int] | None) -> None:
        if key in self.rows:
            self.rows[key] = {**self.rows[key], "w": w}
            self.changes.append({"op": "u", **self.silent(key, "v")})

    def silent(self, key: tuple[int, str], *names: str) -> Change:
        hidden = dict.fromkeys(names)
        return {"after": {**self.rows[key], **hidden}, "unchanged": dict.fromkeys(names, True)}

    def delete(self, key: tuple[int, str]) -> None:
        if self.rows.pop(key, None):
            self.changes.append({"op": "d", "before": {"a": key[0], "b": key[1]}})

    def move(self, key: tuple[int, str], new: tuple[int, str], split: bool) -> None:
        if key not in self.rows or new in self.rows:
            return
        self.rows[new] = {**self.rows.pop(key), "a": new[0], "b": new[1]}
        old = {"a": key[0], "b": key[1]}
        image = self.silent(new, "v", "w")
        if split:
            self.changes.append({"op": "d", "before": old, "other_key": {"a": new[0], "b": new[1]}})
            self.changes.append({"op": "c", "other_key": old, **image})
        else:
            self.changes.append({"op": "u", "before": old, **image})

    def truncate(self) -> None:
        self.rows.clear()
        self.changes.append({"op": "t"})


keys = st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"]))
texts = st.none() | st.text("ab", max_size=2)
lists = st.none() | st.lists(st.integers(0, 2), max_size=2)
actions = st.one_of(
    st.tuples(st.just("put"), keys, texts, lists),
    st.tuples(st.just("touch"), keys, lists),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("move"), keys, keys, st.booleans()),
    st.tuples(st.just("move"), keys, keys, st.booleans()),
    st.tuples(st.sampled_from(["truncate", "cut"])),
)


def apply(net: Net, target: dict[tuple[int, str], dict[str, Any]]) -> dict[tuple[int, str], dict[str, Any]]:
    """What an engine does with the net effect, by hand."""
    before = dict(target)
    after = {} if net.cleared else dict(target)
    seen = set()
    for row in net.rows.to_pylist():
        key = (row["a"], row["b"])
        assert key not in seen
        seen.add(key)
        if row[COUNT] < 0:
            after.pop(key, None)
            continue
        image = {name: row[name] for name in "abvw"}
        origin = key if row.get(FROM + "a") is None else (row[FROM + "a"], row[FROM + "b"])
        for name in net.kept:
            if row[KEEP + name]:
                image[name] = before[origin][name]
        after[key] = image
    return after


@given(st.dictionaries(keys, st.tuples(texts, lists), max_size=6), st.lists(actions, min_size=1, max_size=25))
def test_with_a_key_the_target_equals_the_source(start: dict[Any, Any], script: list[tuple[Any, ...]]) -> None:
    rows = {key: {"a": key[0], "b": key[1], "v": v, "w": w} for key, (v, w) in start.items()}
    source, batches = Source(rows), []
    for name, *arguments in [*script, ("cut",)]:
        if name != "cut":
            getattr(source, name)(*arguments)
        elif source.changes:
            batches.append(batch(KEYED, source.changes))
            source.changes = []
    if batches:
        assert apply(fold(batches), rows) == source.rows


images = st.builds(lambda a, v, w: {"a": a, "b": "x", "v": v, "w": w}, st.integers(0, 1), texts, lists)


def frozen(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(repr(row[name]) for name in "abvw")


@given(
    st.lists(images, max_size=5), st.lists(st.tuples(st.sampled_from("cudt"), images, st.integers(0, 9)), max_size=20)
)
def test_without_a_key_the_target_is_the_same_bag(start: list[Change], script: list[tuple[str, Change, int]]) -> None:
    rows, changes = list(start), []
    for op, image, pick in script:
        change: Change = {"op": op}
        if op in "ud":
            if not rows:
                continue
            change["before"] = rows.pop(pick % len(rows))
        if op in "cu":
            rows.append(image)
            change["after"] = image
        if op == "t":
            rows.clear()
        changes.append(change)
    if not changes:
        return
    net = fold([batch(KEYLESS, changes)])
    bag = Counter() if net.cleared else Counter(map(frozen, start))
    for row in net.rows.to_pylist():
        bag[frozen(row)] += row[COUNT]
    assert +bag == Counter(map(frozen, rows))
    assert min(bag.values(), default=0) >= 0


def test_a_delete_without_its_row_is_an_error() -> None:
    for table in (KEYED, KEYLESS):
        with pytest.raises(SinkError, match="REPLICA IDENTITY FULL"):
            fold([batch(table, [{"op": "d"}])])


def test_the_merge_key_is_what_old_rows_hold() -> None:
    assert merge_key(KEYED) == ("a", "b")
    assert merge_key(KEYLESS) == ()
    assert merge_key(TableSchema(KEYED.id, KEYED.columns, ("a",), ())) == ("a",)
    assert merge_key(TableSchema(KEYED.id, KEYED.columns, ("a",), ("b",))) == ("b",)


def test_rows_are_not_found_by_a_key_that_may_be_null() -> None:
    """As message.key.columns may name one: an update of such a row would add it once more."""
    table = TableSchema(KEYED.id, KEYED.columns, ("v",), KEYLESS.identity)
    assert merge_key(table) == ()
    old, new = ({"a": 1, "b": "x", "v": None, "w": [number]} for number in (1, 2))
    rows = fold([batch(table, [{"op": "u", "before": old, "after": new}])]).rows.to_pylist()
    assert sorted((row["w"], row[COUNT]) for row in rows) == [([1], -1), ([2], 1)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([float("nan"), None, float("nan"), 1.0, None]),
        pa.array([{"x": None}, None, {"x": None}, {"x": 1}, None]),
        pa.array([[None], [], [None], [1, None], []]),
        pa.array([[("k", 1)], None, [("k", 1)], [], None], pa.map_(pa.string(), pa.int8())),
        pa.array([b"x", b"", b"x", None, b""]),
    ],
)
def test_equal_values_of_any_type_get_equal_codes(values: pa.Array) -> None:
    first, second, third, fourth, fifth = value_codes(values)
    assert first == third
    assert second == fifth
    assert len({first, second, fourth}) == 3


def test_rows_that_had_no_value_in_the_key_yet_are_counted() -> None:
    table = TableSchema(KEYED.id, KEYED.columns, ("a",), ("a", "b", "v", "w"))
    old = {"a": None, "b": "x", "v": "v", "w": None}
    changes = [
        {"op": "u", "before": old, "after": {**old, "v": "u"}},
        {"op": "d", "before": {**old, "v": "u"}},
        {"op": "c", "after": {**old, "a": 1}},
        {"op": "u", "before": {**old, "a": 1}, "after": {**old, "a": 1, "v": "w"}},
    ]
    net = fold([batch(table, changes)])
    assert (net.upserted, net.deleted) == (2, 0)
    assert net.lacking == "2 rows were changed while they had no value in what is the key by now"
    assert fold([batch(table, [*changes, {"op": "t"}])]).lacking is None
