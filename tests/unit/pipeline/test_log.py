"""The log of a run: its warnings, and its rotation under a process that writes to it."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from tailrace.errors import SourceError
from tailrace.pipeline import log as log_module
from tailrace.pipeline.log import LogFile, Warned
from tailrace.spark.logs import FORMAT


def written(level: int, text: str) -> str:
    record = logging.LogRecord("tailrace.snapshot.signals", level, __file__, 1, text, None, None)
    return logging.Formatter(FORMAT).format(record) + "\n"


def test_our_own_warnings_are_found_with_their_remedies(tmp_path: Path) -> None:
    file = tmp_path / "shop.log"
    file.write_text(written(logging.WARNING, "of an earlier run"), encoding="utf-8")
    watched = LogFile(file)
    error = SourceError("the signal is refused", remedy="correct it")
    with file.open("a", encoding="utf-8") as out:
        out.write("26/11/24 10:00:00 WARN TaskSetManager: Lost task 0.0\n  at java.lang.Thread\n")
        out.write(written(logging.INFO, "all is well"))
        out.write(written(logging.WARNING, str(error)))
        out.write("\tat org.apache.spark\n  not ours\n")
        out.write(written(logging.ERROR, "half a line")[:-1])
    assert watched.news() == [Warned("WARNING", "the signal is refused\n  Remedy: correct it")]
    assert watched.news() == []
    with file.open("a", encoding="utf-8") as out:
        out.write("\n")
    assert watched.news() == [Warned("ERROR", "half a line")]


def test_a_log_that_cannot_be_rotated_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_module, "LARGEST", 300)
    file = tmp_path / "shop.log"
    watched = LogFile(file)

    def refuse(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log_module, "rotate", refuse)
    for number in range(4):
        line = written(logging.WARNING, f"the {number}.")
        with file.open("a", encoding="utf-8") as writer:
            writer.write(line.rjust(200, "\n"))
        assert watched.news() == [Warned("WARNING", f"the {number}.")]
    assert caplog.text.count("shop.log is too large and cannot be rotated: No space left on device") == 2


def test_a_rotated_log_is_copied_to_no_link(tmp_path: Path) -> None:
    file, victim = tmp_path / "shop.log", tmp_path / "victim"
    file.write_bytes(b"lines\n")
    victim.write_bytes(b"mine")
    (tmp_path / "shop.log.1").symlink_to(victim)
    log_module.rotate(file)
    assert victim.read_bytes() == b"mine"
    found = {each.name: (each.is_symlink(), each.read_bytes()) for each in tmp_path.glob("shop.log*")}
    assert found == {"shop.log": (False, b""), "shop.log.1": (False, b"lines\n"), "shop.log.2": (True, b"mine")}


def test_a_large_log_is_rotated_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "LARGEST", 100)
    file = tmp_path / "shop.log"
    with file.open("ab", buffering=0) as writer:
        watched = LogFile(file)
        for number in range(10):
            writer.write(f"{number}".encode() * 99 + b"\n")
            watched.news()
        writer.write(written(logging.WARNING, "the last").encode())
        assert watched.news() == [Warned("WARNING", "the last")]
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["shop.log", "shop.log.1", "shop.log.2", "shop.log.3"]
    assert file.stat().st_size < 250
    assert (tmp_path / "shop.log.1").read_bytes().startswith(b"8" * 99), "the newest of the earlier ones"
    assert (tmp_path / "shop.log.3").read_bytes().startswith(b"4" * 99)
