"""Describes tables as the catalogue has them, so that what happens outside the log is noticed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.sql_tables.tables import Row
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.narrower import RENEW, late
from tailrace.connectors.sqlserver.statements import name
from tailrace.connectors.sqlserver.types.conversions import kept_by
from tailrace.connectors.sqlserver.types.values import SqlType
from tailrace.model.structure import Fact, Member, Structure
from tailrace.model.table import TableId

# The captured columns of each instance, with the types that the source's columns have now. A captured column that was
# dropped keeps its number, and one that was added under its name has another: the change table has no values of that.
_CAPTURED = """
SELECT k.object_id, t.object_id, CONVERT(varchar(30), t.create_date, 126), k.column_name,
  CASE WHEN c.column_id <> k.column_id THEN 1 ELSE 0 END, COALESCE(c.column_id, k.column_id),
  COALESCE(b.name, y.name), c.max_length, c.precision, c.scale, c.collation_name
FROM {db}.cdc.captured_columns k
JOIN {db}.cdc.change_tables ct ON ct.object_id = k.object_id
JOIN {db}.sys.tables t ON t.object_id = ct.source_object_id
LEFT JOIN {db}.sys.columns c ON c.object_id = t.object_id AND c.name = k.column_name
LEFT JOIN {db}.sys.types y ON y.user_type_id = c.user_type_id
LEFT JOIN {db}.sys.types b ON b.user_type_id = c.system_type_id AND b.system_type_id = c.system_type_id
"""
# Where the rows of each table lie, and whether SWITCH is allowed of a table with partitions: of one without them it
# always is (Microsoft: "sys.sp_cdc_enable_table").
_STORED = """
SELECT ct.object_id, CONVERT(int, ct.partition_switch), p.hobt_id, p.partition_number, p.rows
FROM {db}.cdc.change_tables ct
JOIN {db}.sys.partitions p ON p.object_id = ct.source_object_id AND p.index_id < 2
"""
_FILLED = "filled"
_ADDED_AGAIN = "was dropped and added again, and no change of it arrives by a capture instance of before"


@dataclass
class StructureTable:
    """A table by what the catalogue has of its capture instance: its columns and their places."""

    identity: str
    columns: dict[str, str] = field(default_factory=dict)
    again: list[str] = field(default_factory=list)
    facts: dict[str, Fact] = field(default_factory=dict)

    def described(self, shown: Sequence[str]) -> Structure:
        """The table, of whose columns these are captured."""
        hidden = tuple(place for column, place in self.columns.items() if column not in shown)
        again = ", ".join(column for column in self.again if column in shown)
        unsent = f"{again} {_ADDED_AGAIN}; {RENEW}" if again else None
        return Structure(self.identity, self.columns, hidden, facts=self.facts, unsent=unsent)


@dataclass(frozen=True)
class TablePartition:
    """A part of a table, all of it if it has no partitions: where it lies, its number, and whether it has rows.

    SWITCH exchanges two tables' parts, of which one is empty. An index that is rebuilt moves a part.
    """

    place: str
    number: int
    has_rows: bool


def structures(connection: Connection, catalog: Catalog, end: LsnPosition) -> dict[TableId, Structure]:
    """The captured tables whose changes up to an end of the log a change table has. May raise the driver's errors."""
    by_table: dict[TableId, Structure] = {}
    for database, _ in end.lsns:
        newest = in_effect(catalog, database, end)
        read = {each.number: table for table, each in newest.items() if catalog.filter.captures(table)}
        mine = [each for each in catalog.instances(database) if catalog.filter.captures(each.table)]
        new = late(connection, database, mine, catalog.filter)
        stored = _stored(connection.rows(_STORED.format(db=name(database))))
        for number, table in _tables(connection.rows(_CAPTURED.format(db=name(database)))).items():
            if number in read:
                described = table.described(catalog.filter.columns(read[number], [*table.columns]))
                described = replace(described, unsent=described.unsent or new.get(read[number]))
                by_table[read[number]] = replace(described, **switched(*stored.get(number, (False, []))))
    return by_table


def _stored(rows: Sequence[Row]) -> dict[int, tuple[bool, list[TablePartition]]]:
    """By the numbers of change tables whether partitions may be switched, and the parts of the source table."""
    by_instance: dict[int, tuple[bool, list[TablePartition]]] = {}
    for instance, switches, place, number, count in rows:
        part = TablePartition(str(place), int(number), int(count or 0) > 0)
        by_instance.setdefault(int(instance), (bool(switches), []))[1].append(part)
    return by_instance


def switched(is_allowed: bool, parts: Sequence[TablePartition]) -> dict[str, Any]:
    """What of a Structure shows that a part of a table was switched.

    Another place of a partition says so, or that its index was rebuilt: nothing else tells a partition that was
    switched out and in again. Without partitions, where indexes are rebuilt each week, a switch leaves a table empty or
    has found it empty: its place is another one then, and it had no rows before or has none now.
    """
    if len(parts) == 1:
        (part,) = parts
        return {"storage": (part.place, *([_FILLED] if part.has_rows else [])), "is_untold": True}
    if not is_allowed:
        return {}
    return {"members": {each.place: Member(f"partition {each.number}", "", each.has_rows) for each in parts}}


def in_effect(catalog: Catalog, database: str, end: LsnPosition) -> dict[TableId, Instance]:
    """The instance of each table that has its changes where the log ends."""
    begun = [each for each in catalog.instances(database) if each.has_begun and each.start <= end.lsn(database)]
    return {each.table: each for each in begun}


def _tables(rows: Sequence[tuple[object, ...]]) -> Mapping[int, StructureTable]:
    by_instance: dict[int, StructureTable] = {}
    for instance, number, created, column, is_another, place, *kind in rows:
        table = by_instance.setdefault(int(str(instance)), StructureTable(f"{number} {created}"))
        table.columns[str(column)] = str(place)
        table.again += [str(column)] if is_another else []
        table.facts.update(_facts(str(column), kind))
    return by_instance


def _facts(column: str, kind: Sequence[object]) -> Iterator[tuple[str, Fact]]:
    """What of a column's type matters for the values of its rows; nothing where the column is gone."""
    type_name, size, precision, scale, collation = kind
    if type_name is None:
        return
    octets, digits, places = (int(str(each)) for each in (size, precision, scale))
    type_ = SqlType(str(type_name), octets, digits, places, collation=None if collation is None else str(collation))
    value, sizes = kept_by(type_)
    why = f"the type of {column} was altered: its values may have been converted without a change in the log"
    yield f"type of {column}", Fact(value, why, sizes=sizes)
