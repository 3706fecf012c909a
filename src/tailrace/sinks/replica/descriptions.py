"""The description of its source that a replica's table has met last, in a property of the Delta table.

What the log itself tells of a table is noted there as well, before it is applied: so a later description differs by
nothing but what the log did not tell. A process that is killed in between repeats both.
"""

from __future__ import annotations

from deltalake import CommitProperties, DeltaTable

from tailrace.model.schema_change import DROP, SchemaChange
from tailrace.model.structure import Stored

PROPERTY = "tailrace.structure"


def stored(target: DeltaTable) -> Stored | None:
    """What is stored, None where nothing is."""
    return Stored.parse(target.metadata().configuration.get(PROPERTY))


def store(target: DeltaTable, known: Stored, properties: CommitProperties) -> None:
    """Store what is known of a table's source, unless it is there."""
    if target.metadata().configuration.get(PROPERTY) != known.text:
        text = {PROPERTY: known.text}
        target.alter.set_table_properties(text, raise_if_not_exists=False, commit_properties=properties)


def altered(target: DeltaTable, change: SchemaChange, properties: CommitProperties) -> None:
    """Note what a schema change of the log does. After a drop, another table of that name is a new one."""
    known = stored(target)
    if change.kind == DROP:
        store(target, Stored(is_dropped=True), properties)
    elif known is not None:
        known.altered(dict(change.renamed), change.dropped)
        store(target, known, properties)


def emptied(target: DeltaTable, properties: CommitProperties) -> None:
    """Note that a change of the log removes all rows."""
    known = stored(target)
    if known is not None:
        known.emptied()
        store(target, known, properties)


def moved(target: DeltaTable, source: DeltaTable, properties: CommitProperties) -> None:
    """Note that a table has the rows of another one, which has its name from here on. So it is met, if no more."""
    known = stored(source) or Stored()
    known.renamed = ""
    store(target, known, properties)


def cured(target: DeltaTable, properties: CommitProperties) -> None:
    """Note that the rows are read again, whatever was lacking."""
    known = stored(target)
    if known is not None and known.lacking:
        known.lacking = ""
        store(target, known, properties)
