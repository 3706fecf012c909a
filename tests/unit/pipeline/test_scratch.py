"""The folder of a run: its owner's alone, and removed if the run was killed."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.errors import TailraceError
from tailrace.pipeline.lease import Owner
from tailrace.pipeline.scratch import java_options, remove_abandoned, scratch_folder


def test_folders_of_killed_runs_are_removed_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    owners = {
        "tailrace-dead": replace(Owner.me(), pid=ended.pid),
        "tailrace-lives": Owner.me(),
        "tailrace-elsewhere": replace(Owner.me(), pid=ended.pid, machine="another"),
        "other": replace(Owner.me(), pid=ended.pid),
    }
    for name, owner in owners.items():
        (tmp_path / name / "blockmgr").mkdir(parents=True)
        (tmp_path / name / "owner.json").write_text(owner.content, encoding="utf-8")
    (tmp_path / "tailrace-unknown").mkdir()
    folder = scratch_folder()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*owners, "tailrace-unknown", folder.name} - {"tailrace-dead"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_another_start_removes_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "tailrace-gone" / "owner.json"
    monkeypatch.setattr(Path, "glob", lambda *_: iter([gone]))
    remove_abandoned(tmp_path)


def test_no_place_for_temporary_files_is_an_error_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(TailraceError, match=r"none: no folder can be made .*No such file[^\n]*\n  Remedy: .*TMPDIR"):
        scratch_folder()


def test_a_long_path_is_not_used_for_sockets(tmp_path: Path) -> None:
    assert java_options(Path("/tmp/tailrace-x")) == " -Djava.io.tmpdir=/tmp/tailrace-x"
    assert java_options(tmp_path / ("x" * 100)) == ""
