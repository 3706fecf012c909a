"""A table of changes has each change once, and the query of the documentation makes the source's rows of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tailrace.sinks.replica.modes import CHANGES
from tests.unit.sinks.lines import NOTES, Change, Line, Row, Source, Transaction, at, drawn, note, read

LAKES = ("delta", "iceberg", "postgres")
PAGE = Path(__file__).parents[3] / "docs" / "history.md"


def latest(line: Line) -> list[Row]:
    """What the query of the documentation makes of a table of changes."""
    match = re.search(r"<!-- tested: latest -->\n```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    query = match[1].replace("EXCEPT", "EXCLUDE")  # as DuckDB calls it
    orders = pa.Table.from_pylist(line.rows())
    connection = duckdb.connect()
    connection.register("orders", orders)
    rows = connection.execute(query).to_arrow_table().to_pylist()
    found = [{name: row[name] for name in ("id", "note", "document")} for row in rows]
    return sorted(found, key=lambda row: row["id"])


def in_batches(draw: Random, transactions: Sequence[Transaction], line: Line, source: Source) -> None:
    """Write transactions in micro-batches that begin with some that are written, in parts of any size."""
    done = 0
    while done < len(transactions):
        first, end = max(0, done - draw.choice([0, 1, 3])), min(len(transactions), done + draw.randint(1, 6))
        line.commit(transactions[first:end], most_rows=draw.choice([1, 4, 500_000]))
        for each in transactions[done:end]:
            source.apply(each)
        done = end


@pytest.mark.parametrize(
    ("lake", "seed"),
    [("delta", 1), *(pytest.param(lake, seed, marks=pytest.mark.long) for lake in LAKES for seed in range(2, 12))],
)
def test_the_latest_state_of_random_changes_has_the_rows_of_the_source(tmp_path: Path, lake: str, seed: int) -> None:
    draw, line, source = Random(seed), Line(tmp_path, lake, CHANGES), Source()
    transactions = drawn(draw, 30, keeps=False)
    in_batches(draw, transactions[:20], line, source)
    assert latest(line) == source.states[-1][1]
    time, surplus = transactions[20].time, Transaction(transactions[19].commit + 1, 0, [Change("c", None, note(99))])
    line.commit([surplus])
    line.write(read(list(source.rows.values()), transactions[20].commit, time), most_rows=3)
    assert latest(line) == source.states[-1][1], "rows that a snapshot does not find are gone"
    in_batches(draw, transactions[20:], line, source)
    assert latest(line) == source.states[-1][1]
    rows = line.rows()
    assert len({row["_sequence"] for row in rows}) == len(rows)
    logged = [row["_commit_time"] for row in sorted(rows, key=lambda row: row["_sequence"]) if row["_op"] in "cud"]
    told = [
        at(each.time)
        for each in [*transactions[:20], surplus, *transactions[20:]]
        for change in each.changes
        for _ in _rows_of(change)
    ]
    assert logged == told, "each change is there once, in the order of the log"


def _rows_of(change: Change) -> Sequence[str]:
    is_moved = change.op == "u" and change.before is not None
    return {"t": ""}.get(change.op, "du" if is_moved else change.op)


def test_a_row_names_the_values_that_the_log_did_not_repeat(tmp_path: Path) -> None:
    line = Line(tmp_path, "delta", CHANGES)
    kept = Change("u", None, note(1, Random(1), keeps=True), keeps=True)
    line.commit([Transaction(10, 1_000, [Change("c", None, note(1, Random(1))), kept])])
    found = sorted(line.rows(), key=lambda row: row["_sequence"])
    assert [(row["_unchanged"], row["document"] is None) for row in found] == [(None, False), (["document"], True)]
    assert [row["_transaction"] for row in found] == ["tx10"] * 2


def test_a_change_of_the_key_and_of_a_row_without_a_key_is_two_rows(tmp_path: Path) -> None:
    moved = Change("u", note(1, Random(1)), note(2, Random(2)))
    bag = replace(NOTES, key=(), identity=("id", "note", "document"))
    for place, schema in (("keyed", NOTES), ("bag", bag)):
        line = Line(tmp_path / place, "delta", CHANGES)
        line.write(read([note(1, Random(1))], 10, 1_000, schema))
        line.commit([Transaction(20, 2_000, [moved])], schema=schema)
        found = sorted(line.rows(), key=lambda row: row["_sequence"])
        assert [(row["_op"], row["id"]) for row in found] == [("r", 1), ("d", 1), ("u", 2)]
        assert found[1]["note"] is not None, "of a row that goes the values are those before"


@pytest.mark.parametrize("lake", ["delta", "iceberg", pytest.param("postgres", marks=pytest.mark.long)])
def test_a_table_that_is_read_again_begins_anew(tmp_path: Path, lake: str) -> None:
    line = Line(tmp_path, lake, CHANGES)
    line.write(read([note(1), note(2), note(3)], 10, 1_000))
    request: dict[str, Any] = {"snapshot": None, "position": None, "request": "again"}
    (begun,) = line.write(read([], 20, 2_000, **request, begins=True))
    assert (begun.begun, begun.lacking) == ("again", "its rows are being read again")
    rows = read([note(1), note(4)], 20, 2_000, **request)
    line.write(rows)
    line.write(rows)
    line.commit([Transaction(30, 3_000, [Change("u", None, {**note(4), "note": "newer"})])])
    (ended,) = line.write(read([], 20, 2_000, **request, total=2))
    assert (ended.ended, ended.lacking) == ("again", None)
    assert latest(line) == [note(1), {**note(4), "note": "newer"}]
    assert [row["_op"] for row in sorted(line.rows(), key=lambda row: row["_sequence"])] == [*"rrrtrru"]
