"""Names and extra columns of a replica's tables: names for a catalog, and columns about each row's last change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from tailrace.errors import TableError
from tailrace.events.shapes import sortable
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import SchemaChange
from tailrace.model.table import Column, TableSchema
from tailrace.sinks.replica.fold import merge_key
from tailrace.sinks.replica.folders import folder
from tailrace.sinks.replica.form import Forms
from tailrace.sinks.replica.modes import STAMP, Mode

Names = Literal["source", "catalog"]
# Hive's limit of a table's name.
_LONGEST, _DIGITS = 128, 16


def catalog_name(name: str) -> str:
    """A name in lower case of letters, digits and underscores, as Hive and Unity Catalog take it."""
    plain = re.sub("[^a-z0-9_]", "_", name.lower())
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[: _LONGEST - _DIGITS - 1]}_{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}"


def table_folder(unique: str, names: Names) -> str:
    """The folder of a table by its unique name."""
    return folder(unique) if names == "source" else catalog_name(unique.replace("!2E", ".").replace("!21", "!"))


def column_names(table: TableSchema, names: Names) -> dict[str, str]:
    """The replica's name of each column. Raises TableError where two columns would have one name.

    Delta and most readers of Iceberg tell no columns apart whose names differ by case alone.
    """
    rename = catalog_name if names == "catalog" else str
    new_names = {column.name: rename(column.name) for column in table.columns}
    if len({new.lower() for new in new_names.values()}) < len(new_names):
        _refuse(table, names, new_names)
    return new_names


def _refuse(table: TableSchema, names: Names, new_names: Mapping[str, str]) -> None:
    first_of_name: dict[str, str] = {}
    for column, new in new_names.items():
        other = first_of_name.setdefault(new.lower(), column)
        if other != column:
            source = "" if names == "source" or other.lower() == column.lower() else ", or set names: source"
            is_same = new_names[other] == new
            what = f"would both be named {new}" if is_same else "differ by case alone, which no replica tells apart"
            raise TableError(
                f"the columns {other} and {column} {what}",
                where=str(table.id),
                remedy=f"leave one out that is not of the key (column.exclude.list={table.id}.(?-i:{column}), as names "
                f"match in any case without (?-i:)), or rename it in the source{source}; then restart, and run "
                "`tailrace retry`",
            )


@dataclass(frozen=True)
class ReplicaLayout:
    """`names`: as the source has them, or as a catalog takes them. `metadata`: names of columns by what they hold.

    They hold `commit_time`, `position` (of the commit, as text that sorts as the log does) or `op` of a row's last
    change. A table without a key has none, as all of its columns tell its rows apart. `mode` is what tables keep: one
    that is not the newest rows has columns of its own, and none of these. `forms` say how tables are stored.
    """

    names: Names = "source"
    metadata: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = field(default_factory=Mode)
    forms: Forms = field(default_factory=Forms)

    def applied(self, batch: ChangeBatch) -> ChangeBatch:
        """A batch of the source as one of the replica. Raises TableError where two columns would have one name."""
        new = column_names(batch.table, self.names)
        self._refuse_clash(batch.table, new)
        if self.names == "source" and not self.metadata:
            return batch
        if batch.schema_change is not None:
            return replace(batch, schema_change=self._renamed_change(batch.schema_change))
        table = batch.table
        added = self._added() if merge_key(table) else ()
        columns = (*(replace(column, name=new[column.name]) for column in table.columns), *added)
        key, identity = (tuple(new[name] for name in part) for part in (table.key, table.identity))
        shaped = replace(table, columns=columns, key=key, identity=identity)
        rows = batch.rows
        values = [_VALUES[kind](batch) for kind in self.metadata] if added else []
        nothing = [pa.nulls(len(batch), column.arrow) for column in added]
        for name, more in (("before", nothing), ("after", values)):
            rows = _with(rows, name, _struct(rows.column(name), shaped.row_type.names, more))
        for name in ("unchanged", "other_key"):
            if name in rows.schema.names:
                struct = rows.column(name)
                rows = _with(rows, name, _struct(struct, [new[each] for each in struct.type.names], []))
        structure = None if batch.structure is None else batch.structure.renamed_columns(self._column_name)
        return replace(batch, table=shaped, rows=rows, structure=structure)

    def _column_name(self, name: str) -> str:
        return catalog_name(name) if self.names == "catalog" else name

    def _refuse_clash(self, table: TableSchema, names: Mapping[str, str]) -> None:
        added = self.metadata if self.mode.is_latest and merge_key(table) else self.mode.columns
        for kind, name in added.items():
            other = next((old for old, taken in names.items() if taken.lower() == name.lower()), None)
            if other is not None:
                raise TableError(
                    f"the table has a column {other}, and {kind} of the changes would have the same name",
                    where=str(table.id),
                    remedy=f"give it another name: metadata: {{{kind}: ...}}",
                )

    def _added(self) -> tuple[Column, ...]:
        kinds = {"commit_time": STAMP}
        schema = ConnectSchema("string", optional=True)
        return tuple(Column(name, schema, kinds.get(kind, pa.string())) for kind, name in self.metadata.items())

    def _renamed_change(self, change: SchemaChange) -> SchemaChange:
        if self.names == "source":
            return change
        renamed = [(catalog_name(old), catalog_name(new)) for old, new in change.renamed]
        dropped = tuple(catalog_name(name) for name in change.dropped)
        return replace(change, renamed=tuple((old, new) for old, new in renamed if old != new), dropped=dropped)


def _position(batch: ChangeBatch) -> pa.Array:
    commit = batch.column(COMMIT)
    if batch.read is None and commit is not None:
        return sortable(commit)
    begins = None if batch.read is None else batch.read.position
    if begins is None:
        return pa.nulls(len(batch), pa.string())
    return pa.repeat(sortable(pa.array([begins]))[0], len(batch))


_VALUES: dict[str, Callable[[ChangeBatch], pa.Array]] = {
    "commit_time": lambda batch: batch.rows.column("ts_us").cast(STAMP),
    "position": _position,
    "op": lambda batch: batch.rows.column("op"),
}


def _struct(struct: pa.StructArray, names: Sequence[str], more: Sequence[pa.Array]) -> pa.StructArray:
    """A struct with other names for its first fields and with more of them."""
    arrays = [*(struct.field(place) for place in range(struct.type.num_fields)), *more]
    return pa.StructArray.from_arrays(arrays, names=list(names), mask=struct.is_null())


def _with(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    return rows.set_column(rows.schema.get_field_index(name), name, values)
