"""A sink's local path is checked before anything starts: it is a writable folder, or can be created."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Admin, TableOverview
from tailrace.model.table import TableId
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.sink_check import check

CONFIG = {"topic.prefix": "t", "database.hostname": "h", "database.user": "u", "database.dbname": "d"}


class NoTables:
    """A source without tables."""

    def overview(self) -> Iterable[Any]:
        return ()


class TwoTables:
    """A source with a table without a key, and one with a key."""

    def overview(self) -> Iterable[TableOverview]:
        return [TableOverview(TableId("d", "public", name), 0, 0, has_key=name == "keyed") for name in ("bag", "keyed")]


def found(folder: Path, kind: str, path: object, **settings: str) -> list[Finding]:
    spark = {name.replace("__", "."): value for name, value in settings.items()}
    content = {"source": {"config": CONFIG}, "sink": {kind: {"path": path}}, "checkpoint": "state", "spark": spark}
    return check(from_content(content, base=folder, where="test"), cast(Admin, NoTables()))


@pytest.mark.parametrize(("mode", "expected"), [("latest", []), ("changes", []), ("history", ["bag"])])
def test_history_warns_of_tables_without_a_key(tmp_path: Path, mode: str, expected: list[str]) -> None:
    sink = {"replica": {"path": str(tmp_path), "mode": mode}}
    content = {"source": {"config": CONFIG}, "sink": sink, "checkpoint": "state"}
    findings = check(from_content(content, base=tmp_path, where="test"), cast(Admin, TwoTables()))
    said = [f"public.{name} has no primary key" for name in expected]
    assert [(finding.ok, finding.what.partition(";")[0]) for finding in findings] == [(None, each) for each in said]


@pytest.mark.parametrize("kind", ["json", "parquet", "replica"])
def test_a_path_that_is_a_file(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "afile"
    file.write_text("no folder")
    (same,), (below,) = found(tmp_path, kind, "afile"), found(tmp_path, kind, "afile/sub")
    assert (same.name, same.ok, same.what) == (f"sink.{kind}.path", False, f"{file} is a file")
    assert below.what == f"{file}/sub cannot be made, as {file} is a file"
    assert same.remedy == below.remedy == f"set sink.{kind}.path to a folder, or to one to be made"


def test_a_folder_or_one_to_be_made(tmp_path: Path) -> None:
    assert found(tmp_path, "json", tmp_path) == []
    assert found(tmp_path, "json", "none/yet") == []
    assert not (tmp_path / "none").exists()


def test_a_folder_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (finding,) = found(tmp_path, "replica", "none/yet")
    assert (finding.ok, finding.what) == (False, f"this user may not write to the folder {tmp_path}")


def test_paths_that_are_not_of_this_machine_are_left(tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("no folder")
    assert found(tmp_path, "json", "s3a://bucket/afile") == []
    assert found(tmp_path, "json", "afile", spark__master="spark://there:7077") == []
    assert found(tmp_path, "json", "afile", spark__hadoop__fs__defaultFS="hdfs://there") == []


def test_a_store_that_cannot_be_opened_is_told_without_its_password(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, "replica", "foo://user:s3cret@host/lake")
    assert (finding.name, finding.ok) == ("sink.replica.path", False)
    assert "foo://user:********@host/lake does not answer" in finding.what
    assert "s3cret" not in finding.what
