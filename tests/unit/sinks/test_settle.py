"""Keys that are unique at commit alone: whatever a transaction does meanwhile, the replica is the table at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import settle, spool
from tailrace.sinks.replica.fold import COUNT, fold
from tailrace.sinks.replica.marks import Record, TableProgress
from tailrace.sinks.replica.parts import Part, parts

TABLE = TableSchema(
    TableId("db", "public", "t"),
    (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("x", ConnectSchema("double"), pa.float64()),
        Column("v", ConnectSchema("string", True), pa.string()),
    ),
    ("id", "x"),
    ("id", "x", "v"),
    unique_at_commit=True,
)
WIDER = replace(
    TABLE,
    columns=(*TABLE.columns, Column("more", ConnectSchema("int32", True), pa.int32())),
    identity=(*TABLE.identity, "more"),
)
Image = tuple[int, float, str]
Change = tuple[str, Image | None, Image | None]


# The new number of a row by its number and its place among those that move.
MOVES: dict[str, Callable[[int, int], int]] = {
    "shift": lambda number, _: number + 1,
    "reverse": lambda number, _: 2 - number,
    "ring": lambda number, _: (number + 1) % 3,
    "gather": lambda _, place: 0,
    "deal": lambda _, place: place,
}


class Database:
    """A table whose keys are verified at commit, and the log of its transactions. Rows are known by their place."""

    def __init__(self, rows: list[Image]) -> None:
        self.rows: dict[int, Image] = dict(enumerate(rows))
        self.log: list[list[Change]] = []

    def commit(self, script: list[tuple[Any, ...]]) -> bool:
        """Run a transaction; whether it was committed."""
        rows, changes = dict(self.rows), list[tuple[str, Any, Any]]()
        for name, pick, image in script:
            chosen = sorted(rows)[pick % len(rows)] if rows else None
            if name == "insert":
                rows[max(rows, default=-1) + 1] = image
                changes.append(("c", None, image))
            elif name == "truncate":
                rows.clear()
                changes.append(("t", None, None))
            elif chosen is not None and name == "delete":
                changes.append(("d", rows.pop(chosen), None))
            elif chosen is not None and name == "update":
                changes.append(("u", rows[chosen], image))
                rows[chosen] = image
            elif name == "replace" and chosen is not None:
                rows[max(rows) + 1] = (*rows[chosen][:2], image[2])
                changes.append(("c", None, rows[max(rows)]))
                changes.append(("d", rows.pop(chosen), None))
            elif name in MOVES:
                first = {each: number for number, each in enumerate(sorted(rows)[pick % (len(rows) or 1) :])}
                for each, place in first.items():
                    number, x, v = rows[each]
                    rows[each] = (MOVES[name](number, place), x, v)
                    changes.append(("u", (number, x, v), rows[each]))
        keys = [(number, x) for number, x, _ in rows.values()]
        if len({*keys}) < len(keys):
            return False
        self.rows = rows
        self.log.append(changes)
        return True


def image(values: Image | None, table: TableSchema = TABLE) -> dict[str, Any] | None:
    if values is None:
        return None
    values_of_others = dict.fromkeys(table.row_type.names, 7)
    return {**values_of_others, **dict(zip(("id", "x", "v"), values, strict=True))}


def batch(changes: list[tuple[int, Change]], table: TableSchema = TABLE) -> ChangeBatch:
    """Changes, each with the number of its transaction. Key changes are in one event or in two."""
    rows = pa.RecordBatch.from_pydict(
        {
            "op": pa.array([op for _, (op, _, _) in changes], pa.string()),
            "before": pa.array([image(before, table) for _, (_, before, _) in changes], table.row_type),
            "after": pa.array([image(after, table) for _, (_, _, after) in changes], table.row_type),
            COMMIT: pa.array([number for number, _ in changes], pa.int64()),
        }
    )
    return ChangeBatch(table, rows)


def halves(change: Change) -> list[Change]:
    """A key change as two events, which some databases' logs have."""
    op, before, after = change
    is_split = op == "u" and before is not None and after is not None and before[:2] != after[:2]
    return [("d", before, None), ("c", None, after)] if is_split else [change]


def replica(start: list[Image], batches: list[ChangeBatch], rows_a_part: int, killed_after: int) -> dict[Any, Any]:
    """What the rows are when all parts are merged, by hand: some before a kill, the others in parts of another size."""
    rows = {(number, x): v for number, x, v in start}
    progress = TableProgress(None, "q", TABLE.id.unique, 0)
    progress.record = Record("q", TABLE.id.unique, 0)
    for part in islice(cut(batches, rows_a_part), killed_after):
        merge(rows, part, progress)
    for part in cut(batches, rows_a_part + 1):
        merge(rows, part, progress)
    return rows


def cut(batches: list[ChangeBatch], rows_a_part: int) -> Iterator[Part]:
    return parts((pa.py_buffer(each.to_ipc()) for each in batches), rows_a_part)


def merge(rows: dict[Any, Any], part: Part, progress: TableProgress) -> None:
    left = part.left(progress)
    if left:
        net = fold(left)
        if net.cleared:
            rows.clear()
        seen = set()
        for row in net.rows.to_pylist():
            key = (row["id"], row["x"])
            assert key not in seen
            seen.add(key)
            if row[COUNT] < 0:
                rows.pop(key, None)
            else:
                rows[key] = row["v"]
        assert progress.record is not None
        progress.record = replace(progress.record, place=part.extent.upto)


def rows_of(database: Database) -> dict[Any, Any]:
    return {(number, x): v for number, x, v in database.rows.values()}


images = st.tuples(st.integers(0, 2), st.sampled_from([0.0, -0.0]), st.sampled_from("ab"))
steps = st.one_of(
    st.tuples(st.just("update"), st.integers(0, 5), images),
    st.tuples(st.just("update"), st.integers(0, 5), images),
    st.tuples(st.just("insert"), st.just(0), images),
    st.tuples(st.just("delete"), st.integers(0, 5), st.none()),
    st.tuples(st.just("replace"), st.integers(0, 5), images),
    st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 2), st.none()),
    st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 2), st.none()),
    st.tuples(st.just("truncate"), st.just(0), st.none()),
)


@given(
    st.lists(images, max_size=4, unique_by=lambda each: each[:2]),
    st.lists(st.lists(steps, min_size=1, max_size=7), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(1, 8),
    st.integers(0, 3),
    st.none() | st.integers(0, 10),
    st.booleans(),
    st.booleans(),
)
def test_the_replica_is_what_the_table_is_at_commits(
    start: list[Image],
    scripts: list[Any],
    rows_a_batch: int,
    rows_a_part: int,
    killed_after: int,
    alters_at: int | None,
    splits: bool,
    spills: bool,
) -> None:
    database = Database(start)
    for script in scripts:
        database.commit(script)
    log = [
        (number, each)
        for number, changes in enumerate(database.log)
        for change in changes
        for each in (halves(change) if splits else [change])
    ]
    batches = [
        batch(log[at : at + rows_a_batch], TABLE if alters_at is None or at < alters_at else WIDER)
        for at in range(0, len(log), rows_a_batch)
    ]
    with pytest.MonkeyPatch.context() as patch:
        if spills:
            patch.setattr(spool, "_IN_MEMORY", 1)
            patch.setattr(settle, "_AT_ONCE", 2)
        assert replica(start, batches, rows_a_part, killed_after) == rows_of(database)


def test_keys_of_small_numbers_are_told_apart() -> None:
    """Those of (1, 1) and (2, 2) had one hash, so that of two rows that swap their keys one was lost."""
    columns = tuple(Column(name, ConnectSchema("int64"), pa.int64()) for name in ("id", "x"))
    table = replace(TABLE, columns=(*columns, *TABLE.columns[2:]))
    moves: list[tuple[int, Change]] = [
        (1, ("u", (1, 1, "a"), (2, 2, "a"))),
        (1, ("u", (2, 2, "b"), (1, 1, "b"))),
        (1, ("u", (1, 1, "b"), (3, 3, "b"))),
    ]
    assert replica([(1, 1, "a"), (2, 2, "b")], [batch(moves, table)], 10, 0) == {(2, 2): "a", (3, 3): "b"}
