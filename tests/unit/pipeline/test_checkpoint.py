"""The position in a checkpoint's files, as Spark writes them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tailrace.errors import ConfigError, OffsetError
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.run_state import run_state


def batch(root: Path, number: int, lsn: str, *, committed: bool) -> None:
    for folder in ("offsets", "commits"):
        (root / folder).mkdir(exist_ok=True)
    (root / "metadata").write_text('{"id":"7f2d"}')
    offset = json.dumps({"phase": "stream", "position": lsn})
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
    assert (found.planned.number, found.planned.offset["position"]) == (11, "0/11")
    assert (found.committed.number, found.committed.offset["position"]) == (10, "0/10")


def test_a_checkpoint_that_does_not_exist_holds_nothing(tmp_path: Path) -> None:
    found = position(str(tmp_path / "none"))
    assert (found.planned, found.committed) == (None, None)


@pytest.mark.parametrize(("below", "said"), [("", "it is a file"), ("/state", "{file} is a file")])
def test_a_checkpoint_that_is_a_file(tmp_path: Path, below: str, said: str) -> None:
    file = tmp_path / "afile"
    file.write_text("no folder")
    for look in (position, run_state):
        with pytest.raises(ConfigError) as failure:
            look(f"{file}{below}")
        assert failure.value.where == f"checkpoint {file}{below}"
        assert failure.value.what == said.format(file=file)
        assert "set `checkpoint` to a folder" in (failure.value.remedy or "")


def three(root: Path, *, committed: bool) -> None:
    for number in (0, 1):
        batch(root, number, f"0/{number}", committed=True)
    batch(root, 2, "0/2", committed=committed)


DAMAGES = {
    "offsets/2": ("put it back from a copy; or delete it and {root}/commits/2", "delete it: micro-batch 2 was not"),
    "offsets/1": ("copy {root}/offsets/2 to it: micro-batch 2 is committed", "put it back from a copy, or start again"),
    "commits/2": ("""printf 'v1\\n{{"nextBatchWatermarkMs":0}}' > {root}/commits/2""", None),
    "commits/1": (None, """printf 'v1\\n{{"nextBatchWatermarkMs":0}}' > {root}/commits/1"""),
    "metadata": ("write the same id again, which `tailrace check PIPELINE` finds",) * 2,
}


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("said", ["is empty", "is cut short", "is no text"])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_named_with_its_remedy(tmp_path: Path, name: str, said: str, is_committed: bool) -> None:
    remedy = DAMAGES[name][0 if is_committed else 1]
    if remedy is None:
        return
    three(tmp_path, committed=is_committed)
    file = tmp_path / name
    whole = file.read_bytes()
    file.write_bytes({"is empty": b"", "is cut short": whole[: len(whole) // 2], "is no text": b"\xff\xfe"}[said])
    with pytest.raises(OffsetError) as failure:
        position(str(tmp_path))
    assert failure.value.where == str(file)
    assert said in failure.value.what
    assert remedy.format(root=tmp_path) in (failure.value.remedy or "")
    if "printf" in remedy:
        subprocess.run(["bash", "-c", f"printf {(failure.value.remedy or '').partition('printf ')[2]}"], check=True)
        assert position(str(tmp_path)).committed is not None


@pytest.mark.parametrize(
    ("name", "is_committed", "remedy"),
    [
        ("offsets/2", True, "delete the files of {root}/commits above 1"),
        ("offsets/1", True, "copy {root}/offsets/2 to it"),
        ("metadata", False, "write the same id again, which `tailrace check PIPELINE` finds in the sink"),
    ],
)
def test_a_missing_file_is_named_with_its_remedy(tmp_path: Path, name: str, is_committed: bool, remedy: str) -> None:
    three(tmp_path, committed=is_committed)
    (tmp_path / name).unlink()
    with pytest.raises(OffsetError) as failure:
        position(str(tmp_path))
    assert remedy.format(root=tmp_path) in (failure.value.remedy or "")


def test_a_missing_id_does_not_matter_where_nothing_is_repeated(tmp_path: Path) -> None:
    three(tmp_path, committed=True)
    (tmp_path / "metadata").unlink()
    assert position(str(tmp_path)).committed is not None


def test_commits_without_offsets_are_refused(tmp_path: Path) -> None:
    three(tmp_path, committed=True)
    shutil.rmtree(tmp_path / "offsets")
    with pytest.raises(
        OffsetError, match=r"none is left\n  Remedy: .*or delete .*/commits: the pipeline then starts again"
    ):
        position(str(tmp_path))
