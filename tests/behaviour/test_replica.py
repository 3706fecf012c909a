"""Replicas with real Spark and real Delta tables equal their source, also after repeated micro-batches.

All engines run these tests: `deltalake` here, others from test_replica_engines.py.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from tailrace.errors import SinkError
from tailrace.model.change import ControlBatch
from tailrace.model.held import held_type, json_text
from tailrace.model.native import native_rows
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica.aside import tables_set_aside
from tailrace.sinks.replica.compare import BucketTotals
from tailrace.sinks.replica.compare import ReplicaVersion as Compared
from tailrace.sinks.replica.delta.maintenance import properties
from tailrace.sinks.replica.sink import read_table, row_count
from tailrace.sinks.replica.target import Target
from tests.behaviour.engines import BY_SPARK, ENGINE, IS_ICEBERG
from tests.behaviour.replicas import (
    EVENTS,
    ORDERS,
    Replica,
    changes,
    created,
    event,
    key,
    order,
    placed_in,
    read,
    retyped,
)


def test_inserts_updates_and_deletes(replica: Replica) -> None:
    full = order(1, "é", at=1_000_000, tags=["x", None])
    report = replica.write(0, created(full, order(2), order(2, line="b"), order(3)))["public.orders"]
    assert (report.upserted, report.deleted) == (4, 0)
    batch = changes(
        ORDERS,
        {"op": "u", "after": order(2, "new")},
        {"op": "d", "before": {**order(3, None)}},
        {"op": "c", "after": order(4)},
        {"op": "d", "before": order(4, None)},
    )
    report = replica.write(1, batch)["public.orders"]
    assert (report.upserted, report.deleted) == (1, 2)
    assert replica.notes() == {(1, "a"): "é", (2, "a"): "new", (2, "b"): "n"}
    row = next(row for row in replica.rows() if row["id"] == 1)
    assert row["at"].isoformat() == "1970-01-01T00:00:01"
    assert row["tags"] == ["x", None]
    assert row_count(replica.root, "public.orders", replica.options) == 3
    read_back, layout = Compared.of(Target(replica.root, "public.orders", replica.options), ORDERS)
    source = native_rows(ORDERS, pa.array([full, order(2, "new"), order(2, line="b")], ORDERS.row_type))
    expected = BucketTotals([layout.digests(pa.Table.from_struct_array(source))])
    assert not expected.differing(BucketTotals(read_back.rows())).any(), "a comparison sees what the engine wrote"


@pytest.mark.skipif(not BY_SPARK, reason="needs a session that merges")
def test_engines_take_turns_and_both_are_maintained(replica: Replica) -> None:
    """Tables are known by their records to both, and the properties of maintenance are none that Spark refuses."""
    by_spark = replica.sink
    for number in range(4):
        replica.sink = by_spark if number % 2 else replace(by_spark, engine="deltalake")
        batch = [created(order(number), order(9, str(number))), created(event("a"), table=EVENTS)]
        replica.write(number, *batch)
    replica.write(3, *batch)
    wider = replace(ORDERS, columns=(*ORDERS.columns, Column("extra", ConnectSchema("int32", True), pa.int32())))
    for number, engine in ((4, "spark"), (5, "deltalake")):
        replica.sink = replace(by_spark, engine=engine)  # type: ignore[arg-type]
        replica.write(number, changes(wider, {"op": "t"}), created(order(1, extra=number), table=wider))
    target = Target(replica.root, "public.orders", replica.options).open()
    assert target is not None
    assert IS_ICEBERG or {**target.properties} == properties(120 * 60)
    assert [row["extra"] for row in replica.rows()] == [5]
    assert len(replica.rows(EVENTS)) == 4


def test_several_tables_and_a_control_topic_in_one_batch(replica: Replica) -> None:
    other = replace(ORDERS, id=TableId("shop", "public", "copies"))
    schema = ConnectSchema("struct", True)
    control = ControlBatch("heartbeat", schema, schema, pa.RecordBatch.from_pydict({"value": ["{}"]}))
    reports = replica.write(0, created(order(1)), control, created(order(9), table=other), created(order(2)))
    assert {name: report.upserted for name, report in reports.items()} == {"public.orders": 2, "public.copies": 1}
    assert replica.notes() == {(1, "a"): "n", (2, "a"): "n"}
    assert [row["id"] for row in replica.rows(other)] == [9]


def test_truncate_takes_what_came_before(replica: Replica) -> None:
    replica.write(0, created(order(1), order(2)))
    batch = changes(ORDERS, {"op": "c", "after": order(3)}, {"op": "t"}, {"op": "c", "after": order(4)})
    replica.write(1, batch)
    assert replica.notes() == {(4, "a"): "n"}
    replica.write(2, changes(ORDERS, {"op": "t"}))
    assert replica.notes() == {}


@pytest.mark.parametrize("split", [True, False])
def test_a_changed_key_moves_the_row(replica: Replica, split: bool) -> None:
    replica.write(0, created(order(1, "one"), order(2, "two")))
    deleted = {"op": "d", "before": order(1, None), "other_key": key(7)}
    inserted = {"op": "c", "after": order(7, "moved"), "other_key": key(1)}
    updated = {"op": "u", "before": order(1, None), "after": order(7, "moved")}
    replica.write(1, changes(ORDERS, *([deleted, inserted] if split else [updated])))
    assert replica.notes() == {(7, "a"): "moved", (2, "a"): "two"}


def test_a_large_value_that_was_not_repeated_stays(replica: Replica) -> None:
    replica.write(0, created(order(1, "one"), order(2, "two"), order(3, "three"), order(4, "four")))
    silent = {"op": "u", "after": order(1, None, tags=["t"]), "unchanged": ["note"]}
    told = {"op": "u", "after": order(2, "now", tags=["t"])}
    after = {"op": "u", "after": order(2, None, tags=["u"]), "unchanged": ["note"]}
    moved = [
        {"op": "d", "before": order(3, None), "other_key": key(5)},
        {"op": "c", "after": order(5, None), "other_key": key(3), "unchanged": ["note"]},
        {"op": "u", "before": order(4, None), "after": order(3, None), "unchanged": ["note"]},
    ]
    replica.write(1, changes(ORDERS, silent, told, after, *moved))
    assert replica.notes() == {(1, "a"): "one", (2, "a"): "now", (5, "a"): "three", (3, "a"): "four"}
    assert sorted(str(row["tags"]) for row in replica.rows()) == ["None", "None", "['t']", "['u']"]


def test_without_a_key_equal_rows_are_counted(replica: Replica) -> None:
    nan = float("nan")
    twice, null, rich = event("a", nan, [1, 2]), event(None), event("b", 1.5, [], [("k", "v")])
    replica.write(0, created(twice, twice, twice, null, null, rich, event("a", nan, [1]), table=EVENTS))
    batch = changes(
        EVENTS,
        {"op": "d", "before": twice},
        {"op": "d", "before": null},
        {"op": "u", "before": rich, "after": event("b", 2.5, [], [("k", "w")])},
        {"op": "c", "after": twice},
        {"op": "d", "before": twice},
        {"op": "c", "after": event("c")},
        {"op": "c", "after": event("c")},
    )
    report = replica.write(1, batch)["public.events"]
    assert (report.upserted, report.deleted) == (3, 3)
    rows = [event("a", nan, [1, 2])] * 2 + [event("a", nan, [1]), null, event("b", 2.5, [], [("k", "w")])]
    # By their text, as NaN is not equal to itself.
    rows += [event("c"), event("c")]
    if ENGINE == "postgres":  # a database has no maps
        rows = [{**row, "more": row["more"] and json_text(row["more"])} for row in rows]
    assert list(map(repr, replica.rows(EVENTS))) == sorted(map(repr, rows))


def test_a_batch_written_again_changes_nothing(replica: Replica) -> None:
    replica.write(0, created(event("a"), table=EVENTS), created(order(1)))
    version = replica.write(1, created(event("a"), table=EVENTS))["public.events"].version
    again = replica.write(1, created(event("a"), table=EVENTS))["public.events"]
    assert version is not None
    assert (again.upserted, again.version) == (0, None)
    replica.write(0, created(event("a"), table=EVENTS), changes(ORDERS, {"op": "t"}))
    assert replica.rows(EVENTS) == [event("a")] * 2
    assert replica.notes() == {(1, "a"): "n"}


def test_another_query_is_not_taken_for_a_replay(replica: Replica) -> None:
    replica.write(5, created(event("a"), table=EVENTS))
    replica.sink = replace(replica.sink, query_id="another")
    replica.write(0, created(event("a"), table=EVENTS))
    assert replica.rows(EVENTS) == [event("a")] * 2


def test_a_batch_broken_off_between_parts_is_completed(replica: Replica) -> None:
    """Parts are cut where the schema changes; the first is there already when the batch comes again."""
    wider = replace(ORDERS, columns=(*ORDERS.columns, Column("extra", ConnectSchema("int32", True), pa.int32())))
    first, second = created(order(1)), created(order(2, extra=1), table=wider)
    replica.write(0, first)
    report = replica.write(0, first, second)["public.orders"]
    assert report.upserted == 1
    assert replica.notes() == {(1, "a"): "n", (2, "a"): "n"}


def test_order_is_by_sequence_whatever_the_order_of_arrival(replica: Replica) -> None:
    batches = [changes(ORDERS, {"op": "c" if n == 0 else "u", "after": order(1, str(n))}) for n in range(20)]
    rows = [("public.orders", n, 1, placed_in(batch, 0).to_ipc(), "") for n, batch in enumerate(batches)]
    frame = replica.session.createDataFrame(
        replica.session.sparkContext.parallelize(rows[::-1], 1),
        "table string, sequence long, count int, bytes binary, split string",
    )
    replica.sink.write(frame, 0)
    assert replica.notes() == {(1, "a"): "19"}


def test_columns_are_added_and_dropped_ones_stay(replica: Replica) -> None:
    replica.write(0, created(order(1)))
    extra = Column("extra", ConnectSchema("int64", True, "io.debezium.time.MicroTimestamp", 1), pa.int64())
    changed = replace(ORDERS, columns=(*[column for column in ORDERS.columns if column.name != "note"], extra))
    row = {name: value for name, value in order(2, extra=0).items() if name != "note"}
    replica.write(1, created(row, table=changed))
    assert replica.notes() == {(1, "a"): "n", (2, "a"): None}
    assert [str(row["extra"]) for row in replica.rows()] == ["None", "1970-01-01 00:00:00"]


def test_a_widened_type_widens_the_table(replica: Replica) -> None:
    small = retyped(Column("kind", ConnectSchema("int32", True), pa.int32()))
    wide = retyped(Column("kind", ConnectSchema("int64", True), pa.int64()))
    replica.write(0, created({**event(None), "kind": 1}, table=small))
    replica.write(1, created({**event(None), "kind": 2**40}, table=wide))
    replica.write(2, created({**event(None), "kind": 3}, table=small))
    assert [row["kind"] for row in replica.rows(EVENTS)] == [1, 2**40, 3]


def test_a_type_of_another_kind_is_refused_with_a_remedy(replica: Replica) -> None:
    replica.write(0, created(event("x"), table=EVENTS))
    number = retyped(Column("kind", ConnectSchema("int32", True), pa.int32()))
    with pytest.raises((SinkError, PySparkException), match=r"public\.events, column kind(.|\n)*Remedy"):
        replica.write(1, created({**event(None), "kind": 1}, table=number))


def test_a_table_that_cannot_be_written_is_set_aside_and_the_others_continue(replica: Replica) -> None:
    replica.sink = replace(replica.sink, on_error="aside")
    number = retyped(Column("kind", ConnectSchema("int32", True), pa.int32()))
    replica.write(0, created(event("x"), table=EVENTS))
    for _ in range(2):
        later = created({**event(None), "kind": 1}, table=number), created(order(1))
        reports = replica.write(1, created(event("y"), table=EVENTS), *later)
        assert [row["kind"] for row in replica.rows(EVENTS)] == ["x", "y"]
    assert reports["public.events"].aside is None, "told once"
    replica.write(2, created({**event(None), "kind": 2}, table=number), created(order(2)))
    assert set(replica.notes()) == {(1, "a"), (2, "a")}
    stored = read_table(f"{replica.root}/_aside", "public.events", replica.options).to_pylist()
    assert sorted(json.loads(row["after"])["kind"] for row in stored) == [1, 2]
    (known,) = tables_set_aside(replica.root, replica.options)
    assert "column kind: the source's type changed" in str(known)

    snapshot = read(10, *({**event(None), "kind": kind} for kind in (1, 2)), table=number)
    replica.write(3, snapshot, created({**event(None), "kind": 3}, table=number))
    assert tables_set_aside(replica.root, replica.options) == ()
    replica.write(4, created({**event(None), "kind": 4}, table=number))
    assert [row["kind"] for row in replica.rows(EVENTS)] == [1, 2, 3, 4]


def test_a_snapshot_replaces_what_an_older_one_left(replica: Replica) -> None:
    replica.write(0, read(100, order(1), order(2)), read(100, order(3)), splits=2)
    replica.write(1, read(100, order(4)))
    replica.write(2, changes(ORDERS, {"op": "u", "after": order(4, "live")}, lsn=150))
    assert replica.notes() == {(1, "a"): "n", (2, "a"): "n", (3, "a"): "n", (4, "a"): "live"}
    replica.write(3, read(200, order(1, "new")))
    replica.write(4, read(200, order(5, "new")), created(order(6)))
    replica.write(4, read(200, order(5, "new")), created(order(6)))
    assert replica.notes() == {(1, "a"): "new", (5, "a"): "new", (6, "a"): "n"}


def test_a_snapshot_begun_by_a_new_query_replaces_the_tables_schema_too(replica: Replica) -> None:
    replica.write(0, read(100, event("x"), table=EVENTS))
    number = retyped(Column("kind", ConnectSchema("int32", True), pa.int32()))
    replica.sink = replace(replica.sink, query_id="another")
    replica.write(0, read(100, {**event(None), "kind": 1}, table=number))
    assert replica.rows(EVENTS) == [{**event(None), "kind": 1}]


def test_an_incremental_snapshot_adds(replica: Replica) -> None:
    replica.write(0, created(order(1)))
    replica.write(1, read(300, order(2), marker="incremental"))
    assert replica.notes() == {(1, "a"): "n", (2, "a"): "n"}


@pytest.mark.skipif(IS_ICEBERG or ENGINE == "postgres", reason="their tables are not in that folder alone")
def test_an_error_of_a_write_names_place_and_remedy(replica: Replica, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file in the way")
    with pytest.raises((SinkError, PySparkException), match=r"lake: the replica could not be written(.|\n)*Remedy"):
        replica.write(0, created(order(1)))


KEYS = TableSchema(
    TableId("shop", "public", "keys"),
    (
        Column("a", ConnectSchema("double"), pa.float64()),
        Column("b", ConnectSchema("array"), pa.list_(pa.float64())),
        Column("v", ConnectSchema("string", True), pa.string()),
    ),
    ("a", "b"),
    ("a", "b"),
)


def test_a_changed_key_that_is_equal_and_not_identical(replica: Replica) -> None:
    """0 and -0 are one key, and so are all NaN."""
    nan = float("nan")
    odd = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]

    def image(a: float, b: float, v: str) -> dict[str, object]:
        return {"a": a, "b": [b], "v": v}

    replica.write(0, created(image(0.0, 0.0, "zero"), image(nan, 1, "nan"), image(2, 2, "two"), table=KEYS))
    replica.write(
        1,
        changes(
            KEYS,
            {"op": "u", "before": image(0.0, 0.0, ""), "after": image(-0.0, -0.0, "zero 2")},
            {"op": "d", "before": image(2, 2, "")},
            {"op": "c", "after": image(0, -2, "more")},
            {"op": "u", "after": image(odd, 1, "nan 2")},
        ),
    )
    assert sorted(str(row["v"]) for row in replica.rows(KEYS)) == ["more", "nan 2", "zero 2"]
    replica.write(
        2, changes(KEYS, {"op": "d", "before": image(0.0, 0.0, "")}, {"op": "d", "before": image(nan, 1, "")})
    )
    assert [row["v"] for row in replica.rows(KEYS)] == ["more"]


def test_a_changed_key_that_is_unique_at_the_commit_alone(replica: Replica) -> None:
    table = replace(ORDERS, identity=tuple(ORDERS.row_type.names), unique_at_commit=True)
    replica.write(0, created(*(order(number, f"n{number}") for number in (1, 2, 3, 4)), table=table))
    exchanged = [
        {"op": "u", "before": order(1, "n1"), "after": order(2, "n1")},
        {"op": "u", "before": order(2, "n2"), "after": order(1, "n2")},
        {"op": "c", "after": order(3, "new")},
        {"op": "d", "before": order(3, "n3")},
        {"op": "c", "after": order(5, "brief")},
        {"op": "d", "before": order(5, "brief")},
    ]
    replica.write(1, changes(table, *exchanged))
    assert [(row["id"], row["note"]) for row in replica.rows(table)] == [(1, "n2"), (2, "n1"), (3, "new"), (4, "n4")]


def test_values_that_no_type_holds_and_a_changed_key(replica: Replica) -> None:
    """A column becomes one of texts when they come, and stays so; a key is found under its text from then on."""
    decimals = ConnectSchema("bytes", False, "org.apache.kafka.connect.data.Decimal", 1)
    table = TableSchema(
        TableId("shop", "public", "hard"),
        (
            Column("k", decimals, held_type(pa.decimal128(9, 2))),
            Column("l", ConnectSchema("array", True), held_type(pa.list_(pa.int32()))),
        ),
        ("k",),
        ("k",),
    )

    def image(k: str, one: list[int] | str | None) -> dict[str, object]:
        number = {"tailrace.value": None, "tailrace.text": k} if k == "NaN" else {"tailrace.value": Decimal(k)}
        return {"k": number, "l": {"tailrace.text": one} if isinstance(one, str) else {"tailrace.value": one}}

    def held() -> list[tuple[object, object]]:
        return sorted((str(row["k"]), row["l"]) for row in replica.rows(table))

    replica.write(0, created(image("1.50", [1, 2]), image("2", None), table=table))
    assert held() == [("1.50", [1, 2]), ("2.00", None)]
    replica.write(1, created(image("NaN", "[[1],[2]]"), table=table))
    assert held() == [("1.5", "[1,2]"), ("2", None), ("NaN", "[[1],[2]]")]
    changed = [{"op": "u", "after": image("1.50", [3])}, {"op": "d", "before": image("NaN", None)}]
    replica.write(2, changes(table, *changed), created(image("3.25", [4]), table=table))
    assert held() == [("1.5", "[3]"), ("2", None), ("3.25", "[4]")]
