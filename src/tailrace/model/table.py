"""A captured table at one moment of the log: its identity, its columns and its key."""

from __future__ import annotations

import base64
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from tailrace.model.masks import Masking
from tailrace.model.schema import ConnectSchema

# Re-exported: code that has a table needs its name.
from tailrace.model.table_id import TableId as TableId

# What becomes of a value that no native type holds.
ERROR, NULL, TEXT = "error", "null", "text"
# Which large values old images lack: those that an update left as they were, or those it changed or deleted as well.
UNTOUCHED, ALL = "untouched", "all"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its Connect schema and the Arrow type a ChangeBatch holds it in.

    The Arrow values are in Connect representation: days as int32, times and timestamps as int64 of the schema's unit,
    zoned ones as text, NUMERIC(p,s) as decimal128/256(p,s), everything else as one would expect.
    `in_value` is false for a key column that is excluded from event values. `out_of_range` is what becomes of
    dates and times that no native type holds, where rows are converted to those: see model/native.py.
    `placeholder` stands for a large value that the log did not repeat, where it is not `unavailable.value.placeholder`.
    `masking` is a mask still to be put on the images, while the event key shows the value itself.
    `missing` is the value that rows have which were written before the column was added, where the source gave them
    one without a change in its log. `is_unlogged`: it gave them values that nobody knows without reading the rows.
    `loses` names what of the source's values is not kept: values that differ in that alone are the same.
    `configured` says what is compared of values that the configuration alters, such as masked ones.
    `others` is what becomes of values that the type cannot hold where the column has their texts: see model/native.py.
    `sql` is the type of its values in a database where the schema does not tell it (`jsonb`).
    `old_lacks`: which large values old images do not have (UNTOUCHED, ALL), but null, or the placeholder where an
    update left the value as it was and there is one. `form` tells the settings under which rows have other values than
    the source; it is not in the header.
    """

    name: str
    schema: ConnectSchema
    arrow: pa.DataType
    in_value: bool = True
    _: KW_ONLY
    out_of_range: str = ERROR
    placeholder: str | None = None
    masking: Masking | None = None
    missing: pa.Scalar | None = None
    is_unlogged: bool = False
    loses: str | None = None
    configured: str | None = None
    others: str = ERROR
    old_lacks: str | None = None
    sql: str | None = None
    form: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class TableSchema:
    """A table's columns under one schema version, those outside event values last.

    `key` names the columns of the event key, in order (empty: no key). `identity` names the columns an old row image
    holds: all of them under REPLICA IDENTITY FULL, the identity's otherwise (empty: no old image ever comes).
    `unique_at_commit`: within a transaction two rows may have one key, as with deferrable constraints; old images hold
    all columns then.
    """

    id: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    identity: tuple[str, ...]
    unique_at_commit: bool = False

    @cached_property
    def row_type(self) -> pa.StructType:
        """The Arrow struct of a row image."""
        return pa.struct([pa.field(column.name, column.arrow) for column in self.columns])

    @property
    def value_columns(self) -> tuple[Column, ...]:
        """The columns that event values hold: the first ones of `columns`."""
        return tuple(column for column in self.columns if column.in_value)

    def column(self, name: str) -> Column:
        """The column of that name. Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """A JSON form, for the header of a ChangeBatch's IPC bytes."""
        arrow = pa.schema([pa.field(column.name, column.arrow) for column in self.columns]).serialize().to_pybytes()
        return {
            "id": self.id.to_json(),
            "columns": [column.schema.to_json(column.name) for column in self.columns],
            "empty": {column.name: column.schema.empty for column in self.columns if column.schema.empty is not None},
            "hidden": [column.name for column in self.columns if not column.in_value],
            "out_of_range": {
                column.name: column.out_of_range for column in self.columns if column.out_of_range != ERROR
            },
            "placeholders": {
                column.name: column.placeholder for column in self.columns if column.placeholder is not None
            },
            "maskings": {
                column.name: column.masking.to_json() for column in self.columns if column.masking is not None
            },
            "missing": {
                column.name: _scalar_text(column.missing) for column in self.columns if column.missing is not None
            },
            "loses": {column.name: column.loses for column in self.columns if column.loses is not None},
            "configured": {each.name: each.configured for each in self.columns if each.configured is not None},
            "others": {column.name: column.others for column in self.columns if column.others != ERROR},
            "unlogged": [column.name for column in self.columns if column.is_unlogged],
            "old_lacks": {column.name: column.old_lacks for column in self.columns if column.old_lacks is not None},
            "sql": {column.name: column.sql for column in self.columns if column.sql is not None},
            "arrow": base64.b64encode(arrow).decode(),
            "key": list(self.key),
            "identity": list(self.identity),
            "unique_at_commit": self.unique_at_commit,
        }

    @staticmethod
    def from_json(node: dict[str, Any]) -> TableSchema:
        """The inverse of `to_json`."""
        arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(node["arrow"])))
        columns = tuple(
            Column(
                member["field"],
                ConnectSchema.from_json(member).with_(empty=node["empty"].get(member["field"])),
                arrow.field(index).type,
                member["field"] not in node["hidden"],
                out_of_range=node.get("out_of_range", {}).get(member["field"], ERROR),
                placeholder=node.get("placeholders", {}).get(member["field"]),
                masking=_masking(node.get("maskings", {}).get(member["field"])),
                missing=_scalar(node.get("missing", {}).get(member["field"])),
                is_unlogged=member["field"] in node.get("unlogged", ()),
                loses=node.get("loses", {}).get(member["field"]),
                configured=node.get("configured", {}).get(member["field"]),
                others=node.get("others", {}).get(member["field"], ERROR),
                old_lacks=node.get("old_lacks", {}).get(member["field"]),
                sql=node.get("sql", {}).get(member["field"]),
            )
            for index, member in enumerate(node["columns"])
        )
        key, identity = tuple(node["key"]), tuple(node["identity"])
        return TableSchema(TableId.from_json(node["id"]), columns, key, identity, node.get("unique_at_commit", False))


def _masking(node: dict[str, Any] | None) -> Masking | None:
    return None if node is None else Masking.from_json(node)


def _scalar_text(value: pa.Scalar) -> str:
    """A value with its type, as text."""
    batch = pa.RecordBatch.from_arrays([pa.array([value.as_py()], value.type)], names=["value"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue()).decode()


def _scalar(text: str | None) -> pa.Scalar | None:
    if text is None:
        return None
    with pa.ipc.open_stream(base64.b64decode(text)) as reader:
        return reader.read_next_batch().column(0)[0]
