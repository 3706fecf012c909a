"""Replicas follow schema changes: renames and drops of columns and tables. Both engines run these tests, too."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import ALTER, DROP, SchemaChange
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import contents
from tailrace.sinks.replica.aside import tables_set_aside
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.marks import Extent, LogPlace
from tailrace.sinks.replica.renames import Rename, Stop
from tailrace.sinks.replica.sink import read_table
from tests.behaviour.replicas import EVENTS, LINE, ORDERS, Replica, Row, changes, created, event, order, read, retyped


def named(name: str, table: TableSchema = ORDERS, *columns: Column) -> TableSchema:
    """The table under another name, with other columns where some are given."""
    return replace(table, id=TableId("shop", "public", name), columns=columns or table.columns)


def ddl(
    table: TableSchema, position: int = 1, kind: str = ALTER, previous: TableSchema | None = None, **more: Any
) -> ChangeBatch:
    """A schema change of a table, as the log tells it."""
    change = SchemaChange(kind, "DDL", position, previous=None if previous is None else previous.id, **more)
    bare = replace(table, columns=(), key=(), identity=())
    return replace(changes(bare, {"op": "s"}), schema_change=change)


REMARKED = replace(
    ORDERS, columns=tuple(replace(each, name="remark") if each.name == "note" else each for each in ORDERS.columns)
)


def remarked(id: int, remark: str) -> Row:
    row = order(id)
    return {**{name: value for name, value in row.items() if name != "note"}, "remark": remark}


def test_a_renamed_column_keeps_its_values(replica: Replica) -> None:
    replica.write(0, created(order(1, "one"), order(2, "two")))
    renamed = ddl(REMARKED, renamed=(("note", "remark"),))
    batch = [created(order(3, "three")), renamed, created(remarked(4, "four"), table=REMARKED)]
    for _ in range(2):
        replica.write(1, *batch)
        rows = replica.rows()
        assert {row["id"]: row["remark"] for row in rows} == {1: "one", 2: "two", 3: "three", 4: "four"}
        assert "note" not in rows[0]
    replica.write(2, ddl(REMARKED, 2, renamed=(("note", "remark"),)), ddl(ORDERS, 3, renamed=(("remark", "note"),)))
    assert replica.notes() == {(1, "a"): "one", (2, "a"): "two", (3, "a"): "three", (4, "a"): "four"}


def test_columns_swap_their_names(replica: Replica) -> None:
    replica.write(0, created({**event("x"), "path": [1]}, table=EVENTS))
    swaps = [("kind", "t"), ("score", "kind"), ("t", "score")]
    replica.write(1, *(ddl(EVENTS, place, renamed=(pair,)) for place, pair in enumerate(swaps)))
    (row,) = replica.rows(EVENTS)
    assert (row["kind"], row["score"], row["path"]) == (None, "x", [1])


def test_a_dropped_column_is_removed_and_may_be_added_with_another_type(replica: Replica) -> None:
    replica.write(0, created(order(1, "one"), order(2, "two")))
    number = tuple(
        Column("note", ConnectSchema("int32", True), pa.int32()) if each.name == "note" else each
        for each in ORDERS.columns
    )
    again = named("orders", ORDERS, *number)
    for _ in range(2):
        replica.write(1, ddl(again, dropped=("note",)), created(order(3, 7), table=again))
        assert {row["id"]: row["note"] for row in replica.rows()} == {1: None, 2: None, 3: 7}


def test_a_dropped_table_is_emptied_and_may_be_created_with_other_columns(replica: Replica) -> None:
    replica.write(0, created(event("a"), table=EVENTS))
    number = retyped(Column("kind", ConnectSchema("int32", True), pa.int32()))
    batch = [created(event("b"), table=EVENTS), ddl(EVENTS, kind=DROP)]
    for _ in range(2):
        replica.write(1, *batch)
        assert replica.rows(EVENTS) == []
    replica.write(2, created({**event(None), "kind": 5}, table=number))
    assert [row["kind"] for row in replica.rows(EVENTS)] == [5]
    replica.sink = replace(replica.sink, on_drop="keep")
    replica.write(3, ddl(EVENTS, 2, kind=DROP))
    assert [row["kind"] for row in replica.rows(EVENTS)] == [5]


def test_a_renamed_table_takes_its_rows_along(replica: Replica) -> None:
    bills = named("bills")
    replica.write(0, created(order(1, "one")))
    batch = [
        created(order(2, "two")),
        ddl(bills, previous=ORDERS),
        changes(bills, {"op": "u", "after": order(1, "changed")}, {"op": "c", "after": order(3, "three")}),
        created(order(9, "of a new table under the old name")),
    ]
    for _ in range(2):
        replica.write(1, *batch)
        assert {row["id"]: row["note"] for row in replica.rows(bills)} == {1: "changed", 2: "two", 3: "three"}
        assert [row["id"] for row in replica.rows()] == [9]


def test_a_table_takes_the_place_of_another(replica: Replica) -> None:
    """The usual way to rebuild a table: a new one is filled, the old one dropped, the new one renamed."""
    new = named("orders_new", ORDERS, *ORDERS.columns[:2], Column("extra", ConnectSchema("int32", True), pa.int32()))
    orders = replace(new, id=ORDERS.id)

    def row(id: int) -> Row:
        return {"id": id, LINE: "a", "extra": id}

    replica.write(0, created(order(1), order(2)))
    batch = [
        created(order(3)),
        created(row(7), row(8), table=new),
        ddl(ORDERS, 1, kind=DROP),
        ddl(orders, 2, previous=new),
        created(row(9), table=orders),
    ]
    for _ in range(2):
        replica.write(1, *batch)
        assert replica.rows() == [row(7), row(8), row(9)]
        assert replica.rows(new) == []


def test_tables_swap_their_names(replica: Replica) -> None:
    copies, spare = named("copies"), named("spare")
    replica.write(0, created(order(1)), created(order(2), table=copies))
    batch = [
        ddl(spare, 1, previous=ORDERS),
        ddl(ORDERS, 2, previous=copies),
        ddl(copies, 3, previous=spare),
        created(order(20)),
        created(order(10), table=copies),
    ]
    for _ in range(2):
        replica.write(1, *batch)
        assert [row["id"] for row in replica.rows()] == [2, 20]
        assert [row["id"] for row in replica.rows(copies)] == [1, 10]
        assert replica.rows(spare) == []


def test_a_rename_broken_off_between_its_commits_is_completed(replica: Replica) -> None:
    bills = named("bills")
    replica.write(0, created(order(1)))
    before, renamed = created(order(2)), ddl(bills, previous=ORDERS)
    replica.write(1, before)
    batch, place = MicroBatch(replica.root, replica.sink.query_id, 1, replica.options), LogPlace(2000, 1)  # type: ignore[arg-type]
    rename = Rename(1, "public.orders", "public.bills")
    old, new = (Stop(name, Extent(0, upto=place), rename) for name in ("public.orders", "public.bills"))
    contents.copy(batch, old, new)
    replica.write(1, before, renamed, created(order(3), table=bills))
    assert [row["id"] for row in replica.rows(bills)] == [1, 2, 3]
    assert replica.rows() == []


@pytest.mark.parametrize("is_known", [True, False])
def test_a_table_that_is_set_aside_stays_so_under_its_new_name(replica: Replica, is_known: bool) -> None:
    """Whether it is set aside in the micro-batch of the rename or before: all its changes become dead letters."""
    replica.sink = replace(replica.sink, on_error="aside")
    number = retyped(Column("kind", ConnectSchema("int32", True), pa.int32()))
    things = replace(number, id=TableId("shop", "public", "things"))
    replica.write(0, created(event("x"), table=EVENTS), created(order(1)))
    batches = [
        [created({**event(None), "kind": 1}, table=number), created(order(2))],
        [ddl(things, previous=number), created({**event(None), "kind": 2}, table=things), created(order(3))],
    ]
    for place, batch in enumerate(batches if is_known else [batches[0] + batches[1]], 1):
        for _ in range(2):
            replica.write(place, *batch)
    replica.write(3, created({**event(None), "kind": 3}, table=things), created(order(4)))
    assert [id_ for id_, _ in sorted(replica.notes())] == [1, 2, 3, 4], "the other tables go on"
    letters = {
        name: [
            json.loads(row["after"])["kind"]
            for row in read_table(f"{replica.root}/_aside", name, replica.options).to_pylist()
        ]
        for name in ("public.events", "public.things")
    }
    assert {name: sorted(kinds) for name, kinds in letters.items()} == {"public.events": [1], "public.things": [2, 3]}
    assert [each.table for each in tables_set_aside(replica.root, replica.options)] == [
        "public.events",
        "public.things",
    ]
    replica.write(4, read(10, *({**event(None), "kind": kind} for kind in (1, 2, 3)), table=things))
    assert [row["kind"] for row in replica.rows(things)] == [1, 2, 3]
