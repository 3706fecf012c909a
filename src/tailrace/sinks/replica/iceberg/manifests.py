"""Reads and writes manifests of Iceberg and their lists, in the format's versions 2 and 3.

pyiceberg 0.12 writes those of version 2, of data files alone. It reads those of version 3 without what that version
adds: the place of a deletion vector in its file, and the ids of rows, which a manifest that is written again repeats.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from copy import copy
from typing import Any, Literal, cast

from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.io import OutputFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
    PartitionFieldSummary,
    _inherit_from_manifest,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from tailrace.override import override
from tailrace.sinks.replica.form import VECTORS, FormatVersion

_COMPRESSION: Literal["deflate"] = "deflate"
_FIELDS = [field.name for field in DATA_FILE_TYPE[3].fields]
_FIRST_ROW = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[3].fields].index("first_row_id")
# By the path of a manifest, the one read last at the end.
_READ: dict[str, list[ManifestEntry]] = {}
_MOST_READ = 512  # guessed


def version_of(table: Table) -> FormatVersion:
    """The version of a table's format."""
    return cast(FormatVersion, table.metadata.format_version)


def added_field(file: DataFile, name: str) -> Any:
    """A field of a file that version 3 adds; None in version 2."""
    place = _FIELDS.index(name)
    return file._data[place] if place < len(file._data) else None


def manifests_of(table: Table, snapshot: Snapshot | None) -> list[ManifestFile]:
    """The manifests of a snapshot."""
    if snapshot is None:
        return []
    if version_of(table) != VECTORS:
        return list(snapshot.manifests(table.io))
    with AvroFile[ManifestFile](
        table.io.new_input(snapshot.manifest_list),
        MANIFEST_LIST_FILE_SCHEMAS[3],
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as reader:
        return list(reader)


def entries(table: Table) -> list[ManifestEntry]:
    """The live entries of the newest snapshot: data files and delete files."""
    manifests = manifests_of(table, table.current_snapshot())
    return [entry for manifest in manifests for entry in listed(table, manifest)]


def listed(table: Table, manifest: ManifestFile) -> list[ManifestEntry]:
    """The live entries of a manifest. It never changes, and takes 10 ms to read, so those read last are kept."""
    live = _READ.pop(manifest.manifest_path, None)
    if live is None:
        is_newer = version_of(table) == VECTORS
        live = _newer(table, manifest) if is_newer else manifest.fetch_manifest_entry(table.io)
    _READ[manifest.manifest_path] = live
    if len(_READ) > _MOST_READ:
        del _READ[next(iter(_READ))]
    return live


def _newer(table: Table, manifest: ManifestFile) -> list[ManifestEntry]:
    """The live entries of a manifest of version 3; data files without a first row's id follow each other."""
    with AvroFile[ManifestEntry](
        table.io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        read = [entry for entry in reader if entry.status != ManifestEntryStatus.DELETED]
    inherited = [_inherit_from_manifest(entry, manifest) for entry in read]
    row, place = manifest._data[_FIRST_ROW], _FIELDS.index("first_row_id")
    for entry in inherited:
        is_data = entry.data_file.content == DataFileContent.DATA
        if is_data and row is not None and entry.data_file._data[place] is None:
            entry.data_file._data[place] = row
            row += entry.data_file.record_count
    return inherited


def next_row(table: Table) -> int:
    """The id of the next row of a table of version 3."""
    ends = ((each.first_row_id or 0) + (each.added_rows or 0) for each in table.metadata.snapshots)
    return max(getattr(table.metadata, "next_row_id", None) or 0, *ends, 0)


def write_manifest(
    table: Table, content: ManifestContent, schema: Schema, number: int, some: Iterable[ManifestEntry]
) -> ManifestFile:
    """Write entries of the snapshot of a number into a manifest."""
    location = table.location_provider().new_metadata_location(f"{uuid.uuid4()}-m.avro")
    output = table.io.new_output(location)
    with _Manifest(table, schema, output, number, content) as writer:
        for entry in some:
            writer.add_entry(entry)
    return writer.to_manifest_file()


class _Manifest(ManifestWriterV2):
    """Writes a manifest of data files or of delete files, in the version of a table."""

    def __init__(self, table: Table, schema: Schema, output: OutputFile, number: int, content: ManifestContent) -> None:
        super().__init__(table.metadata.spec(), schema, output, number, _COMPRESSION)
        self._version, self._content = version_of(table), content

    @override
    def content(self) -> ManifestContent:
        return self._content

    @property
    @override
    def version(self) -> FormatVersion:
        return self._version

    @property
    @override
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "data" if self._content == ManifestContent.DATA else "deletes"}

    @override
    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(self._version)
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=schema,
            record_schema=schema,
            schema_name="manifest_entry",
            metadata=self._meta,
        )


class ManifestList(ManifestListWriterV2):
    """Writes the list of a snapshot's manifests, in the version of a table. In version 3 rows get ids from `next_row`
    on, which is behind the last one then.
    """

    def __init__(self, table: Table, output: OutputFile, number: int, parent: int | None, sequence: int) -> None:
        super().__init__(output, number, parent, sequence, _COMPRESSION)
        self._format_version = version_of(table)
        self._meta["format-version"] = str(self._format_version)
        self.next_row = next_row(table)

    @override
    def __enter__(self) -> ManifestList:
        schema = MANIFEST_LIST_FILE_SCHEMAS[self._format_version]
        self._writer = AvroOutputFile[ManifestFile](
            output_file=self._output_file,
            record_schema=schema,
            file_schema=schema,
            schema_name="manifest_file",
            metadata=self._meta,
        )
        self._writer.__enter__()
        return self

    @override
    def prepare_manifest(self, manifest_file: ManifestFile) -> ManifestFile:
        made = super().prepare_manifest(manifest_file)
        if self._format_version != VECTORS:
            return made
        made = copy(made)
        made._data = [*made._data[:_FIRST_ROW], *(made._data[_FIRST_ROW:] or [None])]
        if made.content == ManifestContent.DATA and made._data[_FIRST_ROW] is None:
            made._data[_FIRST_ROW] = self.next_row
            self.next_row += (made.existing_rows_count or 0) + (made.added_rows_count or 0)
        return made
