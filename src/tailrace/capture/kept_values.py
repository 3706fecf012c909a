"""Describes the settings that decide which changes and values of a table are kept, so that others are noticed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.filters import SKIPPED_OPERATIONS, VALUE_LOSS_HANDLING_MODE
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.overrides import overrides
from tailrace.model.change import OPERATIONS
from tailrace.model.native import is_bounded
from tailrace.model.structure import Fact, Structure, digest
from tailrace.model.table import NULL, Column, TableId, TableSchema


class KeptSettings:
    """The settings of a configuration, for descriptions of its tables."""

    def __init__(self, config: Config) -> None:
        self._filter, self._replaced = TableFilter.from_config(config), [*overrides(config)]
        self._skipped = config.get(SKIPPED_OPERATIONS, frozenset())
        self._filters = [step["filter"] for step in json.loads(config.steps) if "filter" in step]
        faults = ",".join(sorted(each.name for each in config[COMPAT_FAULTS]))
        names = f"{COMPAT_FAULTS.name} or {VALUE_LOSS_HANDLING_MODE.name}"
        why = f"{names} was changed, and maybe values with it"
        self._values = Fact(f"{faults} {config.get(VALUE_LOSS_HANDLING_MODE, '')}", why)

    def described(self, structure: Structure, schema: TableSchema) -> Structure:
        """A description with facts: by other settings the table's rows or values were others before."""
        forms = {f"form {structure.columns.get(each.name, each.name)}": _form(each) for each in schema.columns}
        return replace(structure, facts={**structure.facts, **forms, **dict(self._of_table(schema.id))})

    def _of_table(self, table: TableId) -> Iterator[tuple[str, Fact]]:
        """Rows and changes are lost while they are left out, and none where they are from now on."""
        skipped = {*self._skipped, *self._filtered(table)}
        left_out = tuple(1 if each in skipped else 0 for each in OPERATIONS.values())
        yield "skipped", Fact("", "skipped.operations or a filter step left out some of its changes", sizes=left_out)
        is_replaced = any(f".{table}".endswith(f".{name}") for name in self._replaced)
        is_partial = is_replaced or not self._filter.lists(table)
        yield "partial", Fact("", "snapshots did not read all of its rows", sizes=(1 if is_partial else 0,))
        yield "values", self._values

    def _filtered(self, table: TableId) -> Iterator[str]:
        """The operations that filter steps leave out."""
        for each in self._filters:
            chosen = [OPERATIONS.get(name.lower(), name.lower()) for name in each.get("operations") or OPERATIONS]
            tables = each.get("tables") or [".*"]
            matches = any(re.fullmatch(expression, str(table), re.IGNORECASE) for expression in tables)
            yield from (op for op in OPERATIONS.values() if op not in chosen or not matches)


def _form(column: Column) -> Fact:
    """By a mask, a converter or a mode.

    Values are lost while those out of range become null, and none where they do so from now on.
    """
    is_null = column.out_of_range == NULL and is_bounded(column)
    why = f"the settings by which values of {column.name} are kept were changed"
    return Fact(digest(column.form), why, sizes=(1 if is_null else 0,))
