"""Plans the events of a table: keys, headers, tombstones, and where each member of a record comes from.

Each of these rules is written here alone. What writes events follows a plan and decides how values are written:
`record.py` (JSON by columns), `unfold.py` (records for transforms and for all other converters), `shapes.py` (rows of
the shape `event`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.filters import TOMBSTONES_ON_DELETE
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.config.topics import TopicNaming
from tailrace.events.envelope import MESSAGE, Envelope, envelope
from tailrace.model.arrow import flags, indices, literal
from tailrace.model.change import DELETE, PLAIN_KEY
from tailrace.model.schema import Field
from tailrace.model.source import AFTER, BEFORE, SOURCE, SourceBlock
from tailrace.model.table import TableId, TableSchema
from tailrace.version import __version__

Bools = npt.NDArray[np.bool_]

TIME = pa.timestamp("us", "UTC")
# What divides nanoseconds for each clock, of an envelope and of `source`.
CLOCKS = {"ts_ms": 1_000_000, "ts_us": 1000, "ts_ns": 1}
# The headers of the two records of a key change: the delete names the new key, the create the old one.
NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


class Origin(Enum):
    """Where a member of an envelope, or of its `source`, comes from.

    Of an envelope: IMAGE, the row image in a column of the batch; BLOCK, the source block; CLOCK, the time at which the
    event is made. Of `source`: TEXT, the same for all rows of a table; CLOCK, the time of the change (`ts_us`);
    SNAPSHOT, the row's marker as the block's time had it; SEQUENCE, the columns of `SourceBlock.sequence`, null without
    them. Of both: COLUMN, the column of the member's name, in an envelope null where the batch has none.
    """

    IMAGE = "image"
    BLOCK = "block"
    TEXT = "text"
    CLOCK = "clock"
    SNAPSHOT = "snapshot"
    SEQUENCE = "sequence"
    COLUMN = "column"


@dataclass(frozen=True)
class RecordMember:
    """A member of an envelope or of `source`, and where it comes from; `column` is the image's, of an IMAGE."""

    field: Field
    origin: Origin
    column: str = ""


@dataclass(frozen=True)
class OtherKey:
    """The other keys of the key changes in a batch.

    `keys` (a struct of the table's key columns, by row) is null but in `rows`, which says for each header which rows
    have it; a header that no row has is left out.
    """

    keys: pa.StructArray
    rows: Mapping[str, Bools]


class SourcePlan:
    """The members of the `source` of one connector for one logical server."""

    def __init__(self, block: SourceBlock, server: str) -> None:
        self.block = block
        self._texts = {"version": __version__, "connector": block.connector, "name": server}
        self.members = tuple(map(self._member, block.members))

    def texts(self, table: TableId) -> dict[str, str]:
        """The members that are the same for all rows of a table, by name; some may be no members of this block."""
        return {**self._texts, **_parts(table)}

    def _member(self, field: Field) -> RecordMember:
        if field.name in self._texts or field.name in _PARTS:
            return RecordMember(field, Origin.TEXT)
        if field.name in CLOCKS:
            return RecordMember(field, Origin.CLOCK)
        computed = {"snapshot": Origin.SNAPSHOT, "sequence": Origin.SEQUENCE}
        return RecordMember(field, computed.get(field.name, Origin.COLUMN))


_PARTS = ("db", "schema", "table", "collection")


def _parts(table: TableId) -> dict[str, str]:
    """The members of `source` that are parts of a table's name."""
    return dict(zip(_PARTS, (table.database, table.schema, table.table, table.table), strict=True))


@dataclass(frozen=True)
class EventPlan:
    """How changes of one table become events."""

    table: TableSchema
    envelope: Envelope
    has_tombstones: bool

    @property
    def has_headers(self) -> bool:
        """Whether records have headers (those of the run, that of a key change): logical messages have none."""
        return not self.table.id.is_message

    @cached_property
    def members(self) -> tuple[RecordMember, ...]:
        """The members of the envelope, in order."""
        return tuple(map(_member, self.envelope.value.fields))

    @cached_property
    def key(self) -> tuple[tuple[Field, str | None], ...]:
        """The fields of the key with their columns, () without a key.

        A last field without a column has `Envelope.key_extra` as its value.
        """
        schema, extra = self.envelope.key, self.envelope.key_extra
        columns = (*self.table.key, *(() if extra is None else (None,)))
        return () if schema is None else tuple(zip(schema.fields, columns, strict=True))

    def key_columns(self, rows: pa.RecordBatch) -> tuple[str, ...]:
        """The columns of a batch, structs, that keys are in: a row's is in the first that is not null.

        A row where all are null, such as a TRUNCATE, has no key.
        """
        return (AFTER, BEFORE) if rows.schema.get_field_index(PLAIN_KEY) < 0 else (PLAIN_KEY,)

    def key_values(self, keys: pa.StructArray) -> list[pa.Array]:
        """The values of the key's fields, by row; `keys` has the table's key columns, among others."""
        return [
            pa.repeat(literal(self.envelope.key_extra), len(keys)) if name is None else keys.field(name)
            for _, name in self.key
        ]

    def other_key(self, rows: pa.RecordBatch) -> OtherKey | None:
        """The other keys of the rows, None where no row has one."""
        place = rows.schema.get_field_index("other_key")
        if place < 0 or self.envelope.key is None or rows.column(place).null_count == len(rows):
            return None
        keys = rows.column(place)
        is_delete, is_changed = _deletes(rows), flags(keys.is_valid())
        sides = {NEW_KEY: is_changed & is_delete, OLD_KEY: is_changed & ~is_delete}
        return OtherKey(keys, {name: has_it for name, has_it in sides.items() if has_it.any()})

    def tombstones(self, rows: pa.RecordBatch) -> Bools | None:
        """The rows whose record is followed by one of the same key and headers without a value; None if there are none.

        Deletes are, with `tombstones.on.delete`.
        """
        if not self.has_tombstones:
            return None
        deleted = _deletes(rows)
        return deleted if deleted.any() else None


def _member(field: Field) -> RecordMember:
    if field.name in (BEFORE, AFTER, MESSAGE):
        return RecordMember(field, Origin.IMAGE, BEFORE if field.name == BEFORE else AFTER)
    if field.name == SOURCE:
        return RecordMember(field, Origin.BLOCK)
    return RecordMember(field, Origin.CLOCK if field.name in CLOCKS else Origin.COLUMN)


class EventPlans:
    """The plans of tables under one configuration; keep one for a run, it remembers the tables' schemas."""

    def __init__(self, config: Config, block: SourceBlock) -> None:
        self._naming, self._block = TopicNaming(config), block
        self._has_tombstones = config[TOMBSTONES_ON_DELETE]
        self._plans: dict[TableId, EventPlan] = {}
        self.source = SourcePlan(block, config[TOPIC_PREFIX])

    def of(self, table: TableSchema) -> EventPlan:
        """A table's plan. Raises ConfigError when two columns get one field name."""
        plan = self._plans.get(table.id)
        if plan is None or plan.table != table:
            made = envelope(table, self._naming, self._block)
            plan = self._plans[table.id] = EventPlan(table, made, self._has_tombstones)
        return plan


def times(rows: pa.RecordBatch) -> pa.Array:
    """When the changes were made, which are the times of their records (TIME)."""
    return rows.column("ts_us").cast(TIME)


def clock(micros: pa.Array, name: str) -> pa.Array:
    """A clock of `source` (int64) from the microseconds of the changes."""
    if name == "ts_us":
        return micros
    if name == "ts_ns":
        return pc.multiply(micros, pa.scalar(1000, pa.int64()))
    return indices(np.floor_divide(micros.to_numpy(zero_copy_only=False), CLOCKS[name] // 1000))


def _deletes(rows: pa.RecordBatch) -> Bools:
    return flags(pc.equal(rows.column("op"), literal(DELETE)))
