"""The description of its source that a replica's table has met last, in a property of the table.

What the log itself tells of a table is noted there as well, before it is applied: so a later description differs by
nothing but what the log did not tell. A process that is killed in between repeats both.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tailrace.model.schema_change import DROP, SchemaChange
from tailrace.model.structure import Stored
from tailrace.model.table import TableSchema
from tailrace.sinks.replica.table import Mark, Table

PROPERTY = "tailrace.structure"


def stored(target: Table) -> Stored | None:
    """What is stored, None where nothing is."""
    return Stored.parse(target.properties.get(PROPERTY))


def store(target: Table, description: Stored, mark: Mark) -> None:
    """Store what is known of a table's source, unless it is there."""
    if target.properties.get(PROPERTY) != description.text:
        target.set_property(PROPERTY, description.text, mark)


def altered(target: Table, change: SchemaChange, mark: Mark) -> None:
    """Note what a schema change of the log does. After a drop, another table of that name is a new one."""
    description = stored(target)
    if change.kind == DROP:
        store(target, Stored(is_dropped=True), mark)
    elif description is not None:
        description.altered(dict(change.renamed), change.dropped)
        store(target, description, mark)


def emptied(target: Table, mark: Mark) -> None:
    """Note that a change of the log removes all rows."""
    description = stored(target)
    if description is not None:
        description.emptied()
        store(target, description, mark)


def begun(target: Table, columns: dict[str, str], mark: Mark, is_empty: Callable[[], bool]) -> None:
    """Note that rows of these columns (see `types`) come into a target, if they are the first since all were removed.

    `is_empty`: whether the target has no rows of now, or the commit that brings these removes them.
    """
    description = stored(target)
    if description is not None and description.is_emptied and not description.begun and is_empty():
        description.begun = columns
        store(target, description, mark)


def whole(description: Stored, table: TableSchema) -> list[str]:
    """The columns that had their present type when the first row came after all were removed."""
    now = types(table)
    return [name for name, kind in description.begun.items() if now.get(name) == kind]


def types(table: TableSchema) -> dict[str, str]:
    """A table's columns, with their types as text."""
    return {column.name: json.dumps(column.schema.to_json()) for column in table.columns}


def outdated(target: Table, since_us: int | None) -> str | None:
    """Why rows may differ that a change of that time has written (the source's; None: there is none)."""
    description = stored(target) if since_us is not None else None
    if description is None or since_us is None or since_us > description.differed_us:
        return None
    return "a change came that is older than what had happened to the table outside the log, and may have undone it"


def moved(target: Table, source: Table, mark: Mark) -> None:
    """Note that a table has the rows of another one, which has its name from here on. So it is met, if no more."""
    description = stored(source) or Stored()
    description.renamed = ""
    store(target, description, mark)


def cured(target: Table, mark: Mark) -> None:
    """Note that the rows are read again, whatever was lacking."""
    description = stored(target)
    if description is not None and description.lacking:
        description.lacking = ""
        store(target, description, mark)
