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


def with_settings(structure: Structure, schema: TableSchema, config: Config) -> Structure:
    """A description with facts: by other settings the table's rows or values were others before."""
    forms = {f"form {structure.columns.get(each.name, each.name)}": _form(each) for each in schema.columns}
    return replace(structure, facts={**structure.facts, **forms, **dict(_of_table(schema.id, config))})


def _form(column: Column) -> Fact:
    """By a mask, a converter or a mode. Without the settings themselves, which may have secrets, as the salt of a hash.

    Values are lost while those out of range become null, and none where they do so from now on.
    """
    is_null = column.out_of_range == NULL and is_bounded(column)
    why = f"the settings by which values of {column.name} are kept were changed"
    return Fact(digest(column.form), why, sizes=(1 if is_null else 0,))


def _of_table(table: TableId, config: Config) -> Iterator[tuple[str, Fact]]:
    """Settings of a table. Changes are lost while they are left out, and none where they are from now on."""
    skipped = {*config.get(SKIPPED_OPERATIONS, frozenset()), *_filtered(table, config)}
    left_out = tuple(1 if each in skipped else 0 for each in OPERATIONS.values())
    yield "skipped", Fact("", "skipped.operations or a filter step left out some of its changes", sizes=left_out)
    is_partial = (not TableFilter.from_config(config).lists(table)) or any(
        f".{table}".endswith(f".{name}") for name in overrides(config)
    )
    yield "partial", Fact("", "snapshots did not read all of its rows", sizes=(1 if is_partial else 0,))
    faults = ",".join(sorted(each.name for each in config[COMPAT_FAULTS]))
    losses = config.get(VALUE_LOSS_HANDLING_MODE, "")
    names = f"{COMPAT_FAULTS.name} or {VALUE_LOSS_HANDLING_MODE.name}"
    yield "values", Fact(f"{faults} {losses}", f"{names} was changed, and maybe values with it")


def _filtered(table: TableId, config: Config) -> Iterator[str]:
    """The operations that filter steps leave out."""
    for step in json.loads(config.steps):
        settings = step.get("filter", {})
        chosen = [OPERATIONS.get(each.lower(), each.lower()) for each in settings.get("operations") or OPERATIONS]
        tables = settings.get("tables") or [".*"]
        matches = any(re.fullmatch(each, str(table), re.IGNORECASE) for each in tables)
        yield from (each for each in OPERATIONS.values() if each not in chosen or not matches)
