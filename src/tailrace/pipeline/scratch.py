"""The folder for what Spark spills, shuffles and unpacks while a run lasts; only its owner may read it.

A run that is killed leaves its folder. The next start of any pipeline of the same user removes it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from tailrace.errors import TailraceError
from tailrace.pipeline.lease import Owner

_PREFIX, _OWNER = "tailrace-", "owner.json"
# A path of a Unix socket has at most 104 bytes on macOS, 108 on Linux; Spark's file names have 42.
_LONGEST = 104 - 42 - 2


def scratch_folder() -> Path:
    """A new folder, which is removed when this process ends. Raises TailraceError."""
    try:
        remove_abandoned(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # which has mode 0700
        (folder / _OWNER).write_text(Owner.me().content, encoding="utf-8")
    except OSError as error:
        raise TailraceError(
            f"no folder can be made for Spark's temporary files: {error.strerror}",
            where=tempfile.tempdir,
            remedy="free space there and see that this user may write, or set TMPDIR to another folder",
        ) from error
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of this user's processes of this machine that are no more."""
    for file in parent.glob(f"{_PREFIX}*/{_OWNER}"):
        with suppress(FileNotFoundError):  # another run that starts now has removed it
            if file.parent.stat().st_uid != os.getuid():
                continue
            owner = Owner.read(file.read_text(encoding="utf-8", errors="replace"))
            if owner is not None and owner.is_alive() is False:
                shutil.rmtree(file.parent, ignore_errors=True)


def java_options(folder: Path) -> str:
    """Where Java unpacks libraries and Spark opens its sockets; the default, if their paths would become too long."""
    return f" -Djava.io.tmpdir={folder}" if len(os.fsencode(folder)) <= _LONGEST else ""
