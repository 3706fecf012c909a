"""Defines ChangeBatch, the pivot of Tailrace: changes of one table under one schema, as Arrow columns.

Everything left of it knows one database; everything right of it knows none.

| column | Arrow type | holds |
|---|---|---|
| op | string | `c` `u` `d` `r` `t` `m`, as in the envelope; `s` is a schema change, which has no envelope |
| order | int64 | place among all events of the read it came from, over all tables; rows ascend by it |
| ts_us | int64 | time of the change at the source, microseconds since 1970 UTC |
| snapshot | string | `source.snapshot` marker; null while streaming |
| source | struct | the connector's own source fields, see SourceBlock |
| before, after | struct | row images of `TableSchema.row_type`; null where there is none |
| transaction | struct id, total_order, data_collection_order | optional column: transaction metadata |
| other_key | struct of the key columns | optional column: of a key change, the new key on its `d`, the old on its `c` |
| plain_key | struct of the key columns | optional column: the event key, where the images show it under a mask |
| unchanged | struct of booleans by column | optional column: large values the log did not repeat (null in `after`) |
| commit | int64 or string | rows of the log: where their transaction was committed; ascends as the log does |
| others | by the schema | optional columns: members of the envelope that only this connector has, see EnvelopeLayout |

Where envelopes hold documents, a row is the document's text, the one column of values, and the columns of the key. The
key is taken from `before` of a delete and from `after` of everything else, so these are not null even without a text.
"""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import SchemaChange
from tailrace.model.structure import Structure
from tailrace.model.table import TableSchema

TRANSACTION_TYPE = pa.struct([("id", pa.string()), ("total_order", pa.int64()), ("data_collection_order", pa.int64())])

CREATE, UPDATE, DELETE, READ, TRUNCATE, MESSAGE = "c", "u", "d", "r", "t", "m"
# Those that change a table, by the names that people write.
OPERATIONS = {"create": CREATE, "update": UPDATE, "delete": DELETE, "read": READ, "truncate": TRUNCATE}
# The member of an envelope that tells what an update did to a document.
UPDATE_DESCRIPTION = "updateDescription"
SCHEMA = "s"

# The column with the positions of commits, whose values sinks compare and store, and nothing else.
COMMIT = "commit"
PLAIN_KEY = "plain_key"
Position = int | str

_HEADER = b"tailrace"


@dataclass(frozen=True, slots=True)
class SnapshotRead:
    """What rows of a snapshot belong to, for sinks that keep a table's content.

    `id` is drawn for each micro-batch that reads rows of a snapshot, and again if those are read again. The first rows
    of a `snapshot` replace the table's content, the others are added; None: all are added, as in incremental snapshots.
    `position` is where the log begins that is not in the rows: commits before it are.

    `request` is the id of the signal that asked for all rows of the table, which come in chunks among changes of the
    log. `begins`: a batch without rows, before the changes that the first chunk is compared with. `total` ends it:
    nothing is left to read, and so many rows were read.
    """

    id: str
    snapshot: str | None = None
    position: Position | None = None
    request: str | None = None
    begins: bool = False
    total: int | None = None


@dataclass(frozen=True)
class ChangeBatch:
    """Changes of one table under one schema; `rows` is laid out as the module's table says.

    `read` is set for rows of a snapshot. A batch of a snapshot without rows says that the table is empty, to sinks that
    keep a table's content. `schema_change` makes the batch's one row, without images, a change of the table's
    definition; `table` then has the table's name alone. Without the row it gives sinks that keep content the table's
    new name, under the old one; `commit` is then what the row's column would say.

    For sinks that keep a table's content there are batches without a row, each at its place among the changes:
    `lacking` says why the table's rows may differ from here on, as the log does not carry what happened to them, or
    with a `read` why rows of that snapshot are missing;
    `structure` is what the source's catalogue says of the table, whose columns are those of `table`; a `read` begins
    or ends the reading of a table. What only such sinks need is `is_note`.
    """

    table: TableSchema
    rows: pa.RecordBatch
    read: SnapshotRead | None = None
    schema_change: SchemaChange | None = None
    _: KW_ONLY
    commit: Position | None = None
    lacking: str | None = None
    structure: Structure | None = None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def column(self, name: str) -> pa.Array | None:
        """The column of that name, None where an optional one is absent."""
        index = self.rows.schema.get_field_index(name)
        return None if index < 0 else self.rows.column(index)

    def slice(self, start: int, length: int) -> ChangeBatch:
        """Some of the rows, without a copy."""
        return self.with_rows(self.rows.slice(start, length))

    def with_rows(self, rows: pa.RecordBatch) -> ChangeBatch:
        """The same with other rows."""
        return replace(self, rows=rows)

    def with_snapshot_marker(self, row: int, marker: str | None) -> ChangeBatch:
        """The same with another `snapshot` value (`first`, `last`, ...) in one row; with None unchanged."""
        if marker is None:
            return self
        place = self.rows.schema.get_field_index("snapshot")
        markers = self.rows.column(place)
        edited = pa.concat_arrays([markers.slice(0, row), pa.array([marker], pa.string()), markers.slice(row + 1)])
        return self.with_rows(self.rows.set_column(place, "snapshot", edited))

    @property
    def is_empty_table(self) -> bool:
        """Whether a snapshot found the table without a row."""
        is_read = self.read is not None and self.read.snapshot is not None
        return is_read and not len(self) and self.lacking is None

    @property
    def is_note(self) -> bool:
        """Whether it has no row and is for sinks that keep a table's content."""
        is_bound = self.read is not None and (self.read.begins or self.read.total is not None)
        return self.is_empty_table or self.lacking is not None or self.structure is not None or is_bound

    def to_ipc(self) -> bytes:
        """The batch as an Arrow IPC stream whose schema metadata holds the table."""
        header: dict[str, Any] = {"table": self.table.to_json(), "commit": self.commit}
        if self.lacking is not None:
            header["lacking"] = self.lacking
        if self.structure is not None:
            header["structure"] = self.structure.to_json()
        if self.read is not None:
            header["read"] = asdict(self.read)
        if self.schema_change is not None:
            header["schema_change"] = self.schema_change.to_json()
        return _write(self.rows.replace_schema_metadata({_HEADER: json.dumps(header).encode()}))


@dataclass(frozen=True)
class ControlBatch:
    """Records of a control topic (transactions, heartbeats, ...): payloads already as JSON text, schemas beside them.

    `rows` has `key` and `value` (string, JSON text of the payload) and `partition` (int32, null: by key).
    `has_context`: the records get the headers that describe their origin.
    """

    topic: str
    key_schema: ConnectSchema
    value_schema: ConnectSchema
    rows: pa.RecordBatch
    has_context: bool = False

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def to_ipc(self) -> bytes:
        """The batch as an Arrow IPC stream whose schema metadata holds topic and schemas."""
        control: dict[str, Any] = {
            "topic": self.topic,
            "key": self.key_schema.to_json(),
            "value": self.value_schema.to_json(),
        }
        control["context"] = self.has_context
        return _write(self.rows.replace_schema_metadata({_HEADER: json.dumps({"control": control}).encode()}))


def note(
    table: TableSchema,
    *,
    read: SnapshotRead | None = None,
    lacking: str | None = None,
    structure: Structure | None = None,
) -> ChangeBatch:
    """A batch without rows for sinks that keep a table's content, see ChangeBatch."""
    images = [pa.field(name, table.row_type) for name in ("before", "after")]
    names = [("op", pa.string()), ("order", pa.int64()), ("ts_us", pa.int64()), ("snapshot", pa.string())]
    rows = pa.RecordBatch.from_pylist([], pa.schema([*names, *images]))
    return ChangeBatch(table, rows, read=read, lacking=lacking, structure=structure)


def from_ipc(data: bytes | pa.Buffer) -> ChangeBatch | ControlBatch:
    """The batch that `to_ipc` wrote."""
    with pa.ipc.open_stream(data) as reader:
        rows = reader.read_next_batch()
        header = json.loads((reader.schema.metadata or {})[_HEADER])
    rows = rows.replace_schema_metadata(None)
    if "table" in header:
        read, change = header.get("read"), header.get("schema_change")
        return ChangeBatch(
            TableSchema.from_json(header["table"]),
            rows,
            None if read is None else SnapshotRead(**read),
            None if change is None else SchemaChange.from_json(change),
            commit=header["commit"],
            lacking=header.get("lacking"),
            structure=Structure.from_json(header["structure"]) if "structure" in header else None,
        )
    control = header["control"]
    key, value = (ConnectSchema.from_json(control[name]) for name in ("key", "value"))
    return ControlBatch(control["topic"], key, value, rows, control["context"])


def _write(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())
