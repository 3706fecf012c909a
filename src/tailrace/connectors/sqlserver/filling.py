"""Finds what rows have in new columns of a capture instance that were not written since the instance began."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa

from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.change_tables.unbrought import unchanged
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.sql_tables.images import block, expression, image
from tailrace.connectors.sql_tables.tables import Row
from tailrace.connectors.sqlserver import statements
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.value_type import ValueType


def filled(
    dialect: Dialect,
    connection: Connection,
    catalog: Catalog,
    instance: Instance,
    captured: CapturedTable,
) -> CapturedTable:
    """The table whose new columns know what older rows have: one value in all, or values that nobody knows.

    ALTER TABLE fills rows without a change in the log, and so may do whoever writes between ALTER TABLE and the
    instance's start. The table is read once for it.
    """
    described = catalog.at(instance)
    own = {column.name: column for column in described.columns}
    new = _new(catalog, instance, own)
    if not new:
        return captured
    rows, columns = unchanged(dialect, catalog, instance), []
    for column, kind in zip(captured.schema.columns, captured.types, strict=True):
        if column.name in new:
            value = f"t.{statements.name(column.name)}"
            text = dialect.key_text(value, own[column.name].type)
            # As bytes, so that neither collations nor blanks make two values one.
            values = connection.rows(f"SELECT DISTINCT TOP 2 CONVERT(varbinary(max), {text}) AS octets {rows}")
            if len(values) > 1:
                column = replace(column, is_unlogged=True)
            elif values and values[0][0] is not None:
                shown = connection.rows(f"SELECT TOP 1 {expression(kind, value)} AS value {rows}")
                column = replace(column, missing=_value(kind, shown, f"{instance.table}.{column.name}"))
        columns.append(column)
    return replace(captured, schema=replace(captured.schema, columns=tuple(columns)))


def _value(kind: ValueType, rows: Sequence[Row], where: str) -> pa.Scalar | None:
    return image(kind, block(rows)[0], 1, where)[0] if rows else None


def _new(catalog: Catalog, instance: Instance, own: Collection[str]) -> set[str]:
    """The columns of an instance that another one of its table lacks, and the table still has."""
    others = [each for each in catalog.all_instances(instance.table) if each.number != instance.number]
    if not others:
        return set()
    table = {column.name for column in catalog.described(instance.table, instance.source).columns}
    lacking = [{column.name for column in catalog.at(each).columns} for each in others]
    return {column for column in own if column in table and any(column not in names for names in lacking)}
