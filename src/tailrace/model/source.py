"""The `source` block of an envelope: which fields a connector adds to the common ones."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.model.schema import Field


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """What one connector's `source` struct looks like.

    The common fields (version, connector, name, ts_ms, snapshot, db, sequence, ts_us, ts_ns) come first, then `fields`
    in order. A field named `schema` or `table` is filled from the batch's table, every other one from the column of
    that name in the batch's `source` struct. `sequence` names the two `source` columns (int64) that the text of
    `source.sequence`, a JSON array of two strings, is made of; None leaves it null.
    `transaction_id` names the `source` columns whose texts, joined by `:`, are the id in a `transaction` block.
    `is_old` stands for records as Debezium 1 wrote them (`compat.version`): no schema versions, no `ts_us` and `ts_ns`,
    a boolean `snapshot`. `has_transaction` tells whether envelopes have the field `transaction`.
    `message_schemas` is what the names of the schemas of logical messages begin with.
    """

    connector: str
    schema_name: str
    fields: tuple[Field, ...]
    sequence: tuple[str, str] | None = None
    transaction_id: tuple[str, ...] = ()
    message_schemas: str = ""
    is_old: bool = False
    has_transaction: bool = True
