"""Two sides compared by buckets and rows: the keys that differ, in pieces, up to a limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tailrace.errors import SinkError
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import compare
from tailrace.sinks.replica.compare import BucketTotals, ComparedColumns, Digests, ReplicaVersion, Suspects, suspects
from tailrace.sinks.replica.target import Target

TABLE = TableSchema(
    TableId("d", "public", "t"),
    (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("name", ConnectSchema("string", True), pa.string()),
    ),
    ("id",),
    ("id",),
)


def rows(count: int) -> pa.Table:
    """So many rows."""
    names = pa.array([f"name {n}" for n in range(count)], pa.string())
    return pa.table({"id": pa.array(range(count), pa.int32()), "name": names})


def found(path: Path, source: pa.Table, target: pa.Table, most: int = 1000) -> Suspects:
    """The suspects of a source and a replica."""
    write_deltalake(str(path / "public.t"), target)
    replica, layout = ReplicaVersion.of(Target(str(path), "public.t"), TABLE)

    def read() -> Iterator[Digests]:
        for start in range(0, source.num_rows, 100):
            yield layout.digests(source.slice(start, 100))

    totals = BucketTotals(replica.rows())
    differing = BucketTotals(read()).differing(totals)
    return suspects(layout, read, replica, totals, differing, most)


@pytest.mark.parametrize("held", [compare.HELD_ROWS, 3])
def test_what_differs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(compare, "HELD_ROWS", held)
    target = rows(500).set_column(1, "name", pa.array([f"name {n}" if n != 7 else None for n in range(500)]))
    target = pa.concat_tables(
        [target.slice(0, 100), target.slice(103), pa.table({"id": pa.array([4711], pa.int32())})],
        promote_options="default",
    )
    # A second row of a key counts, even if it is the same.
    target = pa.concat_tables([target, target.slice(50, 1)])
    suspected = found(tmp_path, rows(500), target)
    assert sorted(suspected.keys.column("id").to_pylist()) == [7, 50, 100, 101, 102, 4711]
    assert (len(suspected), suspected.unread) == (6, 0)


def test_equal_sides_have_no_suspects(tmp_path: Path) -> None:
    assert len(found(tmp_path, rows(500), rows(500).take(pa.array(reversed(range(500)))))) == 0


def test_no_more_suspects_are_kept_than_the_limit(tmp_path: Path) -> None:
    suspected = found(tmp_path, rows(500), rows(0), most=120)
    assert (len(suspected), suspected.unread) == (120, 380)


def test_types_are_those_that_hold_both_sides(tmp_path: Path) -> None:
    wide = rows(5).cast(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    assert len(found(tmp_path, rows(5), wide.append_column("gone", pa.array(["x"] * 5)))) == 0
    write_deltalake(str(tmp_path / "public.t"), rows(5).select(["id"]), mode="overwrite", schema_mode="overwrite")
    layout = ReplicaVersion.of(Target(str(tmp_path), "public.t"), TABLE)[1]
    assert layout.missing == ("name",)
    write_deltalake(str(tmp_path / "public.t"), pa.table({"id": ["a"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SinkError, match="column id"):
        ReplicaVersion.of(Target(str(tmp_path), "public.t"), TABLE)


def test_a_replica_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    replica, layout = ReplicaVersion.of(Target(str(tmp_path), "public.t"), TABLE)
    assert BucketTotals(replica.rows()).rows == 0
    assert layout == ComparedColumns(layout.schema, ("id",), ())
