"""Applies a schema change to a replica's columns: renamed ones keep their values, dropped ones are removed."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tailrace.model.schema_change import SchemaChange


@dataclass(frozen=True)
class Reshaping:
    """The columns a target is to have: by name those it has now, and their fields under the new names."""

    names: list[str]
    schema: pa.Schema


def reshaping(target: pa.Schema, change: SchemaChange) -> Reshaping | None:
    """The rewrite that a change asks of a target, None where it has nothing to rewrite.

    A column that already has a new name is removed: it was dropped when nothing reported it. The last columns of
    a table stay, as a Delta table has at least one.
    """
    to = {old: new for old, new in change.renamed if old in target.names}
    gone = ({*change.dropped} | {*to.values()}) - {*to}
    names = [name for name in target.names if name not in gone]
    if not names or (not to and len(names) == len(target.names)):
        return None
    return Reshaping(names, pa.schema([target.field(name).with_name(to.get(name, name)) for name in names]))
