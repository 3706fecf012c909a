"""Every version of a row is in a table of history, once, in Delta and in Iceberg, compared with a plain model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tailrace.errors import ShapeError, SinkError, TableError
from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import ALTER, SchemaChange
from tailrace.model.table import Column
from tailrace.sinks.replica import contents
from tailrace.sinks.replica.compare import ReplicaVersion
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.marks import Extent, LogPlace
from tailrace.sinks.replica.modes import HISTORY, Kind
from tailrace.sinks.replica.parts import Part, parts
from tailrace.sinks.replica.renames import Rename, Stop
from tailrace.sinks.replica.upkeep import Upkeep
from tests.unit.sinks.lines import NAME, NOTES, Change, Line, Row, Source, Transaction, at, drawn, logged, note, read

LAKES = ("delta", "iceberg", pytest.param("postgres", marks=pytest.mark.long))


def plain(rows: Sequence[Row]) -> list[str]:
    names = ("id", "note", "document", "valid_from", "valid_to", "_op")
    return sorted(str([_shown(row[name]) for name in names]) for row in rows)


def _shown(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def as_of(rows: Sequence[Row], moment: int) -> list[Row]:
    """`WHERE valid_from <= t AND (valid_to > t OR valid_to IS NULL)`."""
    t = at(moment)
    held = [row for row in rows if row["valid_from"] <= t and (row["valid_to"] is None or row["valid_to"] > t)]
    found = [{name: row[name] for name in ("id", "note", "document")} for row in held]
    return sorted(found, key=lambda row: row["id"])


def verify(line: Line, source: Source) -> None:
    rows = line.rows()
    assert plain(rows) == plain(source.versions)
    for moment, _ in source.states:
        for t in (moment - 1, moment, moment + 1):
            assert as_of(rows, t) == source.as_of(t), f"at {t}"
    sequences = [row["_sequence"] for row in rows]
    assert len(set(sequences)) == len(sequences)
    ordered = sorted(rows, key=lambda row: row["_sequence"])
    assert [row["valid_from"] for row in ordered] == sorted(row["valid_from"] for row in rows)


def in_batches(draw: Random, transactions: Sequence[Transaction], line: Line, source: Source) -> None:
    """Write transactions in micro-batches of any size, which begin with some that are written, in parts of any size."""
    done = 0
    while done < len(transactions):
        first = max(0, done - draw.choice([0, 0, 1, 3]))
        end = min(len(transactions), done + draw.randint(1, 6))
        line.commit(transactions[first:end], most_rows=draw.choice([1, 4, 500_000]))
        for each in transactions[done:end]:
            source.apply(each)
        done = end


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 22))])
@pytest.mark.parametrize("lake", LAKES)
def test_the_versions_of_random_transactions_are_those_of_a_model(tmp_path: Path, lake: str, seed: int) -> None:
    draw, line, source = Random(seed), Line(tmp_path, lake, HISTORY), Source()
    transactions = drawn(draw, 40)
    in_batches(draw, transactions[:25], line, source)
    source.read(time := transactions[25].time + 10)
    line.write(read(list(source.rows.values()), transactions[25].commit, time), most_rows=3)
    in_batches(draw, transactions[25:], line, source)
    verify(line, source)


@pytest.mark.parametrize("lake", LAKES)
def test_a_table_that_is_read_again_ends_versions_that_differ_and_no_others(tmp_path: Path, lake: str) -> None:
    line, rows = Line(tmp_path, lake, HISTORY), [note(1), note(2), note(3)]
    line.write(read(rows, 10, 1_000))
    before = line.rows()
    request: dict[str, Any] = {"snapshot": None, "position": None, "request": "again"}
    line.write(read([], 20, 2_000, **request, begins=True))
    line.write(read([note(1), {**note(2), "note": "another"}, note(4)], 20, 2_000, **request))
    line.commit([Transaction(30, 3_000, [Change("u", None, {**note(4), "note": "newer"})])])
    end = read([], 20, 2_000, **request, total=3)
    line.write(end)
    line.write(end)
    found = {(row["id"], row["note"], row["valid_to"] is None): row for row in line.rows()}
    assert {(1, None, True), (2, None, False), (2, "another", True), (3, None, False), (4, "newer", True)} <= {*found}
    assert [row for row in line.rows() if row["id"] == 1] == [row for row in before if row["id"] == 1]
    ended = {row["valid_to"] for row in found.values() if row["valid_to"] is not None and row["id"] in (2, 3)}
    assert ended == {found[2, "another", True]["valid_from"]}, "the rows that were read hold from then on"


@pytest.mark.parametrize("lake", LAKES)
def test_a_rename_ends_the_versions_of_one_name_and_begins_those_of_the_other(tmp_path: Path, lake: str) -> None:
    line = Line(tmp_path, lake, HISTORY)
    line.write(read([note(1), note(2)], 10, 1_000))
    line.commit([Transaction(20, 2_000, [Change("d", note(2))])])
    rename = Rename(30, NAME, "public.renamed")
    old, new = (Stop(table, Extent(0, None, LogPlace(30, 1)), rename, 3_000) for table in (NAME, "public.renamed"))
    for _ in range(2):
        contents.copy(line.batch(), old, new)
        contents.clear(line.batch(), NAME, old.extent, new.at)
    there = [(row["id"], row["valid_from"], row["valid_to"]) for row in line.rows("public.renamed")]
    assert there == [(1, at(3_000), None)]
    assert {(row["id"], row["valid_to"]) for row in line.rows()} == {(1, at(3_000)), (2, at(2_000))}


@pytest.mark.parametrize("lake", LAKES)
def test_columns_that_the_source_drops_keep_their_values_in_older_versions(tmp_path: Path, lake: str) -> None:
    line = Line(tmp_path, lake, HISTORY)
    line.write(read([{**note(1), "note": "old"}], 10, 1_000))
    change = SchemaChange(ALTER, None, 20, renamed=(("document", "text"),), dropped=("note",))
    contents.write(line.batch(), NAME, Part(Extent(0, None, LogPlace(20, 1)), change=change))
    columns = (NOTES.columns[0], replace(NOTES.columns[2], name="text"))
    line.write(
        *logged([Transaction(30, 3_000, [Change("u", None, {"id": 1, "text": "t"})])], replace(NOTES, columns=columns))
    )
    found = sorted(((row["valid_to"] is None, row["note"], row["text"]) for row in line.rows()), key=repr)
    assert found == [(False, "old", None), (True, None, "t")]


@pytest.mark.parametrize("mode", ["history", "changes"])
def test_a_type_that_older_rows_cannot_have_is_an_error_that_names_the_way_out(tmp_path: Path, mode: Kind) -> None:
    line = Line(tmp_path, "delta", mode)
    line.write(read([note(1)], 10, 1_000))
    number = Column("note", ConnectSchema("int32", True), pa.int32())
    retyped = replace(NOTES, columns=(NOTES.columns[0], number, NOTES.columns[2]))
    for place, snapshot in ((20, None), (30, "30")):
        with pytest.raises(TableError, match=r"move .* away, which has the rows until now") as raised:
            line.write(read([{**note(1), "note": 1}], place, 2_000, retyped, snapshot=snapshot))
        assert not isinstance(raised.value, ShapeError), "reading again does not help"


def test_commits_whose_clock_goes_back_hold_from_the_time_of_those_before_them(tmp_path: Path) -> None:
    line = Line(tmp_path, "delta", HISTORY)
    line.commit([Transaction(10, 5_000, [Change("c", None, note(1))])])
    line.commit([Transaction(20, 4_000, [Change("c", None, note(2))])])
    line.commit([Transaction(30, 6_000, [Change("c", None, note(3))])])
    found = {row["id"]: (row["valid_from"], row["_commit_time"]) for row in line.rows()}
    assert found == {1: (at(5_000),) * 2, 2: (at(5_000), at(4_000)), 3: (at(6_000),) * 2}


def test_rows_that_are_read_amid_the_log_do_not_make_later_changes_late(tmp_path: Path) -> None:
    line = Line(tmp_path, "delta", HISTORY)
    line.write(read([note(1)], 10, 1_000))
    line.commit([Transaction(20, 2_000, [Change("u", None, {**note(1), "note": "a"})])])
    line.write(read([{**note(1), "note": "b"}], 20, 9_000, snapshot=None, position=None))
    line.commit([Transaction(30, 3_000, [Change("u", None, {**note(1), "note": "c"})])])
    found = sorted(line.rows(), key=lambda row: row["_sequence"])
    assert [(row["note"], row["valid_from"]) for row in found] == [
        *((None, at(1_000)), ("a", at(2_000)), ("b", at(2_000)), ("c", at(3_000))),
    ]
    assert found[2]["_commit_time"] == at(9_000), "when it was read"


@pytest.mark.slow
@pytest.mark.parametrize("lake", ["delta", pytest.param("iceberg", marks=pytest.mark.long)])
def test_maintenance_loses_no_version(tmp_path: Path, lake: str) -> None:
    draw, line, source = Random(7), Line(tmp_path, lake, HISTORY, Upkeep(retention_minutes=1)), Source()
    for transaction in drawn(draw, 45):
        line.commit([transaction])
        source.apply(transaction)
    assert plain(line.rows()) == plain(source.versions)
    there = lake_at(line.root, line.options).open(NAME)
    assert there is not None
    assert len(there.maintenance().live) < 45, "files were joined"


def test_a_table_without_a_key_has_no_history(tmp_path: Path) -> None:
    line, bag = Line(tmp_path, "delta", HISTORY), replace(NOTES, key=(), identity=("id", "note", "document"))
    with pytest.raises(TableError, match="no key, by which the versions of a row belong together"):
        line.write(read([note(1)], 10, 1_000, bag))


@pytest.mark.parametrize(("first", "second"), [("latest", "history"), ("history", "latest"), ("changes", "history")])
def test_another_mode_than_that_of_the_tables_is_refused(tmp_path: Path, first: Kind, second: Kind) -> None:
    Line(tmp_path, "delta", first).write(read([note(1)], 10, 1_000))
    with pytest.raises(SinkError, match=f"were written with `mode: {first}`, and the pipeline has `mode: {second}`"):
        Line(tmp_path, "delta", second).write(read([note(1)], 20, 2_000))


def test_a_column_of_the_source_with_the_name_of_an_added_one_is_refused(tmp_path: Path) -> None:
    named = replace(NOTES, columns=(*NOTES.columns, replace(NOTES.columns[1], name="Valid_From")))
    line = Line(tmp_path, "delta", HISTORY)
    (part,) = parts([pa.py_buffer(read([], 10, 1_000, named).to_ipc())], layout=line.layout)
    assert "give it another name: metadata: {valid_from: ...}" in str(part.error)
    other = Line(tmp_path, "delta", HISTORY, valid_from="since")
    other.write(read([{**note(1), "Valid_From": "x"}], 10, 1_000, named))
    assert [(row["since"], row["Valid_From"]) for row in other.rows()] == [(at(1_000), "x")]


@pytest.mark.parametrize("mode", ["history", "changes"])
def test_rows_swap_keys_that_are_unique_at_the_commit_alone(tmp_path: Path, mode: Kind) -> None:
    late = replace(NOTES, identity=("id", "note", "document"), unique_at_commit=True)
    line = Line(tmp_path, "delta", mode)
    one, two = ({"id": key, "note": f"n{key}", "document": None} for key in (1, 2))
    line.write(read([one, two], 10, 1_000, late))
    swap = [Change("u", one, {**one, "id": 2}), Change("u", two, {**two, "id": 1})]
    line.commit([Transaction(20, 2_000, swap)], schema=late)
    rows = sorted(line.rows(), key=lambda row: row["_sequence"])
    if mode == "history":
        assert {(row["id"], row["note"]) for row in rows if row["valid_to"] is None} == {(1, "n2"), (2, "n1")}
    else:
        last = {row["id"]: (row["_op"], row["note"]) for row in rows}
        assert last == {1: ("u", "n2"), 2: ("u", "n1")}


def test_a_comparison_sees_current_versions_alone(tmp_path: Path) -> None:
    line = Line(tmp_path, "delta", HISTORY)
    line.write(read([note(1), note(2)], 10, 1_000))
    line.commit([Transaction(20, 2_000, [Change("u", None, {**note(1), "note": "a"}), Change("d", note(2))])])
    replica, _ = ReplicaVersion.of(line.batch().target(NAME), NOTES)
    (digests,) = replica.rows()
    assert digests.rows.to_pylist() == [{**note(1), "note": "a"}]
