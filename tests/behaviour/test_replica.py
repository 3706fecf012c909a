"""Replicas through real Spark and real Delta tables: whatever comes, and comes again, they equal the source.

Both engines run these tests: `deltalake` here, `spark` from test_replica_spark.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tailrace.errors import SinkError
from tailrace.model.change import COMMIT, ChangeBatch, ControlBatch, SnapshotRead
from tailrace.model.native import native_rows
from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import ALTER, DROP, SchemaChange
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import delta_rs
from tailrace.sinks.replica.aside import found
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.compare import Replica as Compared
from tailrace.sinks.replica.compare import Totals
from tailrace.sinks.replica.marks import Extent, Place
from tailrace.sinks.replica.renames import Rename, Stop
from tailrace.sinks.replica.sink import ReplicaSink, TableReport, read_table, row_count
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.upkeep import Upkeep
from tailrace.spark.shapes import Blobs
from tests.behaviour.engines import ENGINE

# Delta for Spark takes no space in a name; delta-rs does.
LINE = "line no" if ENGINE == "deltalake" else "line`no"
ORDERS = TableSchema(
    TableId("shop", "public", "orders"),
    (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column(LINE, ConnectSchema("string"), pa.string()),
        Column("note", ConnectSchema("string", True), pa.string()),
        Column(
            "Total`s", ConnectSchema("bytes", True, "org.apache.kafka.connect.data.Decimal", 1), pa.decimal128(9, 2)
        ),
        Column("at", ConnectSchema("int64", True, "io.debezium.time.MicroTimestamp", 1), pa.int64()),
        Column("tags", ConnectSchema("array", True), pa.list_(pa.string())),
    ),
    ("id", LINE),
    ("id", LINE),
)
EVENTS = TableSchema(
    TableId("shop", "public", "events"),
    (
        Column("kind", ConnectSchema("string", True), pa.string()),
        Column("score", ConnectSchema("double", True), pa.float64()),
        Column("path", ConnectSchema("array", True), pa.list_(pa.int32())),
        Column("more", ConnectSchema("map", True), pa.map_(pa.string(), pa.string())),
    ),
    (),
    ("kind", "score", "path", "more"),
)

Row = dict[str, Any]
Write = Callable[..., dict[str, TableReport]]


@pytest.fixture
def replica(session: SparkSession, tmp_path: Path) -> Replica:
    return Replica(session, tmp_path)


class Replica:
    """A sink with its session: batches in, rows out."""

    def __init__(self, session: SparkSession, root: Path) -> None:
        self.session = session
        self.root = str(root / "lake")
        self.sink = ReplicaSink(self.root, f"query-{uuid4()}", ENGINE)  # type: ignore[arg-type]

    def write(self, batch_id: int, *batches: ChangeBatch | ControlBatch, splits: int = 1) -> dict[str, TableReport]:
        """The batches as one micro-batch of one transaction, dealt out to source partitions one after another."""
        blobs = Blobs()
        placed = [placed_in(batch, batch_id) if isinstance(batch, ChangeBatch) else batch for batch in batches]
        rows = [tuple(row.values()) for batch in placed for part in blobs.rows(batch) for row in part.to_pylist()]
        kind = "table string, sequence long, count int, bytes binary, split string"
        dealt = self.session.sparkContext.parallelize(rows, splits)
        return self.sink.write(self.session.createDataFrame(dealt, kind), batch_id)

    def rows(self, table: TableSchema = ORDERS) -> list[Row]:
        """What the target holds, in a stable order."""
        return sorted(read_table(self.root, str(table.id)).to_pylist(), key=repr)

    def notes(self) -> dict[tuple[int, str], str | None]:
        """The orders' notes by key."""
        return {(row["id"], row[LINE]): row["note"] for row in self.rows()}


def order(id: int, note: Any = "n", line: str = "a", **more: Any) -> Row:
    return {"id": id, LINE: line, "note": note, "Total`s": None, "at": None, "tags": None, **more}


def key(id: int, line: str = "a") -> Row:
    return {"id": id, LINE: line}


def changes(table: TableSchema, *rows: Row, lsn: int = 1, snapshot: str | None = None) -> ChangeBatch:
    """A batch from `op`, `before`, `after`, and where needed `other_key` and `unchanged` (names)."""
    names = table.row_type.names
    columns = {
        "op": pa.array([row["op"] for row in rows], pa.string()),
        "order": pa.array(range(len(rows)), pa.int64()),
        "ts_us": pa.array([0] * len(rows), pa.int64()),
        "snapshot": pa.array([snapshot] * len(rows), pa.string()),
        "source": pa.array([{"lsn": lsn}] * len(rows), pa.struct([("lsn", pa.int64())])),
        "before": pa.array([row.get("before") for row in rows], table.row_type),
        "after": pa.array([row.get("after") for row in rows], table.row_type),
    }
    if any("other_key" in row for row in rows):
        key_type = pa.struct([table.row_type.field(name) for name in table.key])
        columns["other_key"] = pa.array([row.get("other_key") for row in rows], key_type)
    if any("unchanged" in row for row in rows):
        masks = [{name: name in row.get("unchanged", ()) for name in names} for row in rows]
        columns["unchanged"] = pa.array(masks, pa.struct([(name, pa.bool_()) for name in names]))
    return ChangeBatch(table, pa.RecordBatch.from_pydict(columns))


def placed_in(batch: ChangeBatch, number: int) -> ChangeBatch:
    """A batch as a micro-batch brings it: read by that one, or committed in its range of the log."""
    if batch.read is not None:
        return replace(batch, read=replace(batch.read, id=f"batch {number}"))
    commits = pa.array([1000 * (number + 1)] * len(batch), pa.int64())
    return batch.with_rows(batch.rows.append_column(COMMIT, commits))


def created(*rows: Row, table: TableSchema = ORDERS) -> ChangeBatch:
    return changes(table, *({"op": "c", "after": row} for row in rows))


def read(lsn: int, *rows: Row, table: TableSchema = ORDERS, marker: str = "true") -> ChangeBatch:
    rows_read = changes(table, *({"op": "r", "after": row} for row in rows), lsn=lsn, snapshot=marker)
    whole = marker != "incremental"
    return replace(rows_read, read=SnapshotRead("", str(lsn) if whole else None, lsn if whole else None))


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
    assert row_count(replica.root, "public.orders") == 3
    read_back, layout = Compared.of(Target(replica.root, "public.orders"), ORDERS)
    source = native_rows(ORDERS, pa.array([full, order(2, "new"), order(2, line="b")], ORDERS.row_type))
    expected = Totals([layout.digests(pa.Table.from_struct_array(source))])
    assert not expected.differing(Totals(read_back.rows())).any(), "a comparison sees what the engine wrote"


@pytest.mark.skipif(ENGINE != "spark", reason="needs Delta for Spark in the session")
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
    target = Target(replica.root, "public.orders").open()
    assert target is not None
    assert target.metadata().configuration == Upkeep(120).properties
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


def event(kind: str | None, score: float | None = None, path: list[int] | None = None, more: Any = None) -> Row:
    return {"kind": kind, "score": score, "path": path, "more": more}


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
    assert list(map(repr, replica.rows(EVENTS))) == sorted(map(repr, [*rows, event("c"), event("c")]))


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


def retyped(column: Column) -> TableSchema:
    return replace(EVENTS, columns=(column, *EVENTS.columns[1:]))


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


def test_a_table_that_cannot_be_written_is_set_aside_and_the_others_go_on(replica: Replica) -> None:
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
    stored = read_table(f"{replica.root}/_aside", "public.events").to_pylist()
    assert sorted(json.loads(row["after"])["kind"] for row in stored) == [1, 2]
    (known,) = found(replica.root, {})
    assert "column kind: the source's type changed" in str(known)

    snapshot = read(10, *({**event(None), "kind": kind} for kind in (1, 2)), table=number)
    replica.write(3, snapshot, created({**event(None), "kind": 3}, table=number))
    assert found(replica.root, {}) == ()
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


def test_what_cannot_be_written_says_where_and_what_to_do(replica: Replica, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file in the way")
    with pytest.raises((SinkError, PySparkException), match=r"lake: the replica could not be written(.|\n)*Remedy"):
        replica.write(0, created(order(1)))


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


def test_a_dropped_column_goes_and_may_come_back_as_another(replica: Replica) -> None:
    replica.write(0, created(order(1, "one"), order(2, "two")))
    number = tuple(
        Column("note", ConnectSchema("int32", True), pa.int32()) if each.name == "note" else each
        for each in ORDERS.columns
    )
    again = named("orders", ORDERS, *number)
    for _ in range(2):
        replica.write(1, ddl(again, dropped=("note",)), created(order(3, 7), table=again))
        assert {row["id"]: row["note"] for row in replica.rows()} == {1: None, 2: None, 3: 7}


def test_a_dropped_table_is_emptied_and_may_come_back_as_another(replica: Replica) -> None:
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
    batch, place = MicroBatch(replica.root, replica.sink.query_id, 1), Place(2000, 1)
    rename = Rename(1, "public.orders", "public.bills")
    old, new = (Stop(name, Extent(0, upto=place), rename) for name in ("public.orders", "public.bills"))
    delta_rs.copy(batch, old, new)
    replica.write(1, before, renamed, created(order(3), table=bills))
    assert [row["id"] for row in replica.rows(bills)] == [1, 2, 3]
    assert replica.rows() == []
