"""Commits to an Iceberg table: data files, deletes, columns and a mark, all in one snapshot or none of them.

pyiceberg's transactions repeat a commit that lost a race on top of the newer snapshot. That snapshot may hold this very
part, written by a task thought dead, so a snapshot is made here, of the parts that pyiceberg has, and tried once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from tailrace.sinks.replica.form import VECTORS
from tailrace.sinks.replica.iceberg.manifests import (
    ManifestList,
    added_field,
    listed,
    manifests_of,
    version_of,
    write_manifest,
)
from tailrace.sinks.replica.table import LakeError, Mark

# The entry of a snapshot's summary with the text of a mark; and of the table's properties with an application's number.
MARK, WRITTEN = "tailrace.mark", "tailrace.written."
_FORMATS = (2, 3)


@dataclass
class SnapshotChange:
    """What a snapshot changes: files that are added and removed, the table's columns (None: as they are).

    `removed` are entries of the table's manifests. `is_whole`: whatever is not added or removed is listed in new
    manifests, which are few then.
    """

    operation: Operation = Operation.OVERWRITE
    added: list[DataFile] = field(default_factory=list)
    removed: list[ManifestEntry] = field(default_factory=list)
    schema: Schema | None = None
    properties: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False


def commit(table: Table, change: SnapshotChange, mark: Mark) -> None:
    """Make a snapshot that carries a mark. Raises CommitFailedException if there is a newer one than `table` knows.

    Raises LakeError for a table that replicas do not write.
    """
    refuse_others(table)
    updates, requirements = _columns(table, change.schema)
    properties = {**change.properties, **written(mark)}
    if properties:
        updates.append(SetPropertiesUpdate(updates=properties))
    before = table.current_snapshot()
    snapshot = _snapshot(table, change, mark, before)
    updates += [AddSnapshotUpdate(snapshot=snapshot), branch_set(MAIN_BRANCH, snapshot)]
    requirements.append(branch_is(MAIN_BRANCH, before))
    tried(table, updates, requirements)


def refuse_others(table: Table) -> None:
    """Raises LakeError for a table that replicas do not write."""
    if table.metadata.format_version not in _FORMATS or table.metadata.spec().fields:
        raise LakeError(
            f"the table has format version {table.metadata.format_version} and the partitions "
            f"{table.metadata.spec()}; a replica has version 2 or 3 and none: drop it, and it is read again"
        )


def written(mark: Mark) -> dict[str, str]:
    """The table's property with the number of an application's newest mark."""
    return {} if mark.app is None else {WRITTEN + mark.app: str(mark.version)}


def branch_set(name: str, snapshot: Snapshot) -> TableUpdate:
    """The update that makes a snapshot a branch's newest one."""
    reference = {"ref-name": name, "snapshot-id": snapshot.snapshot_id, "type": SnapshotRefType.BRANCH}
    return SetSnapshotRefUpdate.model_validate(reference)


def branch_is(name: str, snapshot: Snapshot | None) -> TableRequirement:
    """The requirement that a snapshot is a branch's newest one; None: there is no such branch."""
    expected = {"ref": name, "snapshot-id": None if snapshot is None else snapshot.snapshot_id}
    return AssertRefSnapshotId.model_validate(expected)


def alter(table: Table, *, schema: Schema | None = None, properties: dict[str, str] | None = None) -> None:
    """Change columns or properties without a snapshot."""
    updates, requirements = _columns(table, schema)
    if properties:
        updates.append(SetPropertiesUpdate(updates=properties))
    tried(table, updates, requirements)


def tried(table: Table, updates: Sequence[TableUpdate], requirements: Sequence[TableRequirement]) -> None:
    """Commit updates once. Raises CommitFailedException where the table does not meet the requirements."""
    asserted = (AssertTableUUID(uuid=table.metadata.table_uuid), *requirements)
    table._do_commit(tuple(updates), asserted)


def _columns(table: Table, schema: Schema | None) -> tuple[list[TableUpdate], list[TableRequirement]]:
    """The updates that make a schema the table's."""
    if schema is None:
        return [], []
    same = next((each for each in table.metadata.schemas if each.fields == schema.fields), None)
    number = max(each.schema_id for each in table.metadata.schemas) + 1
    added = [] if same is not None else [AddSchemaUpdate(schema=schema.model_copy(update={"schema_id": number}))]
    current = SetCurrentSchemaUpdate.model_validate({"schema-id": number if same is None else same.schema_id})
    return [*added, current], [
        AssertCurrentSchemaId.model_validate({"current-schema-id": table.metadata.current_schema_id})
    ]


def _snapshot(table: Table, change: SnapshotChange, mark: Mark, before: Snapshot | None) -> Snapshot:
    metadata, number = table.metadata, table.metadata.new_snapshot_id()
    sequence = metadata.next_sequence_number()
    schema_id = metadata.current_schema_id
    if change.schema is not None:
        same = next((each for each in metadata.schemas if each.fields == change.schema.fields), None)
        schema_id = max(each.schema_id for each in metadata.schemas) + 1 if same is None else same.schema_id
    location = table.location_provider().new_metadata_location(f"snap-{number}-{uuid.uuid4()}.avro")
    parent = None if before is None else before.snapshot_id
    with ManifestList(table, table.io.new_output(location), number, parent, sequence) as writer:
        first = writer.next_row
        writer.add_manifests(_manifests(table, change, number, before))
    rows = {"first-row-id": first, "added-rows": writer.next_row - first} if version_of(table) == VECTORS else {}
    return Snapshot.model_validate(
        {
            **rows,
            "snapshot-id": number,
            "parent-snapshot-id": None if before is None else before.snapshot_id,
            "sequence-number": sequence,
            "manifest-list": location,
            "summary": _summary(change, mark, before),
            "schema-id": schema_id,
        }
    )


def _manifests(table: Table, change: SnapshotChange, number: int, before: Snapshot | None) -> list[ManifestFile]:
    """The manifests of a new snapshot: those that are there as long as no file of theirs is removed, and new ones."""
    kept: list[ManifestFile] = []
    existing: list[ManifestEntry] = []
    removed = {_place(entry) for entry in change.removed}
    for manifest in manifests_of(table, before):
        if not (manifest.has_added_files() or manifest.has_existing_files()):
            continue
        if not (removed or change.is_whole):
            kept.append(manifest)
            continue
        live = listed(table, manifest)
        if change.is_whole or any(_place(entry) in removed for entry in live):
            existing += [entry for entry in live if _place(entry) not in removed]
        else:
            kept.append(manifest)
    schema = change.schema or table.schema()
    made = []
    for content in (ManifestContent.DATA, ManifestContent.DELETES):
        is_data = content == ManifestContent.DATA
        some = [
            *(_as(entry, ManifestEntryStatus.EXISTING, None) for entry in existing),
            *(_as(entry, ManifestEntryStatus.DELETED, number) for entry in change.removed),
            *(_added(file, number) for file in change.added),
        ]
        some = [entry for entry in some if (entry.data_file.content == DataFileContent.DATA) == is_data]
        if some:
            made.append(write_manifest(table, content, schema, number, some))
    return [*made, *kept]


def _place(entry: ManifestEntry) -> tuple[str, int | None]:
    """What tells a file from others; a Puffin file has several vectors."""
    return entry.data_file.file_path, added_field(entry.data_file, "content_offset")


def _added(file: DataFile, number: int) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=number,
        sequence_number=None,
        file_sequence_number=None,
        data_file=file,
    )


def _as(entry: ManifestEntry, status: ManifestEntryStatus, number: int | None) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=entry.snapshot_id if number is None else number,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def summary_of(snapshot: Snapshot | None) -> Mapping[str, str]:
    """What a snapshot's summary tells."""
    return {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties


def _summary(change: SnapshotChange, mark: Mark, before: Snapshot | None) -> Summary:
    """The numbers of a snapshot as the specification names them; the totals go on from those of the one before."""
    gone = [entry.data_file for entry in change.removed]
    told = summary_of(before)
    properties: dict[str, Any] = {MARK: mark.text}
    for total, added, removed, measure in (
        ("total-data-files", "added-data-files", "deleted-data-files", _files),
        ("total-records", "added-records", "deleted-records", _rows),
        ("total-delete-files", "added-delete-files", "removed-delete-files", _delete_files),
        ("total-position-deletes", "added-position-deletes", "removed-position-deletes", _deletes),
        ("total-files-size", "added-files-size", "removed-files-size", _sizes),
    ):
        more, less = measure(change.added), measure(gone)
        properties |= {name: str(value) for name, value in ((added, more), (removed, less)) if value}
        if before is None or total in told:  # optional, and unknown where another program has left it out
            properties[total] = str(int(told.get(total, 0)) + more - less)
    return Summary(change.operation, **properties, **{"total-equality-deletes": "0"})


def _files(files: Sequence[DataFile]) -> int:
    return sum(file.content == DataFileContent.DATA for file in files)


def _rows(files: Sequence[DataFile]) -> int:
    return sum(file.record_count for file in files if file.content == DataFileContent.DATA)


def _delete_files(files: Sequence[DataFile]) -> int:
    return len(files) - _files(files)


def _deletes(files: Sequence[DataFile]) -> int:
    return sum(file.record_count for file in files if file.content != DataFileContent.DATA)


def _sizes(files: Sequence[DataFile]) -> int:
    return sum(added_field(file, "content_size_in_bytes") or file.file_size_in_bytes for file in files)
