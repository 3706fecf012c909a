"""Reads the columns of a data file of an Iceberg table by their ids.

pyiceberg 0.12 makes empty lists and maps of those that are null where their values are structs. So it reads alone what
other programs write in other ways: files without ids or of other formats, and columns whose parts have changed since.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import ListType, MapType, NestedField, StructType

from tailrace.sinks.replica.iceberg.columns import arrow, named_as

_ID = b"PARQUET:field_id"
# Rows that are decoded at a time, as many as a row group of ours has.
_AT_A_TIME = 1 << 17


def tables_of(table: Table, file: DataFile, schema: Schema) -> Iterator[pa.Table]:
    """All rows of a data file in order, in the columns of a schema; null in those that the file does not have."""
    if file.file_format == FileFormat.PARQUET:
        with table.io.new_input(file.file_path).open() as stream:
            parquet = pq.ParquetFile(stream, pre_buffer=True)
            fields = {_id(field): field for field in parquet.schema_arrow}
            in_file = [fields.get(field.field_id) for field in schema.fields]
            pairs = zip(in_file, schema.fields, strict=True)
            if None not in fields and all(_is(field_of_file, wanted) for field_of_file, wanted in pairs):
                yield from _read(parquet, in_file, arrow(schema))
                return
    scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
    for batch in scan.to_record_batches([FileScanTask(file)]):
        yield pa.Table.from_batches([batch]).cast(arrow(schema))


def _read(parquet: pq.ParquetFile, in_file: list[pa.Field | None], types: pa.Schema) -> Iterator[pa.Table]:
    for batch in parquet.iter_batches(_AT_A_TIME, columns=[field.name for field in in_file if field is not None]):
        columns = []
        for field, wanted in zip(in_file, types, strict=True):
            if field is None:
                columns.append(pa.chunked_array([pa.nulls(batch.num_rows, wanted.type)]))
            else:
                values = pa.chunked_array([batch.column(batch.schema.get_field_index(field.name))])
                columns.append(named_as(values, wanted.type).cast(wanted.type))
        yield pa.table(columns, schema=types)


def _id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return None if text is None else int(text)


def _is(field: pa.Field | None, wanted: NestedField) -> bool:
    """Whether a file's column is that of a schema, with all that is within it; or it has none, which is null then."""
    if field is None:
        return wanted.initial_default is None
    kind, mine = wanted.field_type, field.type
    if _id(field) != wanted.field_id:
        return False
    if isinstance(kind, StructType):
        return pa.types.is_struct(mine) and len(mine) == len(kind.fields) and all(map(_is, mine, kind.fields))
    if isinstance(kind, ListType):
        return pa.types.is_list(mine) and _is(mine.value_field, kind.element_field)
    if isinstance(kind, MapType):
        return pa.types.is_map(mine) and _is(mine.key_field, kind.key_field) and _is(mine.item_field, kind.value_field)
    return not pa.types.is_nested(mine)
