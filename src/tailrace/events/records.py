"""Records as columns, the input of single message transforms. Records with the same schemas are kept together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.events.payload import parse
from tailrace.model.arrow import flags, indices, mask, repeat
from tailrace.model.schema import ConnectSchema, Field

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

ENVELOPE = ".Envelope"


@dataclass(frozen=True)
class RecordPart:
    """A key or a value: a column under one schema. Of `column` and `text` (payloads in JSON) one may be missing."""

    schema: ConnectSchema
    column: pa.Array | None = None
    text: pa.Array | None = None

    @cached_property
    def values(self) -> pa.Array:
        """The column; made from the JSON where there is only that."""
        return parse(self.text, self.schema) if self.column is None else self.column

    @property
    def is_envelope(self) -> bool:
        """Whether these are change events, by the schema's name, as in the reference."""
        return self.schema.name is not None and self.schema.name.endswith(ENVELOPE)

    def has(self, name: str) -> bool:
        """Whether a struct has the field."""
        return any(field.name == name for field in self.schema.fields)

    def field(self, name: str) -> RecordPart:
        """A field of a struct, null where the struct is. Raises KeyError."""
        for index, field in enumerate(self.schema.fields):
            if field.name == name:
                values = self.values
                if values.null_count:
                    return RecordPart(field.schema, values.flatten()[index])
                return RecordPart(field.schema, values.field(index))
        raise KeyError(name)

    def fields(self) -> list[tuple[str, RecordPart]]:
        """All fields of a struct with their names."""
        children = self.values.flatten() if self.values.null_count else None
        return [
            (field.name, RecordPart(field.schema, self.values.field(index) if children is None else children[index]))
            for index, field in enumerate(self.schema.fields)
        ]

    def take(self, places: pa.Array) -> RecordPart:
        """Some of the rows."""
        column = None if self.column is None else self.column.take(places)
        return RecordPart(self.schema, column, None if self.text is None else self.text.take(places))


def struct(
    schema: ConnectSchema, fields: Sequence[tuple[str, RecordPart]], rows: int, absent: pa.Array | None = None
) -> RecordPart:
    """A struct of these fields, with all of `schema` but its fields; null where `absent` says so."""
    given = tuple(Field(name, part.schema) for name, part in fields)
    # The same object where nothing changed: what is made of a schema is remembered by it.
    schema = schema if schema.fields == given else schema.with_(fields=given)
    columns = [part.values for _, part in fields]
    if not fields:
        gone = np.zeros(rows, np.bool_) if absent is None else flags(absent)
        return RecordPart(schema, pa.array([None if each else {} for each in gone], pa.struct([])))
    types = [pa.field(name, column.type) for (name, _), column in zip(fields, columns, strict=True)]
    return RecordPart(schema, pa.StructArray.from_arrays(columns, fields=types, mask=absent))


@dataclass(frozen=True)
class Header:
    """A header: its values by row, or one for all rows (`constant`); `present` is None where every record has it."""

    name: str
    part: RecordPart
    present: Bools | None = None
    constant: bool = False

    @staticmethod
    def of(name: str, schema: ConnectSchema, text: str) -> Header:
        """The same text for every record."""
        return Header(name, RecordPart(schema, repeat(text, 1)), constant=True)

    def take(self, places: Integers) -> Header:
        """The header of some of the rows."""
        part = self.part if self.constant else self.part.take(indices(places))
        return replace(self, part=part, present=None if self.present is None else self.present[places])

    def on(self, rows: int) -> RecordPart:
        """The values by row."""
        return self.part.take(indices(np.zeros(rows, np.int64))) if self.constant else self.part

    def where(self, rows: int) -> Bools:
        """Which records have it."""
        return np.ones(rows, np.bool_) if self.present is None else self.present


@dataclass(frozen=True)
class Records:
    """Records under one key schema and one value schema.

    `order` is their place among all records of the batch; a tombstone's is its delete's plus one. A tombstone has no
    value; a null under a schema is not one. `timestamp` is that of the change; `timed` says that a transform has set
    another, as the reference's records have none before. `offset_entries` are the entries of the reference's partition
    and offset, None where there are none. `shares_headers`: deletes among them have one set of headers
    with their tombstones still, as in the reference until a transform makes new records of them.
    """

    order: Integers
    topic: pa.Array
    partition: pa.Array
    timestamp: pa.Array
    _: KW_ONLY
    key: RecordPart | None
    value: RecordPart | None
    headers: tuple[Header, ...] = ()
    shares_headers: bool = False
    timed: bool = False
    offset_entries: Integers | None = None

    def __len__(self) -> int:
        return len(self.order)

    def with_(self, **changes: Any) -> Records:
        """Copies of the records with some columns changed."""
        return replace(self, **{"shares_headers": False, **changes})

    def adding(self, *headers: Header) -> Records:
        """The same records with more headers, put there in place."""
        return replace(self, headers=self.headers + headers)

    def take(self, places: Integers) -> Records:
        """Some of the records."""
        at = indices(places)
        return replace(
            self,
            order=self.order[places],
            topic=self.topic.take(at),
            partition=self.partition.take(at),
            timestamp=self.timestamp.take(at),
            key=None if self.key is None else self.key.take(at),
            value=None if self.value is None else self.value.take(at),
            headers=tuple(header.take(places) for header in self.headers),
            offset_entries=None if self.offset_entries is None else self.offset_entries[places],
        )

    def split(self, chosen: Bools) -> tuple[Records, Records]:
        """The chosen records, and the others."""
        if chosen.all():
            return self, self.take(np.empty(0, np.int64))
        if not chosen.any():
            return self.take(np.empty(0, np.int64)), self
        return self.take(np.flatnonzero(chosen)), self.take(np.flatnonzero(~chosen))

    def with_value(self) -> tuple[Records, Records]:
        """The records whose value is not null, and the others."""
        if self.value is None:
            return self.split(np.zeros(len(self), np.bool_))
        return self.split(
            np.ones(len(self), np.bool_) if self.value.column is None else flags(self.value.values.is_valid())
        )

    def header(self, name: str) -> Header | None:
        """The first header of that name; None where no record has one."""
        return next((header for header in self.headers if header.name == name), None)


def by_topic(records: Records) -> list[tuple[str, Records]]:
    """The records topic by topic."""
    codes = records.topic.dictionary_encode()
    names = codes.dictionary.to_pylist()
    if len(names) == 1:
        return [(names[0], records)]
    places = codes.indices.to_numpy(zero_copy_only=False)
    return [(name, records.take(np.flatnonzero(places == code))) for code, name in enumerate(names)]


def only(values: pa.Array, chosen: Bools) -> pa.Array:
    """The chosen rows of a column."""
    return values if chosen.all() else values.filter(mask(chosen))
