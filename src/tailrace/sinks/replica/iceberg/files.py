"""Reads and writes the files of an Iceberg table: rows with their positions, and the positions of deleted rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, PrimitiveType, StringType

from tailrace.sinks.replica.form import VECTORS
from tailrace.sinks.replica.iceberg.columns import named_as
from tailrace.sinks.replica.iceberg.manifests import version_of
from tailrace.sinks.replica.iceberg.reading import tables_of
from tailrace.sinks.replica.iceberg.vectors import Positions, is_vector, read_vector, referenced
from tailrace.sinks.replica.retention import FILE_BYTES
from tailrace.sinks.replica.table import Bounds, LakeError, Rows

# The ids are those of Iceberg's specification.
_DELETES = Schema(
    NestedField(2147483546, "file_path", StringType(), required=True),
    NestedField(2147483545, "pos", LongType(), required=True),
)
# A reader finds the deletes of a file by whole paths.
_WHOLE_PATHS = {"write.metadata.metrics.column.file_path": "full"}


@dataclass(frozen=True)
class Places:
    """Rows by the numbers of their files, which are places in `files`, and their positions in these."""

    files: list[str]
    numbers: npt.NDArray[np.int32]
    positions: Positions


def dead_rows(table: Table, deletes: Iterable[DataFile]) -> dict[str, Positions]:
    """The positions of deleted rows by the paths of their files, ascending. Raises LakeError for other deletes."""
    deleted_rows: list[pa.Table] = []
    vectors: dict[str, Positions] = {}
    for file in deletes:
        if version_of(table) == VECTORS and is_vector(file):
            vectors[referenced(file)] = read_vector(table, file)
            continue
        if file.content != DataFileContent.POSITION_DELETES or file.file_format != FileFormat.PARQUET:
            raise LakeError(
                "another program has deleted rows of the table by their values, which replicas do not "
                f"read ({file.file_path}); let that program rewrite the table's files"
            )
        with table.io.new_input(file.file_path).open() as stream:
            deleted_rows.append(pq.read_table(stream, columns=["file_path", "pos"], read_dictionary=["file_path"]))
    if not deleted_rows:
        return vectors
    every = pa.concat_tables(deleted_rows).unify_dictionaries().combine_chunks()
    paths = every.column("file_path").combine_chunks()
    codes, positions = paths.indices.to_numpy(), every.column("pos").to_numpy()
    order = np.lexsort((positions, codes))
    codes, positions = codes[order], positions[order]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    names = paths.dictionary.to_pylist()
    parts = zip(first, np.split(positions, first[1:]), strict=True)
    return {names[codes[at]]: np.unique(each) for at, each in parts} | vectors


def may_have(schema: Schema, file: DataFile, bounds: Bounds) -> bool:
    """Whether a file may have rows within bounds of a column, by its statistics."""
    column = schema.find_field(bounds.column)
    if not isinstance(column.field_type, PrimitiveType) or (file.null_value_counts or {}).get(column.field_id, 1):
        return True
    told = [(each or {}).get(column.field_id) for each in (file.lower_bounds, file.upper_bounds)]
    least, most = (None if each is None else int(from_bytes(column.field_type, each)) for each in told)
    is_before = bounds.least is not None and most is not None and most < bounds.least
    return not is_before and not (bounds.most is not None and least is not None and least > bounds.most)


def rows_of(
    table: Table, file: DataFile, schema: Schema, dead: Mapping[str, Positions]
) -> Iterator[tuple[Positions, pa.Table]]:
    """The rows of a file that are not deleted, in the columns of a schema, with their positions."""
    gone, at = dead.get(file.file_path), 0
    for rows in tables_of(table, file, schema):
        positions = np.arange(at, at + len(rows))
        at += len(rows)
        if gone is not None and len(rows):
            lives = np.ones(len(rows), bool)
            low, high = np.searchsorted(gone, (positions[0], at))
            lives[gone[low:high] - positions[0]] = False
            rows, positions = rows.filter(pa.array(lives)), positions[lives]
        if len(positions):
            yield positions, rows


def write_rows(table: Table, schema: Schema, rows: Rows, size: int = FILE_BYTES) -> Iterator[tuple[DataFile, pa.Table]]:
    """Write rows of the columns of a schema into data files of about so many bytes; each with the rows that it has."""
    batches = iter(rows.to_batches(max_chunksize=1 << 17) if isinstance(rows, pa.Table) else rows)
    batch = next(batches, None)
    while batch is not None:
        held: list[pa.Table] = []
        writer = _Writer(table, sanitize_column_names(schema))
        while batch is not None and (not held or writer.bytes < size):
            if batch.num_rows:
                held.append(pa.Table.from_batches([batch]).select([field.name for field in schema.fields]))
                writer.write(held[-1])
            batch = next(batches, None)
        if held:
            yield writer.close(), pa.concat_tables(held)


def write_deletes(table: Table, places: Places) -> DataFile:
    """Write the positions of deleted rows into a file."""
    paths = pa.DictionaryArray.from_arrays(pa.array(places.numbers), pa.array(places.files)).cast(pa.string())
    rows = pa.table({"file_path": paths, "pos": pa.array(places.positions, pa.int64())})
    writer = _Writer(table, _DELETES, _WHOLE_PATHS, DataFileContent.POSITION_DELETES)
    writer.write(rows.sort_by([("file_path", "ascending"), ("pos", "ascending")]))
    return writer.close()


class _Writer:
    """Writes one Parquet file of a table. Close it."""

    def __init__(
        self,
        table: Table,
        schema: Schema,
        properties: Mapping[str, str] | None = None,
        content: DataFileContent = DataFileContent.DATA,
    ) -> None:
        self._schema, self._content, self._properties = schema, content, dict(properties or table.properties)
        self._types = schema_to_pyarrow(schema)
        self._path = table.location_provider().new_data_location(f"{uuid.uuid4()}.parquet")
        self._output = table.io.new_output(self._path)
        self._stream = self._output.create()
        self._metadata: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(
            self._stream, self._types, compression="zstd", metadata_collector=self._metadata, store_schema=False
        )
        self._table = table

    @property
    def bytes(self) -> int:
        """How many bytes are written; what is buffered is not counted."""
        return int(self._stream.tell())

    def write(self, rows: pa.Table) -> None:
        """Write rows whose columns are those of the schema, in order."""
        columns = [named_as(values, field.type) for values, field in zip(rows.columns, self._types, strict=True)]
        self._writer.write_table(pa.table(columns, names=self._types.names).cast(self._types))

    def close(self) -> DataFile:
        """End the file, and describe it as manifests do."""
        self._writer.close()
        size = int(self._stream.tell())
        self._stream.close()
        statistics = data_file_statistics_from_parquet_metadata(
            self._metadata[0],
            compute_statistics_plan(self._schema, self._properties),
            parquet_path_to_id_mapping(self._schema),
        )
        return DataFile.from_args(
            _table_format_version=version_of(self._table),
            content=self._content,
            file_path=self._path,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            file_size_in_bytes=size,
            sort_order_id=None,
            spec_id=self._table.metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
