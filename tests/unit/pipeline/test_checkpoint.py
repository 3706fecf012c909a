"""The position in a checkpoint's files, as Spark writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.errors import OffsetError
from tailrace.pipeline.checkpoint import position


def batch(root: Path, number: int, lsn: str, *, committed: bool) -> None:
    for folder in ("offsets", "commits"):
        (root / folder).mkdir(exist_ok=True)
    offset = json.dumps({"phase": "stream", "lsn": lsn})
    (root / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{offset}')
    (root / "offsets" / f".{number}.crc").write_text("x")
    if committed:
        (root / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    batch(tmp_path, 9, "0/9", committed=True)
    batch(tmp_path, 10, "0/10", committed=True)
    batch(tmp_path, 11, "0/11", committed=False)
    found = position(str(tmp_path))
    assert found.planned is not None
    assert found.committed is not None
    assert (found.planned.number, found.planned.offset["lsn"]) == (11, "0/11")
    assert (found.committed.number, found.committed.offset["lsn"]) == (10, "0/10")


def test_a_checkpoint_that_does_not_exist_holds_nothing(tmp_path: Path) -> None:
    found = position(str(tmp_path / "none"))
    assert (found.planned, found.committed) == (None, None)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    batch(tmp_path, 0, "0/1", committed=True)
    (tmp_path / "offsets" / "0").write_text("v1\n")
    with pytest.raises(OffsetError, match="offsets/0"):
        position(str(tmp_path))
