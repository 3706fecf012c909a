"""What keeps a catalogue up to date: tables that come, change and go, a catalogue and a source that are away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tailrace.errors import SinkAwayError, SinkError, SourceAwayError, TailraceError
from tailrace.pipeline.registrar import Registrar, Shelf
from tailrace.sinks.replica.catalogs.entry import CatalogEntry, CatalogTable, TableDescription


class Shelves:
    """A catalogue in memory; `away` says whether it does not answer."""

    def __init__(self) -> None:
        self.tables: dict[str, CatalogEntry | CatalogTable] = {}
        self.calls: list[str] = []
        self.away = False

    def look(self) -> str:
        return "here"

    def find(self, name: str) -> CatalogTable | None:
        if self.away:
            raise SinkAwayError("it does not answer", remedy="start it")
        found = self.tables.get(name)
        return CatalogTable.of(found.location, found.parameters) if isinstance(found, CatalogEntry) else found

    def create(self, entry: CatalogEntry) -> None:
        assert entry.name not in self.tables
        self.calls.append(f"create {entry.name}")
        self.tables[entry.name] = entry

    def change(self, entry: CatalogEntry) -> None:
        assert entry.name in self.tables
        self.calls.append(f"change {entry.name}")
        self.tables[entry.name] = entry

    def drop(self, name: str) -> None:
        self.calls.append(f"drop {name}")
        del self.tables[name]


class Case:
    """A replica below a folder, whose tables the source has or has not any more."""

    def __init__(self, root: Path) -> None:
        self.root, self.catalog = root, Shelves()
        self.tables: dict[str, bool] = {}
        self.described: dict[str, TableDescription] | TailraceError = {}
        self.noted: list[tuple[str, ...]] = []
        self.asked = 0
        self.registrar = self.started()

    def started(self) -> Registrar:
        shelf = Shelf(str(self.root))
        return Registrar(self.catalog, shelf, self.describe, lambda: dict(self.tables), self.noted.append)

    def describe(self) -> Mapping[str, TableDescription]:
        self.asked += 1
        if isinstance(self.described, TailraceError):
            raise self.described
        return self.described

    def write(self, table: str, **columns: list[Any]) -> None:
        self.tables[table] = True
        place = self.root / table.replace(".", "_")
        write_deltalake(str(place), pa.table(columns), mode="overwrite", schema_mode="overwrite")
        self.registrar.written([table])


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_start_registers_what_is_missing_and_no_more(case: Case) -> None:
    case.described = {"public.a": TableDescription("a's comment", {"id": "the id"}, ("id",))}
    case.write("public.a", id=[1])
    case.write("public.b", id=[1])
    case.tables["public.unwritten"] = True
    case.registrar.bring()
    assert case.catalog.calls == ["create public_a", "create public_b"]
    found = case.catalog.tables["public_a"]
    assert isinstance(found, CatalogEntry)
    assert (found.comment, found.key, found.columns[0].comment) == ("a's comment", ("id",), "the id")
    assert found.location == f"file://{case.root}/public_a"
    case.write("public.a", id=[2])
    case.registrar.bring()
    case.started().bring()
    assert case.catalog.calls == ["create public_a", "create public_b"]
    del case.catalog.tables["public_b"]
    case.started().bring()
    assert case.catalog.calls[2:] == ["create public_b"]
    assert case.noted == [(), (), ()]


def test_other_columns_are_changed_with_what_the_source_says_then(case: Case) -> None:
    case.write("public.a", id=[1])
    case.registrar.bring()
    case.write("public.a", id=[1], note=["x"])
    case.described = {"public.a": TableDescription(None, {"note": "new"})}
    case.registrar.bring()
    assert case.catalog.calls == ["create public_a", "change public_a"]
    found = case.catalog.tables["public_a"]
    assert isinstance(found, CatalogEntry)
    assert [each.comment for each in found.columns] == [None, "new"]
    assert case.asked == 2, "at the start, and for the new columns"


def test_a_table_that_comes_later_is_described(case: Case) -> None:
    case.registrar.bring()
    case.described = {f"public.{name}": TableDescription("new") for name in ("a", "b")}
    case.write("public.a", id=[1])
    case.write("public.b", id=[1])
    case.registrar.bring()
    assert [each.comment for each in case.catalog.tables.values() if isinstance(each, CatalogEntry)] == ["new", "new"]
    assert case.asked == 2, "at the start, and once for both"
    case.write("public.a", id=[2])
    case.registrar.bring()
    assert case.asked == 2


def test_what_is_written_while_a_table_is_registered_is_looked_at_again(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.write("public.a", id=[1])
    create = case.catalog.create

    def slow(entry: CatalogEntry) -> None:
        create(entry)
        case.write("public.a", id=[1], note=["x"])

    with monkeypatch.context() as patch:
        patch.setattr(case.catalog, "create", slow)
        case.registrar.bring()
    case.registrar.bring()
    assert case.catalog.calls == ["create public_a", "change public_a"]


def test_a_catalog_that_is_away_is_told_and_gets_all_of_it_later(case: Case) -> None:
    case.write("public.a", id=[1])
    case.write("public.b", id=[1])
    case.catalog.away = True
    case.registrar.bring()
    (problem,) = case.registrar.problems
    assert problem.startswith("it does not answer; remedy: start it; tables are registered once that is over")
    case.catalog.away = False
    case.registrar.bring()
    assert sorted(case.catalog.tables) == ["public_a", "public_b"]
    assert case.noted == [(problem,), ()]


def test_a_source_that_is_away_delays_the_catalog(case: Case) -> None:
    case.write("public.a", id=[1])
    case.described = SourceAwayError("the server does not answer")
    case.registrar.bring()
    assert "the server does not answer" in case.registrar.problems[0]
    case.described = {}
    case.registrar.bring()
    assert not [*case.registrar.problems]
    assert case.catalog.calls == ["create public_a"]


def test_somebody_elses_table_is_told_and_the_others_are_registered(case: Case) -> None:
    case.catalog.tables["public_a"] = CatalogTable("s3://elsewhere", None, None)
    case.write("public.a", id=[1])
    case.write("public.b", id=[1])
    case.registrar.bring()
    (problem,) = case.registrar.problems
    assert problem.startswith("public_a is not in the catalog: the catalog has another table of the name")
    assert case.catalog.calls == ["create public_b"]
    del case.catalog.tables["public_a"]
    case.started().bring()
    assert case.catalog.calls == ["create public_b", "create public_a"]


def test_what_concerns_all_tables_is_told_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise SinkError("there is no database shop", remedy="create it")

    for name in ("a", "b"):
        case.write(f"public.{name}", id=[1])
    with monkeypatch.context() as patch:
        patch.setattr(case.catalog, "find", refuse)
        patch.setattr(case.catalog, "look", refuse)
        case.registrar.bring()
        assert case.registrar.problems == ("there is no database shop; remedy: create it",)
        patch.undo()
        patch.setattr(case.catalog, "find", refuse)
        case.registrar.bring()
    problems = list(case.registrar.problems)
    first, second = problems
    assert first == "public_a is not in the catalog: there is no database shop; remedy: create it"
    assert second.startswith("public_b")


def test_tables_that_are_refused_are_told_up_to_ten(case: Case) -> None:
    for n in range(12):
        case.catalog.tables[f"public_t{n:02}"] = CatalogTable("s3://elsewhere", None, None)
        case.write(f"public.t{n:02}", id=[1])
    case.registrar.bring()
    assert len(case.registrar.problems) == 11
    assert case.registrar.problems[-1].startswith("2 more tables are not in the catalog")


def test_a_table_that_is_registered_for_these_files_already_is_left(case: Case) -> None:
    known = case.catalog.tables["public_a"] = CatalogTable(f"file:{case.root}/public_a", None, None)
    case.write("public.a", id=[1])
    case.registrar.bring()
    assert case.registrar.problems == ()
    assert case.catalog.tables == {"public_a": known}


def test_a_table_that_is_gone_leaves_unless_its_rows_are_kept(case: Case) -> None:
    case.write("public.cleared", id=[1])
    case.write("public.kept", id=[1])
    case.registrar.bring()
    DeltaTable(case.root / "public_cleared").delete()
    case.tables = {"public.cleared": False, "public.kept": False}  # as the source's catalog tells, without a write
    case.registrar.bring()
    assert case.catalog.calls[2:] == ["drop public_cleared"]
    case.write("public.cleared", id=[2])
    case.registrar.bring()
    assert case.catalog.calls[3:] == ["create public_cleared"]


def test_a_run_that_ends_registers_what_was_written_last(case: Case) -> None:
    case.registrar.start()
    case.write("public.a", id=[1])
    case.registrar.stop()
    assert case.catalog.calls == ["create public_a"]


def test_an_error_that_nobody_expected_is_told_and_the_thread_goes_on(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.write("public.a", id=[1])
    with monkeypatch.context() as patch:
        patch.setattr(case.catalog, "find", lambda _: dict[str, str]()["x"])
        case.registrar.bring()
    assert case.registrar.problems == ("the catalog is not brought up to date: KeyError: 'x'; remedy: see the log",)
    case.registrar.bring()
    assert not [*case.registrar.problems]
    assert case.catalog.calls == ["create public_a"]
