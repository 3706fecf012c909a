"""Whether a pipeline runs, by the files in its checkpoint."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.errors import ConfigError, SourceError, TailraceError
from tailrace.pipeline.complete import FILE as COMPLETE
from tailrace.pipeline.files import LocalFile
from tailrace.pipeline.lease import Owner
from tailrace.pipeline.run_state import LAST_RUN, LEASE, Ended, caught_up, ended, ended_early, run_state


def test_a_pipeline_that_runs_and_one_that_was_killed(tmp_path: Path) -> None:
    assert run_state(str(tmp_path / "none")).state == "never started"
    (tmp_path / LEASE).write_text(Owner.me().content)
    found = run_state(str(tmp_path))
    assert (found.state, found.is_dead) == ("running", False)
    assert f"process {os.getpid()} on " in str(found)
    with subprocess.Popen([sys.executable, "-c", ""]) as other:
        other.wait()
    (tmp_path / LEASE).write_text(replace(Owner.me(), pid=other.pid).content)
    found = run_state(str(tmp_path))
    assert (found.state, found.is_dead) == ("killed", True)
    assert "killed, or its machine is out of reach: process" in str(found)


def test_an_owner_on_another_machine_is_known_by_the_age_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / LEASE
    file.write_text(replace(Owner.me(), machine="another").content)
    assert run_state(str(tmp_path)).state == "running"
    long_ago = time.time() - 100
    os.utime(file, (long_ago, long_ago))
    assert run_state(str(tmp_path)).state == "killed"


def test_a_file_that_cannot_be_read_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / LEASE).mkdir()
    with pytest.raises(ConfigError, match=r"lease\.json: the file cannot be read.*\n  Remedy: run this as the user"):
        run_state(str(tmp_path))


def test_how_a_run_ended(tmp_path: Path) -> None:
    file = LocalFile(tmp_path / LAST_RUN)
    ended(file, SourceError("there is no slot", where="slot s", remedy="make one"))
    found = run_state(str(tmp_path))
    assert (found.state, found.is_dead) == ("failed", True)
    assert found.last is not None
    assert (found.last.error, found.last.remedy) == ("slot s: there is no slot", "make one")
    ended(file, None)
    found = run_state(str(tmp_path))
    assert (found.state, found.is_dead) == ("stopped", False)
    assert str(found).startswith("stopped at 2")
    file.write(json.dumps({"at": "x"})[:-1])
    assert run_state(str(tmp_path)).last is None
    assert Ended.read('{"of": "a later version"}') is None


def test_a_full_disk_has_room_for_how_a_run_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = LocalFile(tmp_path / LAST_RUN)

    def is_full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", is_full)
        assert not ended(file, TailraceError("a disk is full"))
    ended(file, SourceError("a long error of the run before " + "x" * 500))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", is_full)
        assert ended(file, TailraceError("a disk is full"))
    last = run_state(str(tmp_path)).last
    assert last is not None
    assert last.error == "a disk is full"
    assert [each.name for each in tmp_path.iterdir()] == [LAST_RUN]


def test_a_run_that_could_not_write_down_how_it_ended_has_been_there(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    assert run_state(str(tmp_path)).state == "never started", "a query of somebody's own has no such files"
    (tmp_path / COMPLETE).touch()
    found = run_state(str(tmp_path))
    assert found.state == "failed"
    assert found.last is not None
    assert found.last.error == "the last run has not written down how it ended, as it cannot on a full disk"
    assert f"free space on the disk of {tmp_path}" in str(found.last.remedy)
    (tmp_path / LEASE).write_text(Owner.me().content)
    assert (run_state(str(tmp_path)).state, run_state(str(tmp_path)).last) == ("running", None)


def test_a_run_that_failed_before_it_had_the_lease(tmp_path: Path) -> None:
    error = TailraceError("Spark did not start", where="spark.master", remedy="set it")
    (tmp_path / LEASE).write_text(Owner.me().content)
    ended_early(str(tmp_path), error)
    ended_early("s3://bucket/state", error)
    assert (run_state(str(tmp_path)).state, run_state(str(tmp_path)).last) == ("running", None)
    (tmp_path / LEASE).unlink()
    ended_early(str(tmp_path), error)
    found = run_state(str(tmp_path))
    assert found.state == "failed"
    assert found.last is not None
    assert (found.last.error, found.last.remedy) == ("spark.master: Spark did not start", "set it")


def test_when_the_run_had_read_the_whole_log_is_known_while_it_runs_and_after(tmp_path: Path) -> None:
    def progress(latest: object) -> dict[str, object]:
        return {"timestamp": "1970-01-01T00:00:10.500Z", "sources": [{"latestOffset": latest}]}

    assert caught_up(progress({"position": "0/1", "lag_ms": 2000})) == 8.5
    assert caught_up(progress(json.dumps({"lag_ms": 0}))) == 10.5
    assert caught_up(progress({"position": "0/1"})) is None
    assert caught_up({"timestamp": "1970-01-01T00:00:10Z", "sources": []}) is None

    (tmp_path / LEASE).write_text(replace(Owner.me(), caught_up=7.0).content)
    assert run_state(str(tmp_path)).caught_up == 7.0
    (tmp_path / LEASE).unlink()
    ended(LocalFile(tmp_path / LAST_RUN), None, 8.0)
    assert run_state(str(tmp_path)).caught_up == 8.0


def test_the_error_of_the_run_before_is_over_once_a_run_has_committed(tmp_path: Path) -> None:
    ended(LocalFile(tmp_path / LAST_RUN), SourceError("there is no slot"))
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "7").touch()
    os.utime(tmp_path / "commits" / "7", (time.time() - 60,) * 2)
    (tmp_path / LEASE).write_text(Owner.me().content)
    last = run_state(str(tmp_path)).last
    assert last is not None
    assert last.error == "there is no slot"
    (tmp_path / "commits" / "8").touch()
    os.utime(tmp_path / "commits" / "8", (time.time() + 1,) * 2)
    assert (run_state(str(tmp_path)).state, run_state(str(tmp_path)).last) == ("running", None)
