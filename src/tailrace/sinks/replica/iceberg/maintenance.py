"""The files of an Iceberg table: how small ones and deletes are joined, and old snapshots and files removed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import pyarrow as pa
from pyarrow import fs
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import AssertTableUUID, RemoveSnapshotsUpdate

from tailrace.override import override
from tailrace.sinks.replica.iceberg.columns import arrow
from tailrace.sinks.replica.iceberg.commits import SnapshotChange, alter, commit
from tailrace.sinks.replica.iceberg.deletions import Deletions
from tailrace.sinks.replica.iceberg.errors import translated
from tailrace.sinks.replica.iceberg.files import dead_rows, rows_of, write_rows
from tailrace.sinks.replica.iceberg.index import Index
from tailrace.sinks.replica.iceberg.manifests import entries, listed, manifests_of
from tailrace.sinks.replica.iceberg.vectors import Positions
from tailrace.sinks.replica.retention import LONGEST_SECONDS
from tailrace.sinks.replica.table import LakeError, Maintenance, Mark

_KEPT = "history.expire.max-snapshot-age-ms"
# Each commit writes the list of all snapshots again, and each reader parses it: 500 take 25 ms and 450 kB.
_MOST_SNAPSHOTS, _SPARE = 500, 50
# A file is written again once so much of it is deleted: it is read for the rest alone.
_MOST_DEAD = 0.3


def properties(seconds: int) -> dict[str, str]:
    """The properties of a table that keeps replaced versions for so long, also for other writers."""
    return {
        _KEPT: str(seconds * 1000),
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "20",
    }


class Files(Maintenance):
    """Implements Maintenance."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @cached_property
    def _entries(self) -> list[ManifestEntry]:
        return entries(self._table)

    @cached_property
    @translated
    @override
    def live(self) -> Mapping[str, int]:
        files = [entry.data_file for entry in self._entries]
        return {self._local(file.file_path): file.file_size_in_bytes for file in files}

    @translated
    @override
    def others(self) -> Mapping[str, int]:
        return {info.path: info.size for info in self._listed("data") if info.path not in self.live}

    @override
    def small(self, size: int) -> int:
        return sum(each < size for each in self.live.values())

    @property
    @override
    def is_crowded(self) -> bool:
        return len(self._table.metadata.snapshots) > _MOST_SNAPSHOTS + _SPARE

    @property
    @override
    def kept_seconds(self) -> int | None:
        text = self._table.properties.get(_KEPT)
        return None if text is None else min(int(text) // 1000, LONGEST_SECONDS)

    @translated
    @override
    def keep(self, seconds: int, mark: Mark) -> None:
        wanted, given = properties(seconds), self._table.properties
        if any(given.get(name) != value for name, value in wanted.items()):
            alter(self._table, properties=wanted)

    @translated
    @override
    def join(self, size: int, mark: Mark) -> None:
        """Files of which much is deleted are written again, and all deletes of others are one file."""
        data = [entry for entry in self._entries if entry.data_file.content == DataFileContent.DATA]
        deletes = [entry for entry in self._entries if entry.data_file.content != DataFileContent.DATA]
        dead = dead_rows(self._table, [entry.data_file for entry in deletes])
        chosen = [entry for entry in data if _is_poor(entry.data_file, dead, size)]
        kept = [entry.data_file for entry in data if entry not in chosen]
        schema, table = self._table.schema(), self._table

        def rows() -> Iterator[pa.RecordBatch]:
            for entry in chosen:
                for _, some in rows_of(table, entry.data_file, schema, dead):
                    yield from some.to_batches()

        index = Index.stored(table)
        stream = pa.RecordBatchReader.from_batches(arrow(schema), rows())
        added, moved = [], []
        for file, some in write_rows(table, schema, stream, size):
            added.append(file)
            if index is not None:
                moved.append((file.file_path, *index.located(some, schema)))
        added += Deletions.of(table, {file.file_path: dead[file.file_path] for file in kept if file.file_path in dead})
        commit(table, SnapshotChange(Operation.REPLACE, added, [*chosen, *deletes], is_whole=True), mark)
        if index is not None:
            for path, keys, positions in moved:
                index.add(keys, path, positions)
            index.save(table)

    @translated
    @override
    def old(self) -> Sequence[str]:
        return [info.path for info in self._removable("data")]

    @translated
    @override
    def remove(self, mark: Mark) -> None:
        keep = {snapshot.snapshot_id for snapshot in self._kept()}
        expired = [each.snapshot_id for each in self._table.metadata.snapshots if each.snapshot_id not in keep]
        if expired:
            update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": expired})
            self._table._do_commit((update,), (AssertTableUUID(uuid=self._table.metadata.table_uuid),))
        system, _ = self._place("")
        for folder in ("data", "metadata"):
            for info in self._removable(folder):
                system.delete_file(info.path)

    def _removable(self, folder: str) -> Iterator[fs.FileInfo]:
        """The files in a folder that no snapshot to be kept needs; not those that may belong to the next one."""
        needed = self._needed()
        since = time.time() - (self.kept_seconds or LONGEST_SECONDS)
        for info in self._listed(folder):
            if info.path not in needed and info.mtime.timestamp() < since:
                yield info

    def _kept(self) -> list[Snapshot]:
        """The snapshots to be kept: of those that were replaced not long ago the newest, and those with a name."""
        since = (time.time() - (self.kept_seconds or LONGEST_SECONDS)) * 1000
        named = {ref.snapshot_id for ref in self._table.metadata.refs.values()}
        ordered = sorted(self._table.metadata.snapshots, key=lambda each: each.sequence_number or 0)
        replaced = [*(each.timestamp_ms for each in ordered[1:]), time.time() * 1000]
        young = {each.snapshot_id for each, at in zip(ordered, replaced, strict=True) if at >= since}
        newest = {each.snapshot_id for each in ordered[-_MOST_SNAPSHOTS:]}
        return [each for each in ordered if each.snapshot_id in named or each.snapshot_id in young & newest]

    def _needed(self) -> set[str]:
        """The paths of all files of the snapshots to be kept, and of the table's metadata."""
        metadata = self._table.metadata
        paths = {self._table.metadata_location, *(each.metadata_file for each in metadata.metadata_log)}
        paths |= {file.statistics_path for file in metadata.statistics}
        manifests: dict[str, ManifestFile] = {}
        for snapshot in self._kept():
            paths.add(snapshot.manifest_list)
            manifests |= {each.manifest_path: each for each in manifests_of(self._table, snapshot)}
        for path, manifest in manifests.items():
            paths.add(path)
            paths |= {entry.data_file.file_path for entry in listed(self._table, manifest)}
        return {self._local(path) for path in paths}

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        system, path = self._place(folder)
        infos = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        return [info for info in infos if info.type == fs.FileType.File]

    def _place(self, folder: str) -> tuple[fs.FileSystem, str]:
        io, location = self._table.io, f"{self._table.location().rstrip('/')}/{folder}"
        if not isinstance(io, PyArrowFileIO):
            raise LakeError(f"the catalog's io is {type(io).__name__}; leave `py-io-impl` out of `catalog`")
        scheme, host, path = PyArrowFileIO.parse_location(location, self._table.io.properties)
        return io.fs_by_scheme(scheme, host), path

    def _local(self, location: str) -> str:
        return PyArrowFileIO.parse_location(location, self._table.io.properties)[2]


def _is_poor(file: DataFile, dead: Mapping[str, Positions], size: int) -> bool:
    """Whether a file is to be written again: it is small, or much of it is deleted."""
    gone = len(dead.get(file.file_path, ()))
    return file.file_size_in_bytes < size // 2 or gone > _MOST_DEAD * file.record_count
