"""Finds tables of one structure, whose rows are decoded together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import Values
from tailrace.connectors.postgres.log.protocol.pgoutput import Relation, RelationColumn


@dataclass
class LogStructures:
    """Tables with equal columns in the log, schemas and conversions share the tuples that hold these.

    A transaction over a thousand tables brings a few rows of each, and a column costs 0.1 ms to decode however few
    they are. Databases with so many tables often have many that are alike: one for each tenant, or
    partitions. `values` keeps conversions, as two that were made apart are not equal. A mask or a converter makes one
    for each column, so that tables with them are never alike.
    """

    values: Values = field(default_factory=dict)
    _described: dict[tuple[RelationColumn, ...], list[CapturedTable]] = field(default_factory=dict)

    def shared(self, relation: Relation, table: CapturedTable) -> CapturedTable:
        """The table, with the tuples of one that is like it."""
        described = self._described.setdefault(relation.columns, [])
        alike = next((each for each in described if _are_alike(each, table)), None)
        if alike is None:
            described.append(table)
            return table
        return replace(table, schema=replace(table.schema, columns=alike.schema.columns), types=alike.types)


def _are_alike(table: CapturedTable, other: CapturedTable) -> bool:
    return table.types == other.types and table.schema == replace(other.schema, id=table.schema.id)
