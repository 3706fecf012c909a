"""An Iceberg table as the rules of replicas see it: rows are deleted by their positions, in one snapshot a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from tailrace.override import override
from tailrace.sinks.replica.codes import row_codes
from tailrace.sinks.replica.fold import COUNT, KEEP, Net
from tailrace.sinks.replica.iceberg.columns import arrow, fitted, promotes, reshaped, stored
from tailrace.sinks.replica.iceberg.commits import MARK, WRITTEN, SnapshotChange, alter, commit, summary_of
from tailrace.sinks.replica.iceberg.deletions import Deletions
from tailrace.sinks.replica.iceberg.errors import translated, translating
from tailrace.sinks.replica.iceberg.files import Places, dead_rows, may_have, rows_of, write_rows
from tailrace.sinks.replica.iceberg.index import Index, keys_of
from tailrace.sinks.replica.iceberg.maintenance import Files
from tailrace.sinks.replica.iceberg.manifests import entries, manifests_of
from tailrace.sinks.replica.lookup import joined
from tailrace.sinks.replica.reshape import Reshaping
from tailrace.sinks.replica.table import Bounds, Commit, Mark, Rows
from tailrace.sinks.replica.table import Table as ReplicaTable


class Iceberg(ReplicaTable):
    """Implements Table."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    @override
    def uri(self) -> str:
        return self.table.location()

    @property
    @override
    def id(self) -> str:
        return str(self.table.metadata.table_uuid)

    @property
    @override
    def version(self) -> int:
        """The sequence number of the newest snapshot."""
        snapshot = self.table.current_snapshot()
        return 0 if snapshot is None else snapshot.sequence_number or 0

    @property
    @override
    def schema(self) -> pa.Schema:
        return arrow(self.table.schema())

    @property
    @override
    def properties(self) -> Mapping[str, str]:
        return self.table.properties

    @translated
    @override
    def count(self) -> int:
        """By the list of manifests: the totals in a snapshot's summary are optional, other programs leave them out.

        Deletes of files that another program has rewritten may be left, so 0 is what the deletes themselves say.
        """
        manifests = manifests_of(self.table, self.table.current_snapshot())
        rows = dict.fromkeys(ManifestContent, 0)
        for each in manifests:
            rows[each.content] += (each.added_rows_count or 0) + (each.existing_rows_count or 0)
        left = rows[ManifestContent.DATA] - rows[ManifestContent.DELETES]
        if left > 0:
            return left
        data, deletes = self._files()
        dead = dead_rows(self.table, deletes)
        return sum(file.record_count - len(dead.get(file.file_path, ())) for file in data)

    @translated
    @override
    def scan(self, bounds: Bounds | None = None) -> pa.RecordBatchReader:
        data, deletes = self._files()
        if bounds is not None:
            data = [file for file in data if may_have(self.table.schema(), file, bounds)]
        dead = dead_rows(self.table, deletes)
        table, schema = self.table, self.table.schema()

        def batches() -> Iterator[pa.RecordBatch]:
            with translating():
                for file in data:
                    for _, rows in rows_of(table, file, schema, dead):
                        yield from rows.to_batches()

        return pa.RecordBatchReader.from_batches(self.schema, batches())

    @override
    def stored(self, schema: pa.Schema) -> pa.Schema:
        return stored(schema)

    @override
    def commits(self) -> Iterator[Commit]:
        snapshots = {each.snapshot_id: each for each in self.table.metadata.snapshots}
        snapshot = self.table.current_snapshot()
        while snapshot is not None:
            told = summary_of(snapshot)
            operation = "" if snapshot.summary is None else snapshot.summary.operation.value
            writer = told.get("engine-name") or told.get("spark.app.id") or "another program"
            keeps = operation == Operation.REPLACE.value
            number = snapshot.sequence_number or 0
            yield Commit(number, told.get(MARK), snapshot.timestamp_ms, operation, writer=writer, keeps_rows=keeps)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else snapshots.get(parent)

    @override
    def written(self, app: str) -> int | None:
        text = self.table.properties.get(WRITTEN + app)
        return None if text is None else int(text)

    @translated
    @override
    def set_property(self, name: str, text: str, mark: Mark) -> None:
        """It needs no snapshot, and so no mark."""
        alter(self.table, properties={name: text})

    @translated
    @override
    def append(self, rows: pa.Table, mark: Mark) -> None:
        files = [file for file, _ in write_rows(self.table, self.table.schema(), rows)]
        commit(self.table, SnapshotChange(Operation.APPEND, files), mark)

    @translated
    @override
    def overwrite(self, rows: Rows, mark: Mark, *, reshapes: bool) -> None:
        schema = self._fitted(rows.schema) if reshapes else self.table.schema()
        files = [file for file, _ in write_rows(self.table, schema, rows)]
        change = SnapshotChange(Operation.OVERWRITE, files, entries(self.table), schema if reshapes else None)
        commit(self.table, change, mark)

    @translated
    @override
    def reshape(self, shape: Reshaping, mark: Mark) -> None:
        """No row is written again."""
        self._unmoved(lambda: reshaped(self.table.schema(), shape.names, shape.schema.names), mark)

    @translated
    @override
    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        if fields:
            alter(self.table, schema=self._fitted(pa.schema([*self.schema, *fields])))

    @translated
    @override
    def widen(self, schema: pa.Schema, mark: Mark) -> bool:
        if not promotes(schema, self.table.schema()):
            return False
        self._unmoved(lambda: self._fitted(schema), mark)
        return True

    @translated
    @override
    def merge(self, net: Net, rows: pa.Table, mark: Mark) -> int:
        schema = self.schema
        key = [name for name in schema.names if name in net.key]
        keys = keys_of(rows, key)
        index = Index.of(self.table, key)
        of, places = index.find(keys)
        is_there = np.zeros(rows.num_rows, bool)
        is_there[of] = True
        is_put = np.asarray(pc.greater(rows.column(COUNT), 0), bool)
        needs_old = np.zeros(rows.num_rows, bool)
        for name in net.kept:
            needs_old |= np.asarray(rows.column(KEEP + name).fill_null(False), bool)
        absent = is_put & needs_old & ~is_there
        if needs_old.any():
            rows = self._with_old(rows, net.kept, of, places)
        new = np.flatnonzero(is_put & ~absent)
        if not len(new) and not len(of):
            commit(self.table, SnapshotChange(Operation.APPEND), mark)
            index.save(self.table)
            return 0
        deleted = Deletions.at(self.table, places)
        written = list(write_rows(self.table, self.table.schema(), rows.select(schema.names).take(pa.array(new))))
        self._commit([file for file, _ in written], deleted, mark)
        index.add(keys.take(np.flatnonzero(~is_put & is_there)), None)
        for file, some in written:
            index.add_rows(some, file.file_path, self.table.schema())
        index.save(self.table)
        return len(new)

    @translated
    @override
    def succeed(self, key: Sequence[str], end: str, ends: pa.Table, versions: pa.Table, mark: Mark) -> None:
        """A row that ends is deleted in its place and written again."""
        schema = self.schema
        names = [name for name in schema.names if name in key]
        keys = keys_of(ends, names)
        index = Index.of(self.table, names, end)
        of, places = index.find(keys)
        ended = self._rows_at(places, self.table.schema())
        ended = ended.set_column(schema.get_field_index(end), end, ends.column(end).combine_chunks().take(pa.array(of)))
        deleted = Deletions.at(self.table, places)
        rows = pa.concat_tables([ended.cast(schema), versions.select(schema.names).cast(schema)])
        written = list(write_rows(self.table, self.table.schema(), rows))
        self._commit([file for file, _ in written], deleted, mark)
        index.add(keys.take(np.unique(of)), None)
        for file, some in written:
            index.add_rows(some, file.file_path, self.table.schema())
        index.save(self.table)

    @translated
    @override
    def merge_bag(self, net: Net, added: pa.Table, mark: Mark) -> None:
        """So many of the rows that equal an image are deleted as it says."""
        gone = net.rows.filter(pc.less(net.rows.column(COUNT), 0))
        places = self._alike(gone, net.table.row_type.names) if gone.num_rows else None
        files = [file for file, _ in write_rows(self.table, self.table.schema(), added)]
        deleted = Deletions() if places is None else Deletions.at(self.table, places)
        self._commit(files, deleted, mark)

    @override
    def maintenance(self) -> Files:
        return Files(self.table)

    def _commit(self, files: list[DataFile], deleted: Deletions, mark: Mark) -> None:
        operation = Operation.OVERWRITE if deleted.added else Operation.APPEND
        commit(self.table, SnapshotChange(operation, [*files, *deleted.added], deleted.replaced), mark)

    def _files(self) -> tuple[list[DataFile], list[DataFile]]:
        """The data files and the delete files."""
        every = [entry.data_file for entry in entries(self.table)]
        data = [file for file in every if file.content == DataFileContent.DATA]
        return data, [file for file in every if file.content != DataFileContent.DATA]

    def _fitted(self, schema: pa.Schema) -> Schema:
        return fitted(schema, self.table.schema(), self.table.metadata.last_column_id)

    def _unmoved(self, columns: Callable[[], Schema], mark: Mark) -> None:
        """Change columns in a snapshot that leaves the rows where they are, and so the index right."""
        index = Index.stored(self.table)
        commit(self.table, SnapshotChange(Operation.APPEND, schema=columns()), mark)
        if index is not None:
            index.save(self.table)

    def _with_old(self, rows: pa.Table, kept: Sequence[str], of: np.ndarray, places: Places) -> pa.Table:
        """Rows with the values that the table's rows have, where the changes keep them."""
        wanted = np.zeros(rows.num_rows, bool)
        for name in kept:
            wanted |= np.asarray(rows.column(KEEP + name).fill_null(False), bool)
        chosen = np.flatnonzero(wanted[of])
        fields = {field.name: field for field in self.table.schema().fields}
        schema = Schema(*(fields[name] for name in kept))
        old = self._rows_at(Places(places.files, places.numbers[chosen], places.positions[chosen]), schema)
        source = np.full(rows.num_rows, -1)
        source[of[chosen]] = np.arange(len(chosen))
        take = pa.array(source, mask=source < 0)
        for name in kept:
            at = rows.column_names.index(name)
            values = old.column(name).combine_chunks().take(take)
            keeps = rows.column(KEEP + name).fill_null(False).combine_chunks()
            column = pc.if_else(keeps, values, rows.column(name).combine_chunks())
            rows = rows.set_column(at, rows.schema.field(at), column)
        return rows

    def _rows_at(self, places: Places, schema: Schema) -> pa.Table:
        """The rows at some places, in that order, in the columns of a schema."""
        data = {file.file_path: file for file in self._files()[0]} if len(places.numbers) else {}
        parts: list[pa.Table] = [arrow(schema).empty_table()]
        order = np.lexsort((places.positions, places.numbers))
        numbers, positions = places.numbers[order], places.positions[order]
        for number in np.unique(numbers):
            wanted = positions[numbers == number]
            for at, rows in rows_of(self.table, data[places.files[number]], schema, {}):
                low, high = np.searchsorted(wanted, (at[0], at[-1] + 1))
                parts.append(rows.take(pa.array(wanted[low:high] - at[0])))
        return pa.concat_tables(parts).take(pa.array(np.argsort(order)))

    def _alike(self, gone: pa.Table, names: Sequence[str]) -> Places:
        """As many rows of each image as are taken away."""
        data, deletes = self._files()
        dead = dead_rows(self.table, deletes)
        fields = {field.name: field for field in self.table.schema().fields}
        schema = Schema(*(fields[name] for name in names))
        left = gone.select(list(names)).cast(arrow(schema)).append_column(COUNT, gone.column(COUNT))
        numbers, positions = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        for number, file in enumerate(data):
            for at, rows in rows_of(self.table, file, schema, dead):
                hits, left = _taken(rows, left, names)
                numbers.append(np.full(len(hits), number, np.int32))
                positions.append(at[hits])
        return Places([file.file_path for file in data], np.concatenate(numbers), np.concatenate(positions))


def _taken(rows: pa.Table, left: pa.Table, names: Sequence[str]) -> tuple[np.ndarray, pa.Table]:
    """Which rows are taken away, and the images with what is still to be taken of each (negative numbers)."""
    codes = row_codes(joined([rows, left], names), rows.num_rows + left.num_rows)
    have, wanted = codes[: rows.num_rows], codes[rows.num_rows :]
    budget = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    budget[wanted] = -left.column(COUNT).to_numpy()
    order = np.argsort(have, kind="stable")
    starts = np.flatnonzero(np.diff(have[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(have)))
    rank = np.empty(len(have), np.int64)
    rank[order] = np.arange(len(have)) - np.repeat(starts, sizes)
    hits = np.flatnonzero(rank < budget[have])
    taken = np.bincount(have[hits], minlength=len(budget))
    counts = left.column(COUNT).to_numpy() + taken[wanted]
    return hits, left.set_column(left.column_names.index(COUNT), COUNT, pa.array(counts, pa.int64()))
