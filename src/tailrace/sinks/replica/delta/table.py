"""A Delta table as the rules of replicas see it: delta-rs merges inside the executor's task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction, write_deltalake

from tailrace.override import override
from tailrace.sinks.replica import merge
from tailrace.sinks.replica.codes import row_codes
from tailrace.sinks.replica.delta.maintenance import Files
from tailrace.sinks.replica.evolve import aligned, without_sql_names
from tailrace.sinks.replica.fold import COUNT, FROM, Net
from tailrace.sinks.replica.form import Form, refuse_nulls
from tailrace.sinks.replica.lookup import joined, matching, without
from tailrace.sinks.replica.reshape import Reshaping
from tailrace.sinks.replica.streams import streamed
from tailrace.sinks.replica.table import Bounds, Commit, LakeError, Mark, Rows, Table

# The entry of a commit's information that Delta leaves to users.
USER_METADATA = "userMetadata"
# Operations of Delta that leave the rows as they are.
_WITHOUT_ROWS = (
    *("OPTIMIZE", "VACUUM START", "VACUUM END", "FSCK", "REORG", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"),
    *("SET TABLE PROPERTIES", "ADD CONSTRAINT", "DROP CONSTRAINT", "ADD COLUMNS", "ADD COLUMN", "CHANGE COLUMN"),
    *("UPGRADE PROTOCOL", "ADD FEATURE", "DROP FEATURE", "UPDATE SCHEMA", "UPDATE FIELD METADATA", "CLUSTER BY"),
    *("UPDATE TABLE METADATA", "COMPUTE STATS", "CREATE TABLE"),
)


def commit(mark: Mark) -> CommitProperties:
    """The properties of a commit that carries a mark."""
    text = {USER_METADATA: mark.text}
    if mark.app is None:
        return CommitProperties(custom_metadata=text)
    # No silent retries on top of a newer version: it may be this very part, written by a task thought dead.
    return CommitProperties(
        max_commit_retries=0, app_transactions=[Transaction(mark.app, mark.version)], custom_metadata=text
    )


class Delta(Table):
    """Implements Table. Raises LakeError for a table of which deltalake would lose values."""

    def __init__(self, table: DeltaTable, form: Form | None = None) -> None:
        _refuse_features(table)
        self.table, self._form = table, form or Form()

    @property
    @override
    def uri(self) -> str:
        return str(self.table.table_uri)

    @property
    @override
    def id(self) -> str:
        return str(self.table.metadata().id)

    @property
    @override
    def version(self) -> int:
        return int(self.table.version())

    @property
    @override
    def schema(self) -> pa.Schema:
        return without_sql_names(pa.schema(self.table.schema().to_arrow()))

    @property
    @override
    def properties(self) -> Mapping[str, str]:
        return {name: text for name, text in self.table.metadata().configuration.items() if text is not None}

    @override
    def count(self) -> int:
        return int(self.table.count())

    @override
    def scan(self, bounds: Bounds | None = None) -> pa.RecordBatchReader:
        predicate = None if bounds is None else _within(bounds)
        return pa.RecordBatchReader.from_stream(self.table.scan(predicate=predicate))

    @override
    def stored(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema(Schema.from_arrow(without_sql_names(schema)).to_arrow())

    @override
    def commits(self) -> Iterator[Commit]:
        """Most often the first one is enough."""
        seen = 0
        for limit in (1, 16, 256, None):
            commits = self.table.history(limit)
            yield from map(_commit, commits[seen:])
            seen = len(commits)
            if limit is None or seen < limit:
                return

    @override
    def written(self, app: str) -> int | None:
        return self.table.transaction_version(app)

    @override
    def set_property(self, name: str, text: str, mark: Mark) -> None:
        self.table.alter.set_table_properties({name: text}, raise_if_not_exists=False, commit_properties=commit(mark))

    @override
    def append(self, rows: pa.Table, mark: Mark) -> None:
        write_deltalake(self.table, checked(rows, self._partitions), mode="append", commit_properties=commit(mark))

    @override
    def overwrite(self, rows: Rows, mark: Mark, *, reshapes: bool) -> None:
        if reshapes:
            self._reshaped(rows, self._form.chosen(rows.schema, self._partitions), mark)
            return
        given = checked(rows.cast(without_sql_names(rows.schema)), self._partitions)
        write_deltalake(self.table, given, mode="overwrite", commit_properties=commit(mark))

    @override
    def reshape(self, shape: Reshaping, mark: Mark) -> None:
        """The rows are written again, as without column mapping a file's columns have the table's names."""
        new = dict(zip(shape.names, shape.schema.names, strict=True))
        kept = [new[name] for name in self._partitions if name in new]
        rows = streamed(self, shape.schema, shape.names)
        self._reshaped(rows, self._form.chosen(shape.schema, kept), mark)

    @override
    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        if fields:
            self.table.alter.add_columns([Field.from_arrow(field) for field in fields])

    @override
    def widen(self, schema: pa.Schema, mark: Mark) -> bool:
        """Readers must know Delta's type widening, so it is not used."""
        return False

    @override
    def merge(self, net: Net, rows: pa.Table, mark: Mark) -> int:
        if not rows.num_rows:
            return 0
        names = self.schema.names
        merger = self.table.merge(
            checked(rows, self._partitions),
            merge.same_key(net.key),
            source_alias="s",
            target_alias="t",
            commit_properties=commit(mark),
        )
        merger.when_matched_delete(merge.DELETES)
        merger.when_matched_update(merge.updates(names, net.kept))
        merger.when_not_matched_insert(merge.inserts(names), merge.inserted(net.kept))
        metrics = merger.execute()
        return int(metrics["num_target_rows_inserted"]) + int(metrics["num_target_rows_updated"])

    @override
    def succeed(self, key: Sequence[str], end: str, ends: pa.Table, versions: pa.Table, mark: Mark) -> None:
        """Rows to be added name no key of the table, so that MERGE matches none."""
        if not ends.num_rows:
            self.append(versions, mark)
            return
        refuse_nulls(versions, self._partitions)
        named = {name: FROM + name for name in key}
        asked = ends.rename_columns([named.get(name, name) for name in ends.column_names])
        source = pa.concat_tables([_counted(asked, -1), _counted(versions, 1)], promote_options="default")
        merger = self.table.merge(
            source,
            f"{merge.same_key(key, prefix=FROM)} AND t.{merge.quoted(end)} IS NULL",
            source_alias="s",
            target_alias="t",
            commit_properties=commit(mark),
        )
        merger.when_matched_update({merge.quoted(end): f"s.{merge.quoted(end)}"})
        merger.when_not_matched_insert(merge.inserts(self.schema.names), merge.PUTS).execute()

    @override
    def merge_bag(self, net: Net, added: pa.Table, mark: Mark) -> None:
        """All rows that may equal one to be taken away are deleted, and those that remain are put back."""
        schema = self.schema
        gone = net.rows.filter(pc.less(net.rows.column(COUNT), 0))
        if not gone.num_rows:
            if added.num_rows:
                self.append(added, mark)
            return
        fields = [net.rows.schema.field(name) for name in net.table.row_type.names]
        names = [field.name for field in fields if _is_plain(field.type)]
        touched = matching(self, gone, names)
        refuse_nulls(added, self._partitions)
        remaining = aligned(without(touched, gone, net.table.row_type.names), schema)
        marks = pa.concat_tables([remaining, added])
        marks = marks.append_column(COUNT, pa.array(np.ones(marks.num_rows, np.int64)))
        first = np.unique(row_codes(joined([gone], names), gone.num_rows), return_index=True)[1]
        deletes = aligned(gone.select([*names, COUNT]).take(pa.array(first)), schema)
        alike = [f"(t.{merge.quoted(name)} IS NOT DISTINCT FROM s.{merge.quoted(name)})" for name in names]
        merger = self.table.merge(
            pa.concat_tables([deletes, marks]),
            " AND ".join([f"({merge.DELETES})", *alike]),
            source_alias="s",
            target_alias="t",
            commit_properties=commit(mark),
        )
        merger.when_matched_delete().when_not_matched_insert(merge.inserts(schema.names), merge.PUTS).execute()

    @override
    def maintenance(self) -> Files:
        return Files(self.table)

    @property
    def _partitions(self) -> list[str]:
        return list(self.table.metadata().partition_columns)

    def _reshaped(self, rows: Rows, partitions: list[str], mark: Mark) -> None:
        """Replace the rows, the columns, and those that partition the table."""
        given = checked(rows.cast(without_sql_names(rows.schema)), partitions)
        write_deltalake(
            self.table,
            given,
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=partitions,
            commit_properties=commit(mark),
        )


def checked(rows: Rows, partitions: Sequence[str]) -> Rows:
    """Rows as they are; see `refuse_nulls` for what is raised, of a stream where it has such rows."""
    if isinstance(rows, pa.Table):
        refuse_nulls(rows, partitions)
        return rows
    if not partitions:
        return rows
    stream = rows

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in stream:
            refuse_nulls(batch, partitions)
            yield batch

    return pa.RecordBatchReader.from_batches(stream.schema, batches())


def _refuse_features(table: DeltaTable) -> None:
    """Raises LakeError for a table of which deltalake would lose values, or whose rows it cannot read.

    Tried with deltalake 1.6.6: rows written by another program under column mapping are null, and rows deleted by
    deletion vectors end every merge.
    """
    protocol, configuration = table.protocol(), table.metadata().configuration
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    mapping = configuration.get("delta.columnMapping.mode") or "none"
    unfit = [name for name in ("deletionVectors",) if name in features]
    unfit += ["columnMapping"] if mapping != "none" else []
    if unfit:
        raise LakeError(
            f"another program has given the table {table.table_uri} Delta's feature {' and '.join(unfit)}, with which "
            "deltalake does not keep all values",
            f"remove it with Delta for Spark (ALTER TABLE ... DROP FEATURE {unfit[0]}), or move the table away; then "
            "run `tailrace retry`",
        )


def _commit(entry: dict[str, Any]) -> Commit:
    operation = str(entry.get("operation", ""))
    return Commit(
        int(entry.get("version", 0)),
        entry.get(USER_METADATA),
        int(entry.get("timestamp", 0)),
        operation,
        writer=str(entry.get("engineInfo") or entry.get("clientVersion") or "another program"),
        keeps_rows=operation.upper() in _WITHOUT_ROWS,
        restores=operation == "RESTORE",
    )


def _counted(rows: pa.Table, count: int) -> pa.Table:
    return rows.append_column(COUNT, pa.array(np.full(rows.num_rows, count, np.int64)))


def _within(bounds: Bounds) -> str | None:
    """A predicate; None where every row meets it."""
    name = '"' + bounds.column.replace('"', '""') + '"'
    sides = [
        f"{name} {sign} {value}" for sign, value in ((">=", bounds.least), ("<=", bounds.most)) if value is not None
    ]
    return f"{name} IS NULL OR ({' AND '.join(sides)})" if sides else None


def _is_plain(kind: pa.DataType) -> bool:
    """Whether SQL compares a type as `row_codes` does: floats (NaN, -0.0) and nested types it does not."""
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind))
