"""The files of a Delta table: which they are, and how small ones are joined and old ones removed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from tailrace.override import override
from tailrace.sinks.replica.retention import FILE_BYTES, LONGEST_SECONDS
from tailrace.sinks.replica.table import Maintenance, Mark

# Commits take little space, and readers that follow a table need them.
_LEAST_LOG_SECONDS = 600
_LOG = "_delta_log"
_FILES_KEY, _LOG_KEY = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
_INTERVAL = re.compile(r"interval (\d+) (second|minute|hour|day)s?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


def properties(seconds: int) -> dict[str, str]:
    """The table properties of a retention, also for other writers. Every writer cleans the log."""
    kept = {_FILES_KEY: _interval(seconds), _LOG_KEY: _interval(max(seconds, _LEAST_LOG_SECONDS))}
    return {**kept, "delta.targetFileSize": str(FILE_BYTES)}


class Files(Maintenance):
    """Implements Maintenance."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table

    @cached_property
    @override
    def live(self) -> Mapping[str, int]:
        files = pa.table(self._table.get_add_actions(flatten=True))
        paths = map(unquote, files.column("path").to_pylist())
        return dict(zip(paths, files.column("size_bytes").to_pylist(), strict=True))

    @override
    def others(self) -> Mapping[str, int]:
        files = fs.PyFileSystem(DeltaStorageHandler.from_table(self._table._table))
        listed = files.get_file_info(fs.FileSelector(""))
        # Folders of partitions and of the change feed. The log has many files, which a listing of stores would name.
        if any(info.type == fs.FileType.Directory and info.base_name != _LOG for info in listed):
            listed = files.get_file_info(fs.FileSelector("", recursive=True))
        sizes = {info.path: info.size for info in listed if info.type == fs.FileType.File}
        return {name: size for name, size in sizes.items() if name not in self.live and not name.startswith(f"{_LOG}/")}

    @override
    def small(self, size: int) -> int:
        """Files of one partition can be joined."""
        folders = Counter(name.rpartition("/")[0] for name, each in self.live.items() if each < size)
        return sum(count for count in folders.values() if count > 1)

    @property
    @override
    def is_crowded(self) -> bool:
        """Delta lists the versions of a table in a log, whose length no commit depends on."""
        return False

    @property
    @override
    def kept_seconds(self) -> int | None:
        match = _INTERVAL.fullmatch(self._table.metadata().configuration.get(_FILES_KEY) or "")
        return None if match is None else min(int(match[1]) * _SECONDS[match[2]], LONGEST_SECONDS)

    @override
    def keep(self, seconds: int, mark: Mark) -> None:
        wanted, configuration = properties(seconds), self._table.metadata().configuration
        if any(configuration.get(name) != value for name, value in wanted.items()):
            self._table.alter.set_table_properties(wanted, raise_if_not_exists=False, commit_properties=_commit(mark))

    @override
    def join(self, size: int, mark: Mark) -> None:
        self._table.optimize.compact(target_size=size, commit_properties=_commit(mark))

    @override
    def old(self) -> Sequence[str]:
        return self._table.vacuum(full=True)

    @override
    def remove(self, mark: Mark) -> None:
        self._table.vacuum(dry_run=False, full=True, commit_properties=_commit(mark))


def _commit(mark: Mark) -> CommitProperties:
    return CommitProperties(custom_metadata={"userMetadata": mark.text})


def _interval(seconds: int) -> str:
    return f"interval {seconds} seconds" if seconds % 60 else f"interval {seconds // 60} minutes"
