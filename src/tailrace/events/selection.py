"""Selects the changes that become events: drops skipped operations, and updates that change nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.options.filters import SKIP_MESSAGES_WITHOUT_CHANGE, SKIPPED_OPERATIONS
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.events.equality import same
from tailrace.events.payload import required
from tailrace.model.arrow import flags, literal, mask
from tailrace.model.change import UPDATE, ChangeBatch


def select(batch: ChangeBatch, config: Config) -> ChangeBatch:
    """The batch without the operations that `skipped.operations` names; reads always stay."""
    skipped = config[SKIPPED_OPERATIONS]  # some of c, u, d, t; empty for `none`
    if not skipped:
        return batch
    return _kept(batch, flags(pc.invert(pc.is_in(batch.rows.column("op"), pa.array(skipped, pa.string())))))


def without_unchanged(batch: ChangeBatch, config: Config) -> ChangeBatch:
    """The batch without updates that change nothing, as far as `skip.messages.without.change` says so."""
    has_zeros = Fault.ZERO_OLD_VALUES in config[COMPAT_FAULTS]
    return _changing(batch, has_zeros=has_zeros) if config[SKIP_MESSAGES_WITHOUT_CHANGE] else batch


def without_hidden_changes(batch: ChangeBatch, config: Config) -> ChangeBatch:
    """A fault of the reference engine: with `skip.messages.without.change` it compares event values alone.

    So an update that changes nothing but key columns that are excluded from values is left out.
    """
    if not config[SKIP_MESSAGES_WITHOUT_CHANGE] or len(batch.table.value_columns) == len(batch.table.columns):
        return batch
    return _changing(batch, only_shown=True, has_zeros=True)


def _changing(batch: ChangeBatch, *, only_shown: bool = False, has_zeros: bool = False) -> ChangeBatch:
    """Without updates whose images are equal, large values that the log did not repeat counting as equal.

    With `has_zeros` a required value that the log lacks counts as the default or zero of its type, but for bytes.
    """
    before, after = batch.rows.column("before"), batch.rows.column("after")
    update = flags(pc.equal(batch.rows.column("op"), literal(UPDATE)))
    compared = update & flags(before.is_valid()) & flags(after.is_valid())
    if not compared.any():
        return batch
    places = np.flatnonzero(compared)
    old, new = before.filter(mask(compared)), after.filter(mask(compared))
    unchanged = batch.column("unchanged")
    marks = None if unchanged is None else unchanged.filter(mask(compared))
    alike = np.ones(len(places), np.bool_)
    for index, column in enumerate(batch.table.columns):
        if only_shown and not column.in_value:
            continue
        values = old.field(index)
        if has_zeros and column.schema.type != "bytes":
            values = required(values, column.schema)
        equal = same(values, new.field(index), column.schema)
        at = -1 if marks is None else marks.type.get_field_index(column.name)
        if marks is not None and at >= 0:
            equal |= flags(marks.field(at).fill_null(pa.scalar(False, pa.bool_())))
        alike &= equal
    keep = np.ones(len(batch), np.bool_)
    keep[places[alike]] = False
    return _kept(batch, keep)


def _kept(batch: ChangeBatch, keep: npt.NDArray[np.bool_]) -> ChangeBatch:
    return batch if keep.all() else batch.with_rows(batch.rows.filter(mask(keep)))
