"""Delta tables below a path or URL: finds, makes and removes them, in any storage that deltalake writes to."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from tailrace.override import override
from tailrace.sinks.replica.delta.maintenance import properties
from tailrace.sinks.replica.delta.table import Delta, checked, commit
from tailrace.sinks.replica.evolve import without_sql_names
from tailrace.sinks.replica.form import Form
from tailrace.sinks.replica.table import Lake, Mark, Rows


@dataclass(frozen=True)
class DeltaLake(Lake):
    """Implements Lake for the Delta tables `<root>/<name>`."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = ""
    form: Form = field(default_factory=Form)

    @override
    def below(self, folder: str) -> DeltaLake:
        return DeltaLake(self.root, self.options, folder)

    @override
    def uri(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{self._within(name)}"

    @override
    def names(self) -> frozenset[str]:
        try:
            files = fs.PyFileSystem(DeltaStorageHandler(self.root, dict(self.options)))
            infos = files.get_file_info(fs.FileSelector(self.folder, allow_not_found=True))
        except TableNotFoundError:  # nothing was written yet
            return frozenset()
        return frozenset(info.base_name for info in infos if info.type == fs.FileType.Directory)

    @override
    def open(self, name: str) -> Delta | None:
        is_there = DeltaTable.is_deltatable(self.uri(name), dict(self.options))
        if not is_there:
            return None
        return Delta(DeltaTable(self.uri(name), storage_options=dict(self.options)), self.form)

    @override
    def create(self, name: str, rows: Rows, mark: Mark, kept_seconds: int | None) -> None:
        given = rows.cast(without_sql_names(rows.schema))
        partitions = self.form.chosen(given.schema)
        write_deltalake(
            self.uri(name),
            checked(given, partitions),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=partitions or None,
            storage_options=dict(self.options),
            configuration={**({} if kept_seconds is None else properties(kept_seconds)), **self.form.properties},
            commit_properties=commit(mark),
        )

    @override
    def remove(self, name: str) -> None:
        if "://" not in self.root:
            with suppress(FileNotFoundError):
                shutil.rmtree(Path(self.root) / self._within(name))
            return
        files = fs.PyFileSystem(DeltaStorageHandler(self.root, dict(self.options)))
        for info in files.get_file_info(fs.FileSelector(self._within(name), recursive=True, allow_not_found=True)):
            if info.type == fs.FileType.File:
                files.delete_file(info.path)

    @override
    def look(self, seconds: float) -> None:
        """It asks for one file, once, and unlike DeltaTable.is_deltatable lets other threads run."""
        limit = f"{max(1, int(seconds))}s"
        limits = {"timeout": limit, "connect_timeout": limit, "retry_timeout": limit, "max_retries": "0"}
        store = DeltaStorageHandler(self.root, {**self.options, **limits})
        fs.PyFileSystem(store).get_file_info(["_tailrace"])

    def _within(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name
