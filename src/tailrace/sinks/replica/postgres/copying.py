"""Writes rows of Arrow as the text that COPY takes, by columns: a value's text, its escapes, then the lines.

The text is that of PostgreSQL's manual (COPY, file formats, text format): tabs between columns, `\\N` for null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from tailrace.sinks.replica.evolve import cast, is_whole, sql_name
from tailrace.sinks.replica.postgres import statements
from tailrace.sinks.replica.postgres.columns import as_text, sql_type
from tailrace.sinks.replica.postgres.errors import is_refused
from tailrace.sinks.replica.table import Rows

_TEXT, _BYTES = pa.large_string(), pa.large_binary()
# Of the lines that are made at a time.
_BLOCK_BYTES, _MOST_ROWS = 8 << 20, 50_000
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_ITEM_ESCAPES = (("\\", "\\\\"), ('"', '\\"'))


def copy(
    connection: psycopg.Connection[object],
    table: sql.Composable,
    columns: Sequence[sql.Composable],
    rows: Rows,
    schema: pa.Schema,
) -> None:
    """Copy rows into columns of a table, those of a schema in its order and in its types."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(table, sql.SQL(", ").join(columns))
    with connection.cursor() as cursor, cursor.copy(statement) as target:
        for block in _blocks(rows, schema):
            target.write(lines(block))


def staged(
    connection: psycopg.Connection[object],
    name: str,
    rows: Rows,
    schema: pa.Schema,
) -> sql.Identifier:
    """A table of these rows until the transaction ends; its columns are `c0`, `c1`, ... in the order of the schema."""
    table, columns = sql.Identifier("pg_temp", name), [sql.Identifier(f"c{at}") for at in range(len(schema))]
    types = [sql.SQL(sql_type(field)) for field in schema]
    pairs = [sql.SQL(" ").join(pair) for pair in zip(columns, types, strict=True)]
    connection.execute(
        sql.SQL("CREATE TEMP TABLE {} ({}) ON COMMIT DROP").format(sql.Identifier(name), sql.SQL(", ").join(pairs))
    )
    copy(connection, table, columns, rows, schema)
    # Nothing else tells the planner how many rows there are.
    connection.execute(sql.SQL("ANALYZE {}").format(table))
    return table


def read(
    connection: psycopg.Connection[object], name: str, rows: Rows, schema: pa.Schema
) -> tuple[sql.Identifier, pa.Schema]:
    """A table of these rows, texts where the schema has another type; and the schema that they can have.

    Of a stream no row comes twice, so a value that is none of its column's type must not end the transaction.
    """
    table = staged(connection, name, rows, pa.schema([as_text(field) for field in schema]))
    return table, pa.schema([_readable(connection, table, at, field) for at, field in enumerate(schema)])


def _readable(connection: psycopg.Connection[object], table: sql.Identifier, at: int, field: pa.Field) -> pa.Field:
    if sql_name(field) is None or is_whole(field):
        return field
    try:
        with connection.transaction():
            connection.execute(statements.read_as(table, at, field))
    except psycopg.Error as error:
        if not is_refused(error):
            raise
        return as_text(field)
    return field


def lines(batch: pa.RecordBatch) -> pa.Buffer | bytes:
    """The lines of a batch whose columns are in stored types."""
    if not batch.num_rows:
        return b""
    columns = [_escaped(_text(column)) for column in batch.columns]
    joined = pc.binary_join_element_wise(
        *columns, pa.scalar("\t", _TEXT), null_handling="replace", null_replacement="\\N"
    )
    whole = pc.binary_join_element_wise(joined, pa.scalar("", _TEXT), pa.scalar("\n", _TEXT))
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, np.int64)
    first, last = int(ends[whole.offset]), int(ends[whole.offset + len(whole)])
    return data.slice(first, last - first)


def _blocks(rows: Rows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
        table = pa.Table.from_batches([batch])
        columns = [cast(table.column(field.name), field.type) for field in schema]
        stored = pa.table(columns, names=schema.names)
        size = max(stored.nbytes // max(stored.num_rows, 1), 1)
        yield from stored.to_batches(min(max(_BLOCK_BYTES // size, 1), _MOST_ROWS))


def _escaped(values: pa.Array, escapes: Sequence[tuple[str, str]] = _ESCAPES) -> pa.Array:
    for plain, escaped in escapes:
        values = pc.replace_substring(values, plain, escaped)
    return values


def _text(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_list(kind):
        return _lists(values)
    if pa.types.is_binary(kind):
        return _hexadecimal(values.cast(_BYTES))
    return values.cast(_TEXT)


def _hexadecimal(values: pa.LargeBinaryArray) -> pa.Array:
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    digits = (b"" if data is None else bytes(data[int(ends[0]) : int(ends[-1])])).hex()
    starts = pa.py_buffer(((ends - ends[0]) * 2).tobytes())
    text = pa.Array.from_buffers(_TEXT, len(values), [None, starts, pa.py_buffer(digits.encode())])
    text = pc.binary_join_element_wise(pa.scalar("\\x", _TEXT), text, pa.scalar("", _TEXT))
    return pc.if_else(values.is_valid(), text, pa.scalar(None, _TEXT))


def _lists(values: pa.ListArray) -> pa.Array:
    """Arrays as PostgreSQL reads them, each item in quotation marks."""
    quote, nothing = pa.scalar('"', _TEXT), pa.scalar("", _TEXT)
    items = _escaped(_text(values.flatten()), _ITEM_ESCAPES)
    items = pc.binary_join_element_wise(quote, items, quote, nothing).fill_null("NULL")
    lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), pa.int64())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(ends, items), pa.scalar(",", _TEXT))
    text = pc.binary_join_element_wise(pa.scalar("{", _TEXT), joined, pa.scalar("}", _TEXT), nothing)
    return pc.if_else(values.is_valid(), text, pa.scalar(None, _TEXT))
