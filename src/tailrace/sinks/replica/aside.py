"""Sets a table aside whose replica cannot take its changes: the others go on, and its changes become dead letters.

Dead letters are rows of a table `<root>/_aside/<folder of the table>`. Its commits carry the same Record as the
replica's, which begins where the replica's ends, so a repeated micro-batch does not store a change twice. The record
also says of what the table was set aside, and which snapshot the replica had then. The table is set aside until the
replica begins another snapshot: one commit ends it, and no second store could differ from that.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from tailrace.errors import DecodeError, ShapeError, TableError
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.native import native_rows
from tailrace.model.table import TEXT, TableSchema
from tailrace.override import override
from tailrace.sinks.replica import contents, writing
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.failures import ERRORS, failed, retried
from tailrace.sinks.replica.folders import is_among
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.layout import Names
from tailrace.sinks.replica.marks import Aside, Extent, Record, TableProgress, newest
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.table import Lake, Table
from tailrace.sinks.replica.target import Target

FOLDER = "_aside"
LETTERS = pa.schema(
    [
        ("op", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("position", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("unchanged", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class SetAside:
    """A table that is set aside: since when, why, where its changes are stored and how many there are."""

    table: str
    since: str
    error: str
    place: str
    changes: int

    @property
    def name(self) -> str:
        """The table's name as signals and filters have it."""
        return self.table.replace("!2E", ".").replace("!21", "!")

    @override
    def __str__(self) -> str:
        what, _, _ = self.error.partition("\n")
        return f"{self.name} is set aside since {self.since}: {what}; fix this, then run `tailrace retry`"


def folders(root: str, storage_options: Mapping[str, str]) -> frozenset[str]:
    """The folders of tables that have dead letters below a root. Raises SinkError."""
    try:
        return _lake(root, storage_options).names()
    except ERRORS as error:
        raise failed(Target(root, FOLDER, storage_options), error, where=root) from error


def tables_set_aside(root: str, storage_options: Mapping[str, str], names: Names = "source") -> tuple[SetAside, ...]:
    """The tables that are set aside below a root, by name; `names` is the sink's. Raises SinkError."""
    lake = _lake(root, storage_options)
    tables = []
    for name in sorted(folders(root, storage_options)):
        try:
            letters = lake.open(name)
            table = None if letters is None else _found(root, letters, storage_options, names)
        except ERRORS as error:
            raise failed(Target(root, name, storage_options), error, where=lake.uri(name)) from error
        # Without a table a task was killed before its first commit there, or it is being deleted.
        tables += [] if table is None else [table]
    return tuple(tables)


def _lake(root: str, storage_options: Mapping[str, str]) -> Lake:
    return lake_at(root, storage_options).below(FOLDER)


def _found(root: str, letters: Table, options: Mapping[str, str], names: Names) -> SetAside | None:
    """The table whose dead letters these are, if it is set aside."""
    record = newest(letters)
    if record is None or record.aside is None:
        return None
    target = Target(root, record.table, options, names).open()
    if not _is_open(record, target, None if target is None else newest(target, record.query)):
        return None
    return SetAside(record.table, record.aside.since, record.aside.error, letters.uri, letters.count())


def write(batch: MicroBatch, table: str, part: Part, *, is_aside: bool) -> TableReport:
    """Bring a part into its table, or into its dead letters where that is set aside or cannot take it.

    `is_aside`: whether an earlier part of the micro-batch may have set the table aside. Raises SinkError.
    """
    if (is_aside or is_among(table, batch.aside)) and _takes(batch, table, part):
        return put(batch, table, part, None)
    try:
        return contents.write(batch, table, part)
    except (TableError, DecodeError) as error:
        if not batch.sets_aside:
            raise
        return replace(put(batch, table, part, str(error)), is_cured=isinstance(error, ShapeError))


def put(batch: MicroBatch, table: str, part: Part, error: str | None) -> TableReport:
    """Store a part's changes as dead letters, without those that are stored; an `error` sets the table aside.

    Rows of snapshots are not stored: the source has them, and the table is read again. Raises SinkError.
    """
    place = _place(batch, table)

    def attempt() -> int | None:
        target = place.open()
        progress = batch.progress(table, target)
        kept = batch.target(table).open()
        replica = batch.progress(table, kept).record
        record = progress.record
        is_open = record is not None and _is_open(record, kept, replica)
        if not is_open:
            record = replica or Record(batch.query_id, table, batch.batch_id)
        assert record is not None
        if error is not None or not is_open:
            # An open one is set aside again by a snapshot that failed, and what the replica has is the same.
            last = None if replica is None else _last(replica)
            record = replace(record, aside=Aside(_now(), error or "", last))
        progress.record = record
        letters = _letters(part, progress)
        is_stored = not letters.num_rows and progress.has(replace(part.extent, read=None))
        # A snapshot that fails again has another error to store.
        if is_stored and (error is None or (is_open and part.extent.read is None)):
            return None
        mark = progress.mark(part.extent)
        if target is None:
            return writing.created(batch, place, letters, mark).version
        target.append(letters, mark)
        return target.version

    version = retried(place, attempt)
    return TableReport(table, 0, 0, None, aside=error, letters=version)


def keep(batch: MicroBatch, table: str, reports: Sequence[TableReport]) -> list[str]:
    """Maintain a table and its dead letters, which a micro-batch wrote as the reports say; what failed of that."""
    failures = (
        batch.keep(batch.target(table), [report.version for report in reports]),
        batch.keep(_place(batch, table), [report.letters for report in reports]),
    )
    return [failure for failure in failures if failure is not None]


def carry(batch: MicroBatch, old: str, new: str, extent: Extent) -> bool:
    """Set a table aside that is the new name of one that is set aside; whether that is so."""
    if not _takes(batch, old, Part(extent)):
        return False
    put(batch, new, Part(extent), renamed(old))
    return True


def renamed(old: str) -> str:
    """Why a table is set aside that had this name when it was set aside."""
    return f"it was {old} before, which is set aside"


def _takes(batch: MicroBatch, table: str, part: Part) -> bool:
    """Whether a part is for the dead letters: the table is set aside, and no new snapshot begins with it."""
    record = batch.progress(table, _place(batch, table).open()).record
    kept = batch.target(table).open()
    if record is None or not _is_open(record, kept, batch.progress(table, kept).record):
        return False
    read = part.extent.read
    return read is None or read.snapshot is None or read.snapshot in record.snapshots


def _is_open(record: Record, target: Table | None, replica: Record | None) -> bool:
    """Whether a table is set aside, by the record of its dead letters, by its replica and by the record of that.

    A replica that was deleted, which is the remedy for some errors, has no rows: only a snapshot may begin it again.
    """
    if record.aside is None or target is None:
        return record.aside is not None
    return record.aside.snapshot == (None if replica is None else _last(replica))


def _last(record: Record) -> str | None:
    return record.snapshots[-1] if record.snapshots else None


def _place(batch: MicroBatch, table: str) -> Target:
    return Target(f"{batch.root.rstrip('/')}/{FOLDER}", table, batch.storage_options)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _letters(part: Part, progress: TableProgress) -> pa.Table:
    if part.change is not None and not progress.has(part.extent):
        letter = {"op": "s", "position": str(part.change.position), "after": json.dumps(part.change.to_json())}
        return pa.Table.from_pylist([letter], schema=LETTERS)
    left = [batch for batch in part.left(progress) if batch.read is None]
    return pa.concat_tables([LETTERS.empty_table(), *map(_letters_of, left)])


def _letters_of(batch: ChangeBatch) -> pa.Table:
    rows = batch.rows
    unchanged = rows.column("unchanged").to_pylist() if "unchanged" in rows.schema.names else [None] * len(batch)
    columns = {
        "op": rows.column("op"),
        "ts": rows.column("ts_us").cast(pa.timestamp("us", "UTC")),
        "position": rows.column(COMMIT).cast(pa.string()),
        "before": _texts(batch.table, rows.column("before")),
        "after": _texts(batch.table, rows.column("after")),
        "unchanged": pa.array([_names(each) for each in unchanged], LETTERS.field("unchanged").type),
    }
    return pa.table(columns, schema=LETTERS)


def _names(flags: Mapping[str, bool | None] | None) -> list[str] | None:
    return None if flags is None else [name for name, flag in flags.items() if flag]


def _texts(table: TableSchema, images: pa.StructArray) -> pa.Array:
    """Row images as JSON. Dates and times are text; a value that has none is shown as the event has it."""
    readable = replace(table, columns=tuple(replace(column, out_of_range=TEXT) for column in table.columns))
    with suppress(DecodeError):  # the letter is to be stored whatever it holds
        images = native_rows(readable, images)
    return pa.array([None if row is None else _json(row) for row in images.to_pylist()], pa.string())


def _json(row: dict[str, Any]) -> str:
    try:
        return json.dumps(row, default=_text, allow_nan=False)
    except ValueError:  # JSON has no number for it: text then, as in events
        return json.dumps(_spelled(row), default=_text)


def _spelled(value: Any) -> Any:
    """A value whose floats are texts if they are infinite or none: NaN, Infinity, -Infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return [_spelled(each) for each in value]
    return {name: _spelled(each) for name, each in value.items()} if isinstance(value, dict) else value


def _text(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
