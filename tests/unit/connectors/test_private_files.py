"""Files and folders that others may have written are told from a user's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.connectors.private_files import is_own_file, is_own_folder, is_private_folder, open_own_log

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that others may enter, all the way up to one of root's."""
    place = tmp_path / "cache"
    place.mkdir(mode=0o755)
    return place


@pytest.fixture
def file(folder: Path) -> Path:
    place = folder / "file"
    place.write_bytes(b"x")
    place.chmod(0o644)
    return place


def test_a_users_own_file_is_told(file: Path) -> None:
    assert is_own_file(file)


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_may_write_is_not_ones_own(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert not is_own_file(file)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o703])
def test_nor_is_one_in_a_folder_that_others_may_write(folder: Path, file: Path, mode: int) -> None:
    folder.chmod(mode)
    assert not is_own_file(file)
    assert not is_own_folder(folder)


def test_nor_is_a_link_or_a_folder(folder: Path, file: Path) -> None:
    link = folder / "link"
    link.symlink_to(file)
    assert not is_own_file(link)
    assert not is_own_file(folder)
    other = folder.with_name("other")
    other.symlink_to(folder)
    assert not is_own_folder(other)


def test_what_nobody_else_may_enter_keeps_the_rest(folder: Path, file: Path) -> None:
    """A folder that others may write lies above one that they may not enter."""
    folder.parent.chmod(0o777)
    folder.chmod(0o700)
    assert is_own_file(file)
    assert is_private_folder(folder)


@needs_root
def test_nobody_elses_file_is_ones_own(folder: Path, file: Path) -> None:
    os.chown(file, 65534, 65534)
    assert not is_own_file(file)
    os.chown(file, 0, 0)
    os.chown(folder, 65534, 65534)
    assert not is_own_file(file)
    assert not is_own_folder(folder)


def test_a_log_is_appended_to_and_nobody_elses_to_read(folder: Path) -> None:
    place = folder / "p.log"
    for _ in range(2):
        with os.fdopen(open_own_log(place), "wb") as log:
            log.write(b"line\n")
        assert place.stat().st_mode & 0o777 == 0o600
        place.chmod(0o666)
    assert place.read_bytes() == b"line\n" * 2


def test_a_log_follows_no_link_and_writes_no_pipe(folder: Path, file: Path) -> None:
    place = folder / "p.log"
    place.symlink_to(file)
    with pytest.raises(OSError, match="symbolic links"):
        open_own_log(place)
    assert file.read_bytes() == b"x"
    place.unlink()
    place.symlink_to(folder / "made")
    with pytest.raises(OSError, match="symbolic links"):
        open_own_log(place)
    assert not (folder / "made").exists()
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(OSError, match="No such device"):
        open_own_log(place)


@needs_root
def test_a_log_of_another_user_is_not_written(folder: Path) -> None:
    place = folder / "p.log"
    place.touch(0o666)
    os.chown(place, 65534, 65534)
    with pytest.raises(PermissionError, match="belongs to another user"):
        open_own_log(place)
    assert place.read_bytes() == b""
