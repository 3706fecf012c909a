"""Folds the changes of a micro-batch in Spark's tasks: net effects in slices, which MERGE then applies."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa

from tailrace.errors import DecodeError, TableError
from tailrace.sinks.replica import descriptions
from tailrace.sinks.replica.batch import MicroBatch, table_parts
from tailrace.sinks.replica.evolve import fitted, is_whole, needs_table
from tailrace.sinks.replica.failures import retried
from tailrace.sinks.replica.fold import Net, fold
from tailrace.sinks.replica.marks import TableProgress
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.roots import ICEBERG

FOLDED = "table string, part int, slice int, header string, rows binary"
_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("part", pa.int32()),
        ("slice", pa.int32()),
        ("header", pa.string()),
        ("rows", pa.binary()),
    ]
)
_SLICE_ROWS = 50_000  # guessed


def folding(batch: MicroBatch) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does with the rows of its tables; see `_slices` for what it gives."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table, some in table_parts(batches, batch.layout):
            target, has_failed = batch.target(table), False
            opened = cache(partial(_opened, batch, table))
            for part in some:
                if has_failed and part.rename is None:
                    continue
                slices = _slices(part, opened, needs_description=batch.root.startswith(ICEBERG))
                try:
                    first = retried(target, partial(next, slices), 1)
                except (TableError, DecodeError) as error:
                    if not batch.sets_aside:
                        raise
                    first, has_failed = (json.dumps({"extent": asdict(part.extent), "failed": str(error)}), b""), True
                for number, (header, rows) in enumerate(chain([first], slices)):
                    place = {"table": table, "part": part.extent.number, "slice": number}
                    yield pa.RecordBatch.from_pylist([{**place, "header": header, "rows": rows}], _SCHEMA)

    return run


def _opened(batch: MicroBatch, table: str) -> tuple[TableProgress, dict[str, pa.Field]]:
    """What a table holds of the query's changes, and its columns of texts that take all values."""
    target = batch.target(table).open()
    return batch.progress(table, target), {} if target is None else _wholes(target.schema)


def _wholes(schema: pa.Schema) -> dict[str, pa.Field]:
    """Columns of texts that take all values."""
    return {field.name: field for field in schema if is_whole(field)}


def _slices(
    part: Part, opened: Callable[[], tuple[TableProgress, dict[str, pa.Field]]], *, needs_description: bool
) -> Iterator[tuple[str | None, bytes]]:
    """A part's rows that the table does not hold, some at a time; before the first ones, what else there is to know.

    `opened` has the target's columns of texts that take all values; those of the part are added. With
    `needs_description` the source's table is there in any case.
    """
    if part.error is not None:
        raise TableError(part.error)
    if part.note is not None and part.note.lacking is not None:
        yield json.dumps({"lacking": part.note.lacking, "extent": asdict(part.extent)}), b""
        return
    if part.note is not None or part.request is not None:
        yield json.dumps({"tasks": True, "extent": asdict(part.extent)}), b""
        return
    metadata = {
        name: asdict(each) for name, each in (("rename", part.rename), ("change", part.change)) if each is not None
    }
    if metadata:
        yield json.dumps({**metadata, "extent": asdict(part.extent)}), b""
        return
    progress, wholes = opened()
    left = part.left(progress)
    if not left:
        yield json.dumps({"extent": asdict(part.extent), "oldest_us": part.oldest_us}), b""
        return
    net = fold(left)
    wholes |= _wholes(net.rows.schema)
    net = replace(net, rows=fitted(net.rows, pa.schema([*wholes.values()])))
    header = _header(part, net, progress)
    if wholes or needs_table(net.table) or needs_description:
        header["table"] = net.table.to_json()
    for start in range(0, max(net.rows.num_rows, 1), _SLICE_ROWS):
        yield json.dumps(header) if start == 0 else None, _ipc(net.rows.slice(start, _SLICE_ROWS))


def _header(part: Part, net: Net, progress: TableProgress) -> dict[str, Any]:
    """What there is to know of a part's rows."""
    return {
        "extent": asdict(part.extent.without(progress.place)),
        "oldest_us": part.oldest_us,
        "names": net.table.row_type.names,
        "schema": base64.b64encode(net.rows.schema.serialize().to_pybytes()).decode(),
        "key": net.key,
        "kept": net.kept,
        "moves": net.moves,
        "cleared": net.cleared,
        "upserted": net.upserted,
        "deleted": net.deleted,
        "loses": net.lacking,
        "types": descriptions.types(net.table),
    }


def _ipc(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def unpacked(rows: pa.Buffer | bytes) -> pa.Table:
    """The inverse of what `_slices` makes of rows."""
    with pa.ipc.open_stream(rows) as reader:
        return reader.read_all()
