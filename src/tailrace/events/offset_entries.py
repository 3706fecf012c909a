"""Counts the entries that the reference's partition and offset of a change have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.records import Integers
from tailrace.model.arrow import flags, literal
from tailrace.model.change import ChangeBatch
from tailrace.model.source import OffsetEntries


def offset_entries(batch: ChangeBatch, entries: OffsetEntries) -> Integers:
    """The entries by row, as far as the change itself shows them.

    A transaction has its id, and a count for each of its tables so far (TransactionContext.store): a row shows whether
    there is one table or more, and more count as two.
    """
    rows = batch.rows
    counts = _of_phases(rows.column("snapshot"), entries)
    source = rows.column("source")
    for name in entries.present:
        values = source.field(source.type.get_field_index(name))
        counts += flags(values.is_valid()) if values.null_count else 1
    transaction = batch.column("transaction")
    if transaction is not None:
        total, of_table = (pc.struct_field(transaction, name) for name in ("total_order", "data_collection_order"))
        several = pc.not_equal(total, of_table).fill_null(False)
        counts += np.where(flags(transaction.is_valid()), 2 + flags(several), 0)
    return counts


def _of_phases(phases: pa.Array, entries: OffsetEntries) -> Integers:
    if phases.null_count == len(phases):
        return np.full(len(phases), entries.streamed, np.int64)
    phases = phases.fill_null(literal("false"))
    streamed, incremental = (flags(pc.equal(phases, literal(name))) for name in ("false", "incremental"))
    counts = np.select([streamed, incremental], [entries.streamed, entries.incremental], entries.snapshot)
    return counts.astype(np.int64)
