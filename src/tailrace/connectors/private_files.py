"""Tells whether a file or folder is this user's alone, so that nobody else can have put something into it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_WRITE, _ENTER, _ALL = 0o022, 0o011, 0o077


def is_private_folder(path: Path) -> bool:
    """Whether it is a folder that this user alone may enter. Raises OSError."""
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _ALL


def is_own_folder(path: Path) -> bool:
    """Whether it is a folder that nobody else (root aside) may write. Raises OSError."""
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and _is_own(status)


def is_own_file(path: Path) -> bool:
    """Whether a file is one that nobody else (root aside) may write or put another one in its place of.

    So are the folders above it, up to the first one that nobody else may enter. Raises OSError.
    """
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or not _is_own(status):
        return False
    for folder in path.resolve().parents:
        above = folder.stat()
        if above.st_uid == os.geteuid() and not above.st_mode & _ENTER:
            return True
        if not _is_own(above) and not (_is_trusted(above) and above.st_mode & stat.S_ISVTX):
            return False
    return True


def _is_own(status: os.stat_result) -> bool:
    return _is_trusted(status) and not status.st_mode & _WRITE


def _is_trusted(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def open_own_log(path: Path) -> int:
    """A file of this user's, made if need be, that is appended to and that nobody else may read.

    Raises OSError, also where the place has a link, or a file of somebody else.
    """
    # A pipe that nobody reads would be waited for.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    opened = os.open(path, flags, 0o600)
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError(1, "it belongs to another user, or is no file", str(path))
        os.fchmod(opened, 0o600)
    except BaseException:
        os.close(opened)
        raise
    return opened
