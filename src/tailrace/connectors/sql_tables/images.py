"""Converts the driver's rows to Arrow columns, without a Python step for each value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.sql_tables.tables import Block, Row
from tailrace.connectors.value_type import ValueType, converted


def selected(name: Callable[[str], str], table: CapturedTable, prefix: str = "") -> list[str]:
    """The expressions that give the columns of a table in the form that `images` takes; `name` quotes names."""
    columns = (f"{prefix}{name(column.name)}" for column in table.schema.columns)
    return [expression(kind, column) for kind, column in zip(table.types, columns, strict=True)]


def expression(kind: ValueType, value: str) -> str:
    """The expression that gives an SQL value in the form that `images` takes."""
    return (kind.text if kind.binary is None else kind.binary.select).format(value)


def block(rows: Sequence[Row]) -> Block:
    """The columns of rows of the driver, at least one."""
    return [pa.array(values) for values in zip(*rows, strict=True)]


def images(table: CapturedTable, columns: Block, rows: int) -> pa.StructArray:
    """Row images of columns of the driver's values. Raises DecodeError."""
    arrays = [
        image(kind, values, rows, f"{table.schema.id}.{column.name}")
        for column, kind, values in zip(table.schema.columns, table.types, columns, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(table.schema.row_type))


def image(kind: ValueType, values: pa.Array, rows: int, where: str) -> pa.Array:
    """A column of the driver's values. Raises DecodeError."""
    return nulls(rows, kind) if pa.types.is_null(values.type) else converted(values, kind, where, binary=True)


def nulls(rows: int, kind: ValueType) -> pa.Array:
    """A column of nulls alone, which has no type to convert from; texts are converted, as a mask may replace nulls."""
    return kind.convert(pa.nulls(rows, pa.string())) if kind.arrow == pa.string() else pa.nulls(rows, kind.arrow)
