"""Lists and removes folders below a replica's root, in any storage that deltalake writes to."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs


def folders(root: str, name: str, storage_options: Mapping[str, str]) -> frozenset[str]:
    """The names of the folders in a folder below a root. Raises DeltaError and OSError."""
    try:
        files = fs.PyFileSystem(DeltaStorageHandler(root, dict(storage_options)))
        found = files.get_file_info(fs.FileSelector(name, allow_not_found=True))
    except TableNotFoundError:  # nothing was written yet
        return frozenset()
    return frozenset(info.base_name for info in found if info.type == fs.FileType.Directory)


def remove_folder(root: str, name: str, storage_options: Mapping[str, str]) -> None:
    """Remove a folder below a root with all its files, if there is one. Raises DeltaError and OSError."""
    if "://" not in root:
        with suppress(FileNotFoundError):
            shutil.rmtree(Path(root) / name)
        return
    files = fs.PyFileSystem(DeltaStorageHandler(root, dict(storage_options)))
    for info in files.get_file_info(fs.FileSelector(name, recursive=True, allow_not_found=True)):
        if info.type == fs.FileType.File:
            files.delete_file(info.path)
