"""Describes the settings that decide how the values of a table's columns are kept, so that others are noticed."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from tailrace.model.native import is_bounded
from tailrace.model.structure import Fact, Structure
from tailrace.model.table import NULL, Column, TableSchema


def with_settings(structure: Structure, schema: TableSchema) -> Structure:
    """A description with a fact for each column: by a mask, a converter or a mode its values were others before."""
    facts = {f"form {structure.columns.get(each.name, each.name)}": _fact(each) for each in schema.columns}
    return replace(structure, facts={**structure.facts, **facts})


def _fact(column: Column) -> Fact:
    """Without the settings themselves, which may have secrets, as the salt of a hash.

    Values are lost while those out of range become null, and none where they do so from now on.
    """
    is_null = column.out_of_range == NULL and is_bounded(column)
    value = hashlib.sha256(column.form.encode()).hexdigest()[:16] if column.form else ""
    why = f"the settings by which values of {column.name} are kept were changed"
    return Fact(value, why, sizes=(1 if is_null else 0,))
