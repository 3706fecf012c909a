"""The reader process from a worker's side: it is found or started, answers, and ends when it must."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import psutil
import pytest

from tailrace.config import Config
from tailrace.connectors import reader_client, reader_process
from tailrace.connectors.reader_process import Server
from tailrace.connectors.reader_socket import MessageKind, ReaderLost, ReaderRequest, address, folder, message, receive
from tailrace.errors import OffsetError, SourceError
from tests.behaviour import streams_here
from tests.unit.connectors.counting import Count, Counting, Seen

SECRET = "open sesame"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files whose name is short enough for sockets; no process outlives the test."""
    place = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with streams_here.in_a_process():
        yield place
    for process in psutil.Process().children():
        with suppress(psutil.Error):  # it may end by itself meanwhile
            if str(place) in " ".join(process.cmdline()):
                process.kill()
    shutil.rmtree(place)


def config(**values: str) -> Config:
    return Config({"database.password": SECRET, **values})


def request(wanted: Count, name: str, **values: str) -> ReaderRequest:
    return ReaderRequest(Counting, config(**values), name, wanted)


def seen(wanted: Count, name: str, **values: str) -> list[Seen]:
    return [block.about for block in reader_client.ask(request(wanted, name, **values))]


@pytest.fixture
def name() -> str:
    return uuid4().hex


def test_requests_are_answered_by_one_process_and_source(name: str) -> None:
    blocks = list(reader_client.ask(request(Count(3, size=5 << 20), name)))
    assert [bytes(block.data) for block in blocks] == [bytes([n]) * (5 << 20) for n in range(3)]
    process = blocks[0].about.process
    assert process != os.getpid()
    assert [block.about for block in blocks] == [Seen(process, 1, 1, n) for n in range(3)]
    assert seen(Count(1), name) == [Seen(process, 1, 2, 0)]
    assert seen(Count(1), name, slot="another") == [Seen(process, 2, 1, 0)]


def test_workers_that_start_at_once_share_a_process(name: str) -> None:
    with ThreadPoolExecutor(8) as workers:
        found = list(workers.map(lambda _: seen(Count(1), name), range(8)))
    assert len({each.process for (each,) in found}) == 1
    assert sorted(each.read for (each,) in found) == list(range(1, 9))


def test_errors_are_those_of_the_source(name: str) -> None:
    with pytest.raises(OffsetError) as caught:
        seen(Count(1, fails="the log is gone"), name)
    assert (caught.value.what, caught.value.where, caught.value.remedy) == ("the log is gone", "here", "do this")
    with pytest.raises(RuntimeError, match="Odd: oneother"):
        seen(Count(0, fails="odd"), name)
    assert seen(Count(1), name)[0].read == 3


def test_an_answer_that_no_client_reads_is_given_up(name: str) -> None:
    with closing(reader_client.ask(request(Count(1000, size=1 << 20), name))) as blocks:
        first = next(blocks).about
    assert seen(Count(1), name) == [Seen(first.process, 1, 2, 0)]


def test_a_killed_process_is_replaced(name: str) -> None:
    blocks = reader_client.ask(request(Count(1000, size=1 << 20), name))
    first = next(blocks).about.process
    os.kill(first, signal.SIGKILL)
    with pytest.raises(ReaderLost, match="has ended"):
        list(blocks)
    psutil.wait_procs([process for process in psutil.Process().children() if process.pid == first], timeout=60)
    assert address(name).exists()
    assert seen(Count(1), name)[0].process != first


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that waits half a second before it asks whether the reader runs."""
    monkeypatch.setattr(reader_client, "SILENT_SECONDS", 0.5)


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """A process that hangs, whose answer is waited for half a second. Others on a busy machine take their time."""
    os.kill(process, signal.SIGSTOP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_client, "ANSWER_SECONDS", 0.5)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("size", [10, 64 << 20], ids=["between answers", "in an answer"])
def test_a_process_that_hangs_is_ended_and_replaced(name: str, caplog: pytest.LogCaptureFixture, size: int) -> None:
    blocks = reader_client.ask(request(Count(1000, size=size), name))
    first = next(blocks).about.process
    with stopped(first), pytest.raises(ReaderLost, match=rf"pid {first}\) has said nothing"):
        list(blocks)
    assert f"(pid {first})" in caplog.text
    assert "SIGSTOP" in caplog.text
    psutil.wait_procs([process for process in psutil.Process().children() if process.pid == first], timeout=60)
    assert seen(Count(1), name)[0].process != first


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_process_that_hangs_before_it_is_asked_is_replaced(name: str) -> None:
    first = seen(Count(1), name)[0].process
    with stopped(first), pytest.raises(ReaderLost):
        seen(Count(1), name)
    assert seen(Count(1), name)[0].process != first


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_process_that_has_nothing_to_say_is_waited_for(name: str) -> None:
    (first,) = seen(Count(1, seconds=1.5), name)
    assert first.block == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_terminated_removes_its_socket(name: str, number: int) -> None:
    process = psutil.Process(seen(Count(1), name)[0].process)
    process.send_signal(number)
    process.wait(60)
    assert not address(name).exists()


def test_nothing_secret_is_seen_from_outside(name: str) -> None:
    process = psutil.Process(seen(Count(1), name)[0].process)
    assert SECRET not in " ".join(process.cmdline())
    assert SECRET not in str(process.environ())
    assert stat.S_IMODE(folder().stat().st_mode) == 0o700
    assert stat.S_IMODE(address(name).stat().st_mode) & 0o077 == 0


def test_a_folder_that_others_may_enter_is_refused(name: str, home: Path) -> None:
    folder().chmod(0o750)
    with pytest.raises(SourceError, match="this user alone") as caught:
        seen(Count(1), name)
    assert "rm -r" in str(caught.value.remedy)
    folder_of_another = home / f"tailrace-{os.geteuid()}"
    folder_of_another.rmdir()
    (home / "elsewhere").mkdir(mode=0o700)
    folder_of_another.symlink_to(home / "elsewhere")
    with pytest.raises(SourceError, match="this user alone"):
        seen(Count(1), name)


def test_a_long_path_of_temporary_files_is_not_used(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(home / ("x" * 120)))
    assert len(str(address(name))) < 104


def test_a_process_that_cannot_start_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(SourceError, match="did not start"):
        seen(Count(1), name)


def test_a_process_that_is_killed_while_it_starts_can_be_started_again(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / "killed"
    program.write_text("#!/bin/sh\nkill -KILL $$\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(ReaderLost):
        seen(Count(1), name)


# The loop of the process, in this one


@pytest.fixture
def server(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A server in a thread of this process."""
    # A test on a busy machine may take its time to ask.
    monkeypatch.setattr(reader_process, "IDLE_SECONDS", 60.0)
    monkeypatch.setattr(reader_process, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(reader_process, "_STALLED_SECONDS", 0.3)
    path = home / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_serve, args=(listener,))
        thread.start()
        yield path
        Counting.wanted = False
        is_impatient(path, monkeypatch)
        thread.join(60)
        assert not thread.is_alive()


def _serve(listener: socket.socket) -> None:
    with listener:  # as the end of a process closes it
        Server(listener).serve()


def is_impatient(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server leave when nobody asks for a moment."""
    monkeypatch.setattr(reader_process, "IDLE_SECONDS", 0.1)
    with socket.socket(socket.AF_UNIX) as client, suppress(ConnectionError):
        client.connect(str(path))  # it waits for the next one as it is said now


def opened(path: Path, wanted: Count) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    client.sendall(message(MessageKind.REQUEST, request(wanted, "here"))[0])
    return client


def drain(client: socket.socket) -> None:
    while True:
        receive(client)


@pytest.mark.slow
def test_a_server_stays_while_its_pipeline_runs(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Counting.wanted = True
    with opened(server, Count(1)) as client:
        assert [receive(client)[0] for _ in range(2)] == [MessageKind.BLOCK, MessageKind.END]
    is_impatient(server, monkeypatch)
    time.sleep(0.7)
    with opened(server, Count(0)) as client:
        assert receive(client)[0] == MessageKind.END
    Counting.wanted = False
    deadline = time.monotonic() + 60
    while is_served(server):
        assert time.monotonic() < deadline
        time.sleep(0.5)


def is_served(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as late:
            late.connect(str(path))
    except ConnectionError:
        return False
    return True


def test_a_worker_that_stalls_gives_way_to_another(server: Path) -> None:
    with opened(server, Count(1000, size=1 << 20)) as stalled, opened(server, Count(1)) as other:
        assert receive(other)[1].read == 2
        with pytest.raises((EOFError, ConnectionError)):
            drain(stalled)


def test_a_worker_that_is_slow_keeps_its_turn(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(reader_process, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with opened(server, Count(12, size=1 << 20)) as slow, opened(server, Count(1)) as other:
        for number in range(12):
            assert receive(slow)[1].block == number
            now[0] += 0.2  # less than what counts as stalled, until it takes the next one, which no buffer holds
        assert receive(slow)[0] == MessageKind.END
        assert receive(other)[1].read == 2


# Whose end ends it


@pytest.mark.slow
@pytest.mark.parametrize("without", ["", "import os; del os.pidfd_open;"])
def test_it_ends_with_its_owner(home: Path, without: str) -> None:
    mark = home / "mark"
    mark.touch()
    code = f"{without}from tailrace.connectors.reader_process import _leave_with, Path\n"
    with subprocess.Popen(["sleep", "60"]) as owner:
        code += f"_leave_with({owner.pid}, Path('{mark}'))"
        with subprocess.Popen([sys.executable, "-c", code]) as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.7)
            owner.kill()
            owner.wait()
            assert process.wait(60) == 0
    assert not mark.exists()
