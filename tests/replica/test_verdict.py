"""What a table of a case counts as, by its rows, by what the pipeline says of it, and by what the case allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tailrace.model.table import TableId
from tests.replica.case import Case, Marks
from tests.replica.postgres import PostgresTable
from tests.replica.postgres_types import PostgresType
from tests.replica.states import GONE, INCOMPLETE, READING, SET_ASIDE, TableState
from tests.replica.verdict import Verdict, judge

T = TableId("", "public", "t")
ROWS = {"v": pa.array([1, 2], pa.int32())}


def source(*values: str, is_sent: bool = True) -> PostgresTable:
    return PostgresTable(T, {"v": PostgresType("int4")}, [[value] for value in values], is_sent)


def case(folder: Path, **settings: Any) -> Case:
    (folder / "replica.json").write_text(json.dumps(settings), encoding="utf-8")
    return Case(folder)


def verdict(
    folder: Path,
    table: PostgresTable | None,
    state: TableState | None = None,
    marked: bool = False,
    replica: Any = ROWS,
    **settings: Any,
) -> Verdict:
    """The verdict about the table `public.t`, whose replica has the rows 1 and 2 unless others are given."""
    lake = folder / "lake"
    write_deltalake(lake / "public.t", pa.table(replica), mode="overwrite", schema_mode="overwrite")
    states = {} if state is None else {"public.t": state}
    rows = {"public.t": pa.table(replica).num_rows}
    given = case(folder, **settings)
    (found,) = judge(given, str(lake), [table] if table else [], rows, states, {"public.t": "why"} if marked else {})
    return found


def test_equal_rows_pass(tmp_path: Path) -> None:
    assert verdict(tmp_path, source("1", "2")) == Verdict("public.t", "SAME", "", True)
    assert verdict(tmp_path, source("1", "2"), marked=True).word == "SAME after being read again"


def test_other_rows_fail_and_are_shown(tmp_path: Path) -> None:
    found = verdict(tmp_path, source("1", "3"))
    assert str(found) == "public.t: DIFFERS only in the source (1): (v=3), only in the replica (1): (v=2)"
    assert not found.passes


@pytest.mark.parametrize(("state", "key"), [(SET_ASIDE, "aside"), (INCOMPLETE, "incomplete"), (READING, "incomplete")])
def test_a_state_passes_where_the_case_allows_it_for_its_reason(tmp_path: Path, state: str, key: str) -> None:
    told = TableState(state, "the type changed")
    renamed: Any = {"public.t": "renamed"}
    other: Any = ["public.other"]
    assert not verdict(tmp_path, source("1"), told).passes
    assert not verdict(tmp_path, source("1"), told, **{key: renamed}).passes
    assert not verdict(tmp_path, source("1"), told, **{key: other}).passes
    allowing: list[Any] = [{"public.t": "type"}, ["public.t"], {"*": "changed"}, True]
    for allowed in allowing:
        assert verdict(tmp_path, source("1"), told, **{key: allowed}).passes


def test_a_table_that_is_not_sent_needs_no_replica(tmp_path: Path) -> None:
    empty = {"v": pa.array([], pa.int32())}
    assert verdict(tmp_path, source("1", is_sent=False), replica=empty).word == "NOT SENT"
    assert not verdict(tmp_path, source("1", is_sent=False)).passes
    assert not verdict(tmp_path, source("1"), replica=empty).passes


def test_rows_of_a_table_that_is_gone_have_to_be_told(tmp_path: Path) -> None:
    assert verdict(tmp_path, None).word == "LEFT"
    assert not verdict(tmp_path, None).passes
    assert verdict(tmp_path, None, left=["public.t"]).passes
    assert verdict(tmp_path, None, TableState(GONE, "dropped")).passes


def test_marks_are_limited_by_number_or_by_name() -> None:
    marked = {"public.t": "a column was added", "public.u": "no reason"}
    assert Marks.of(None).broken(marked) is None
    assert Marks.of(2).broken(marked) is None
    assert "2 tables were marked incomplete, at most 0" in str(Marks.of(0).broken(marked))
    assert Marks.of(["public.t"]).broken(marked) == "marked incomplete without need: public.u"
    assert Marks.of({"public.t": "column", "public.u": "column"}).broken(marked) is not None


def test_an_unknown_key_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not case(tmp_path, asides=True).aside.has("public.t", "")
    assert "asides is ignored; known are aside, config" in capsys.readouterr().out
