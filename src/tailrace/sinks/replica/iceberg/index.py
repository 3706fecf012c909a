"""Finds the rows of keys in an Iceberg table: an index from keys to files and positions, on the executor's own disk.

It is a cache: it says of which snapshot it is, and is built from the key columns where the table has another one. What
it takes: 28 bytes a row on disk, in memory what a lookup or a merge of runs needs, whatever the table's size.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tailrace.connectors.private_files import is_private_folder
from tailrace.sinks.replica.digest import row_hashes
from tailrace.sinks.replica.iceberg.files import Places, dead_rows, rows_of
from tailrace.sinks.replica.iceberg.manifests import entries
from tailrace.sinks.replica.iceberg.runs import GONE, Entries, KeyHashes, joined, mapped, matches, merged, stored
from tailrace.sinks.replica.table import LakeError

_VERSION = 2
_STATE = "index.json"
# The variable that names the folder of indexes, in place of one among temporary files.
FOLDER = "TAILRACE_INDEX"
# Rows that are sorted at a time while the index is built.
_AT_A_TIME = 4_000_000
# A run is merged with the one before it where that has fewer than so many times its entries.
_TIMES = 4
_SPARE_FILES = 1000


def keys_of(rows: pa.Table, names: Sequence[str]) -> KeyHashes:
    """The hashes of the keys of rows."""
    columns = [rows.column(name) for name in names]
    return KeyHashes(row_hashes(columns, rows.num_rows), row_hashes(columns, rows.num_rows, 1))


def folder_of(table: Table) -> Path:
    """Where the index of a table lies. Raises LakeError where somebody else could write there."""
    given = os.environ.get(FOLDER)
    own = Path(given or Path(tempfile.gettempdir()) / f"tailrace-{os.getuid()}-index")
    try:
        own.mkdir(mode=0o700, parents=given is not None, exist_ok=True)
    except OSError as error:
        raise LakeError(
            f"the folder of indexes, {own}, cannot be made: {error.strerror}; set {FOLDER} to another"
        ) from error
    if not is_private_folder(own):
        raise LakeError(
            f"the folder of indexes, {own}, is not this user's alone; remove it, or set {FOLDER} to another"
        )
    return own / str(table.metadata.table_uuid)


def forget(table: Table) -> None:
    """Remove the index of a table."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder_of(table))


@dataclass
class Index:
    """The index of a table at a snapshot: `files` by their numbers, `names` of its runs, the oldest first.

    `end`: it has the rows alone that are null in this column.
    """

    folder: Path
    key: list[str]
    end: str | None
    snapshot: int | None
    files: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    _runs: dict[str, Entries] = field(default_factory=dict)

    @staticmethod
    def of(table: Table, key: Sequence[str], end: str | None = None) -> Index:
        """The index of a table at its newest snapshot, for keys of these columns."""
        index = Index.stored(table)
        if index is not None and (index.key, index.end) == _columns(table.schema(), key, end):
            return index
        return _built(table, key, end)

    @staticmethod
    def stored(table: Table) -> Index | None:
        """The index on disk, None where it is not of the table's newest snapshot and columns."""
        folder, snapshot = folder_of(table), table.current_snapshot()
        try:
            node = json.loads((folder / _STATE).read_text())
            index = Index(folder, node["key"], node["end"], node["snapshot"], node["files"], node["names"])
            is_newest = index.snapshot == (None if snapshot is None else snapshot.snapshot_id)
            if node["version"] != _VERSION or not (is_newest and index._has_columns(table.schema())):
                return None
            index._runs = {name: mapped(folder, name) for name in index.names}
        except (OSError, ValueError, KeyError):  # none, or another process has written a newer one meanwhile
            return None
        return index

    def _has_columns(self, schema: Schema) -> bool:
        """Whether a schema has the columns of the key, which may have been dropped since."""
        ids = {str(each.field_id) for each in schema.fields}
        return all(text.partition(" ")[0] in ids for text in (*self.key, *([] if self.end is None else [self.end])))

    def add_rows(self, rows: pa.Table, file: str, schema: Schema) -> None:
        """A file has these rows, in the columns of a schema."""
        keys, positions = self.located(rows, schema)
        self.add(keys, file, positions)

    def located(self, rows: pa.Table, schema: Schema) -> tuple[KeyHashes, np.ndarray]:
        """The keys of those of a file's rows that belong here, with their positions."""
        names = {str(each.field_id): each.name for each in schema.fields}
        key = [names[text.partition(" ")[0]] for text in self.key]
        positions = np.arange(rows.num_rows)
        if self.end is not None:
            positions = np.flatnonzero(rows.column(names[self.end.partition(" ")[0]]).is_null())
        return keys_of(rows.take(pa.array(positions)), key), positions

    def find(self, keys: KeyHashes) -> tuple[np.ndarray, Places]:
        """The rows of keys: the place of each one's key, and where it lies."""
        order = np.argsort(keys.hashes)
        left = np.ones(len(keys), bool)
        parts: list[tuple[np.ndarray, ...]] = [(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))]
        for name in reversed(self.names):
            run, asked = self._runs[name], order[left[order]]
            of, at = matches(run, keys.take(asked))
            left[asked[of]] = False
            lives = run.numbers[at] != GONE
            parts.append((asked[of][lives], run.numbers[at][lives], run.positions[at][lives]))
        places, numbers, positions = (np.concatenate(column) for column in zip(*parts, strict=True))
        return places, Places(self.files, numbers, positions)

    def add(self, keys: KeyHashes, file: str | None, positions: np.ndarray | None = None) -> None:
        """Rows of keys are in a file now, at some positions; None: they are gone."""
        number = GONE if file is None else len(self.files)
        if file is not None:
            self.files.append(file)
        positions = np.zeros(len(keys), np.int64) if positions is None else positions
        if len(keys):
            self._added(Entries(keys, np.full(len(keys), number, np.int32), positions).sorted())

    def _added(self, run: Entries) -> None:
        self._append(stored(self.folder, [run]))
        while len(self.names) > 1 and len(self._run(-2)) < _TIMES * len(self._run(-1)):
            is_last = len(self.names) == 2
            name = merged(self.folder, [(self._run(-2), 0), (self._run(-1), 1)], is_last=is_last)
            for old in self.names[-2:]:
                del self._runs[old]
            self.names = self.names[:-2]
            self._append(name)
            if is_last:
                self._renumber()

    def _append(self, name: str) -> None:
        self.names.append(name)
        self._runs[name] = mapped(self.folder, name)

    def _run(self, place: int) -> Entries:
        return self._runs[self.names[place]]

    def _renumber(self) -> None:
        """Forget files that no entry names, once these are many."""
        used = np.unique(self._run(-1).numbers)
        if len(self.files) <= _SPARE_FILES + 2 * len(used):
            return
        run = self._run(-1)
        numbers = np.searchsorted(used, run.numbers).astype(np.int32)
        self.files = [self.files[number] for number in used]
        self.names = []
        self._runs = {}
        self._append(stored(self.folder, [Entries(run.keys, numbers, run.positions)]))

    def save(self, table: Table) -> None:
        """Store it as that of the table's newest snapshot."""
        snapshot = table.current_snapshot()
        self.snapshot = None if snapshot is None else snapshot.snapshot_id
        node = {
            "version": _VERSION,
            "key": self.key,
            "end": self.end,
            "snapshot": self.snapshot,
            "files": self.files,
            "names": self.names,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / f"{os.getpid()}.new"
        new.write_text(json.dumps(node))
        new.replace(self.folder / _STATE)
        for other in self.folder.iterdir():
            if other.is_dir() and other.name not in self.names:
                shutil.rmtree(other, ignore_errors=True)  # another process may be removing it


def _columns(schema: Schema, key: Sequence[str], end: str | None) -> tuple[list[str], str | None]:
    """What identifies the columns of a key, and the one that is null in rows of the index: their ids and types."""
    columns = {each.name: f"{each.field_id} {each.field_type}" for each in schema.fields}
    return [columns[name] for name in key], None if end is None else columns[end]


def _built(table: Table, key: Sequence[str], end: str | None) -> Index:
    """An index made of the key columns of all files."""
    forget(table)
    files = [entry.data_file for entry in entries(table)]
    index = Index(folder_of(table), *_columns(table.schema(), key, end), None)
    data = [file for file in files if file.content == DataFileContent.DATA]
    index.files = [file.file_path for file in data]
    deletes = [file for file in files if file.content != DataFileContent.DATA]
    # Parts of one age, as a table may have several rows of a key.
    names = [stored(index.folder, [part]) for part in _parts(table, data, deletes, key, end)]
    if names:
        parts = [(mapped(index.folder, name), 0) for name in names]
        index._append(merged(index.folder, parts, is_last=True))
    index.save(table)
    return index


def _parts(
    table: Table, data: Sequence[DataFile], deletes: Sequence[DataFile], key: Sequence[str], end: str | None
) -> Iterator[Entries]:
    """The entries of all rows, some at a time and sorted."""
    fields = {each.name: each for each in table.schema().fields}
    names = [*key, *([] if end is None else [end])]
    schema, dead = Schema(*(fields[name] for name in names)), dead_rows(table, deletes)
    held: list[Entries] = []
    for number, file in enumerate(data):
        for positions, rows in rows_of(table, file, schema, dead):
            if end is not None:
                chosen = np.flatnonzero(rows.column(end).is_null())
                positions, rows = positions[chosen], rows.take(pa.array(chosen))
            held.append(Entries(keys_of(rows, key), np.full(len(positions), number, np.int32), positions))
        if sum(map(len, held)) >= _AT_A_TIME:
            yield joined(held).sorted()
            held = []
    if held:
        yield joined(held).sorted()
