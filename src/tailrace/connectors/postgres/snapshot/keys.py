"""Selects rows by keys that are given as texts, and returns the keys as texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from tailrace.connectors.base import Key
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import source_of
from tailrace.connectors.postgres.snapshot.text_rows import copy_lines, rows_of

# Names and types of a key's columns, as SQL writes the types.
KeyTypes = tuple[tuple[str, str], ...]


def texts(keys: pa.Table) -> list[Key]:
    """Keys in native types (see model/native.py) as texts that PostgreSQL reads; a null is an empty text."""
    columns = [_texts(column.combine_chunks()).fill_null("").to_pylist() for column in keys.columns]
    return list(zip(*columns, strict=True))


def _texts(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        local = values.cast(pa.timestamp("us")).cast(pa.string())
        return pc.binary_join_element_wise(local, "+00", "")
    if pa.types.is_binary(kind):
        return pa.array([None if value is None else "\\x" + value.hex() for value in values.to_pylist()], pa.string())
    if pa.types.is_nested(kind):
        return pa.array([str(value) for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def rows(
    connection: psycopg.Connection, table: CapturedTable, types: KeyTypes, keys: Sequence[Key]
) -> tuple[pa.StructArray, pa.Array]:
    """Images of the rows there are of some keys, and a text for each that names its version.

    Another version has another: no later transaction has the number of one that has ended, and one that has ended makes
    no more versions. Raises SourceError.
    """
    query = sql.SQL(
        "COPY (SELECT {}, t.tableoid::int8 || '/' || t.xmin || '/' || t.ctid FROM {} AS t JOIN {} ON {}) TO STDOUT"
    ).format(
        sql.SQL(", ").join(sql.Identifier("t", column.name) for column in table.schema.columns),
        source_of(table),
        _given(keys, len(types)),
        _same(types),
    )
    images, (versions,) = _copied(connection, query, table, 1)
    return images, versions


def images(
    connection: psycopg.Connection,
    table: CapturedTable,
    types: KeyTypes,
    keys: Sequence[Key],
    *,
    absent: bool = False,
) -> pa.StructArray:
    """The keys, in their order, as images of rows that hold nothing else; or only those without a row.

    Raises SourceError for what is no key.
    """
    nowhere = sql.SQL(" WHERE NOT EXISTS (SELECT FROM {} AS t WHERE {})").format(source_of(table), _same(types))
    query = sql.SQL("COPY (SELECT {} FROM {}{} ORDER BY place) TO STDOUT").format(
        sql.SQL(", ").join(_value(place, kind) for place, (_, kind) in enumerate(types)),
        _given(keys, len(types)),
        nowhere if absent else sql.SQL(""),
    )
    return _copied(connection, query, _of_columns(table, [name for name, _ in types]), 0)[0]


def as_rows(table: CapturedTable, keys: pa.StructArray) -> pa.StructArray:
    """Images of keys as images of whole rows, null outside of the key."""
    arrays = [
        pa.nulls(len(keys), field.type) if (place := keys.type.get_field_index(field.name)) < 0 else keys.field(place)
        for field in table.schema.row_type
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(table.schema.row_type))


def _of_columns(table: CapturedTable, names: Sequence[str]) -> CapturedTable:
    """The table as if it had these columns only, in that order."""
    kinds = dict(zip((column.name for column in table.schema.columns), table.types, strict=True))
    columns = tuple(table.schema.column(name) for name in names)
    types = tuple(kinds[name] for name in names)
    return replace(table, schema=replace(table.schema, columns=columns), types=types)


def _copied(
    connection: psycopg.Connection, query: sql.Composed, table: CapturedTable, extra: int
) -> tuple[pa.StructArray, list[pa.Array]]:
    lines = [line for part in copy_lines(connection, query, str(table.schema.id)) for line in part]
    if not lines:
        return pa.nulls(0, table.schema.row_type), [pa.nulls(0, pa.string()) for _ in range(extra)]
    return rows_of(table, lines, extra)


def _same(types: KeyTypes) -> sql.Composable:
    """That a row of the table t has a given key."""
    return sql.SQL(" AND ").join(
        sql.SQL("{} = {}").format(sql.Identifier("t", name), _value(place, kind))
        for place, (name, kind) in enumerate(types)
    )


def _given(keys: Sequence[Key], width: int) -> sql.Composable:
    """The keys as a table k of texts k0, k1, ..., and of their places."""
    return sql.SQL("unnest({}) WITH ORDINALITY AS k({}, place)").format(
        sql.SQL(", ").join(sql.SQL("{}::text[]").format(sql.Literal([key[at] for key in keys])) for at in range(width)),
        sql.SQL(", ").join(sql.Identifier(f"k{at}") for at in range(width)),
    )


def _value(place: int, kind: str) -> sql.Composable:
    return sql.SQL("{}::{}").format(sql.Identifier("k", f"k{place}"), sql.SQL(kind))
