"""Of two runs on one checkpoint the second is refused; a dead run's lease is taken over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import ConfigError
from tailrace.pipeline import lease
from tailrace.pipeline.files import LocalFile
from tailrace.pipeline.lease import Lease, Owner

ELSEWHERE = "another machine"


@pytest.fixture
def file(tmp_path: Path) -> LocalFile:
    return LocalFile(tmp_path / "state" / "lease.json")


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(lease, "STALE_SECONDS", 1.0)
    monkeypatch.setattr(lease, "_LOOK_SECONDS", 0.02)


@pytest.fixture
def kept(file: LocalFile) -> Iterator[Lease]:
    """A lease that is held and renewed."""
    held = Lease(file)
    held.acquire()
    held.keep(lambda: True, lambda: None)
    yield held
    held.release()


def foreign(file: LocalFile, **changes: Any) -> Owner:
    """The lease of another process."""
    owner = replace(Owner.me(), host="elsewhere", **changes)
    file.create(owner.content)
    return owner


def test_a_second_run_is_refused_and_the_error_names_the_owner(file: LocalFile, kept: Lease) -> None:
    with pytest.raises(ConfigError) as refused:
        Lease(file).acquire()
    assert f"the checkpoint is in use by another run: process {os.getpid()} on " in refused.value.what
    assert refused.value.where == file.where
    assert "stop that run" in str(refused.value.remedy)


def test_a_clean_stop_removes_it(file: LocalFile) -> None:
    first = Lease(file)
    first.acquire()
    assert file.read() is not None
    first.release()
    assert file.read() is None
    second = Lease(file)
    second.acquire()
    first.release()
    assert file.read() is not None, "another run's lease is left alone"
    second.release()


def test_a_process_that_was_killed_on_this_machine_is_taken_over_at_once(
    file: LocalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"""
from pathlib import Path
from tailrace.pipeline.files import LocalFile
from tailrace.pipeline.lease import Lease
Lease(LocalFile(Path({file.where!r}))).acquire()
print("held", flush=True)
input()
"""
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(ConfigError, match=f"process {other.pid} on"):
        Lease(file).acquire()
    other.send_signal(signal.SIGKILL)
    other.communicate()
    monkeypatch.setattr(lease, "STALE_SECONDS", 1000.0)
    mine = Lease(file)
    mine.acquire()
    mine.release()


def test_a_process_id_that_was_given_again_is_not_the_owner(file: LocalFile) -> None:
    foreign(file, started="1")
    Lease(file).acquire()
    assert json.loads(file.read() or "")["host"] != "elsewhere"


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, "", "{}", "["])
def test_a_lease_of_another_machine_expires(file: LocalFile, content: str | None) -> None:
    """One that is damaged does as well."""
    if content is None:
        foreign(file, machine=ELSEWHERE, pid=1)
    else:
        file.create(content)
    began = time.monotonic()
    Lease(file).acquire()
    assert time.monotonic() - began > 0.9


@pytest.mark.parametrize("years", [-1, 1])
def test_a_run_of_another_machine_that_renews_is_alive_whatever_its_clock_says(
    file: LocalFile, years: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = foreign(file, machine=ELSEWHERE, since=f"{2026 + years}-01-01T00:00:00+00:00")
    looks = 0

    class Renewed(LocalFile):
        """Renewed by its owner between the third look and the fourth one."""

        def read(self) -> str | None:
            nonlocal looks
            looks += 1
            if looks == 4:
                self.write(replace(owner, beat=1).content)
            return super().read()

    monkeypatch.setattr(lease, "STALE_SECONDS", 1000.0)
    with pytest.raises(ConfigError, match="on elsewhere, since"):
        Lease(Renewed(Path(file.where))).acquire()
    assert looks == 4


def test_one_that_is_released_while_it_is_watched(file: LocalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "STALE_SECONDS", 1000.0)  # longer than a test may take
    foreign(file, machine=ELSEWHERE)
    timer = threading.Timer(0.2, file.delete)
    timer.start()
    mine = Lease(file)
    mine.acquire()
    timer.join()
    assert mine._owner.content == file.read()


def test_the_owner_renews_and_notices_that_another_run_took_over(file: LocalFile) -> None:
    mine, told = Lease(file), threading.Event()
    mine.acquire()
    mine.keep(lambda: True, told.set, lambda owner: replace(owner, caught_up=12.5))
    before = file.read()
    eventually(lambda: file.read() != before)
    renewed = Owner.read(file.read() or "")
    assert renewed is not None
    assert renewed.caught_up == 12.5

    def is_noticed() -> bool:
        # A renewal that has read the file before may write it after this.
        file.write(replace(Owner.me(), host="elsewhere").content)
        return told.wait(0.2)

    eventually(is_noticed)
    assert "on elsewhere" in str(mine.lost)
    mine.release()
    assert file.read() is not None


def test_what_the_owner_has_to_say_is_stored_at_once(file: LocalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 1000.0)  # longer than a test may take
    mine, said = Lease(file), ["no registry"]
    mine.acquire()
    mine.keep(lambda: True, lambda: None, lambda owner: replace(owner, error=said[0]))
    mine.renew()
    eventually(lambda: (owner := Owner.read(file.read() or "")) is not None and owner.error == said[0])
    mine.release()


def test_it_is_renewed_no_longer_than_it_is_needed(file: LocalFile) -> None:
    mine = Lease(file)
    mine.acquire()
    before = file.read()
    mine.keep(lambda: False, lambda: None)
    assert mine._thread is not None
    mine._thread.join(60)
    assert not mine._thread.is_alive()
    assert file.read() == before
    mine.release()


class Slow(LocalFile):
    """A file system on which two may create one file at the same moment; the last writer is seen by all."""

    settle_seconds = 0.1

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._both_write = threading.Barrier(2)

    def create(self, content: str) -> bool:
        self._both_write.wait(60)
        self.write(content)
        self._both_write.wait(60)  # within the time that the file system takes to show it
        return True


def test_of_two_that_create_it_at_once_one_is_refused(tmp_path: Path) -> None:
    file, refused = Slow(tmp_path / "lease.json"), []

    def acquire() -> None:
        try:
            Lease(file).acquire()
        except ConfigError as error:
            refused.append(error)

    threads = [threading.Thread(target=acquire) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(ConfigError) as refused:
        Lease(LocalFile(tmp_path / "state" / "lease.json")).acquire()
    assert "checkpoint" in str(refused.value.remedy)


def eventually(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
