"""What a source says of its log's end reaches the run by a file, where Spark does not ask for it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tailrace.spark.latest_file import LatestFile


def test_each_of_the_newest_offsets_has_what_was_said_of_it(tmp_path: Path) -> None:
    writer, reader = LatestFile(tmp_path / "latest.json"), LatestFile(tmp_path / "latest.json")
    assert reader.read({"position": "1"}) == {}, "nothing is written yet"
    for number in range(100):
        writer.write({"phase": "stream", "position": str(number)}, {"complete_us": number})
    assert reader.read({"position": "99", "phase": "stream"}) == {"complete_us": 99}, "whatever the order of keys"
    assert reader.read({"phase": "stream", "position": "90"}) == {"complete_us": 90}
    assert reader.read({"phase": "stream", "position": "1"}) == {}, "the file stays small"


def test_a_quiet_log_gets_newer_and_is_kept(tmp_path: Path) -> None:
    file = LatestFile(tmp_path / "latest.json")
    file.write({"position": "1"}, {"complete_us": 1})
    for number in range(2, 40):
        file.write({"position": "1"}, {"complete_us": number})
    assert file.read({"position": "1"}) == {"complete_us": 39}
    file.write({"position": "2"}, None)
    assert file.read({"position": "2"}) == {}, "nothing was said"


def test_a_file_that_cannot_be_written_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = LatestFile(tmp_path / "away" / "latest.json")
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            file.write({"position": str(number)}, {"complete_us": 1})
    assert len(caplog.records) == 1
    assert "No such file or directory" in caplog.records[0].getMessage()
