"""Protocol of what writes keys or values of records, and the implementation for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tailrace.events.converter import Converter
from tailrace.events.parts import Parts, flat, struct_parts
from tailrace.events.record import KAFKA
from tailrace.events.records import Header, RecordPart
from tailrace.model.text.json import Style, fragment
from tailrace.override import override

Entry = tuple[str, pa.Array]
"""A header's name, and its value (binary) by record."""


class Form(Protocol):
    """How the keys or the values of records are written."""

    @property
    def kind(self) -> pa.DataType:
        """The Arrow type of what is written."""

    def parts(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header] = ()) -> Parts:
        """What to join for each record, of which these are topics and headers. Raises DecodeError and SinkError."""

    def headers(self, part: RecordPart, topics: pa.Array) -> list[Entry]:
        """The headers that the converter adds to each record, in order."""


@dataclass(frozen=True)
class JsonForm(Form):
    """JSON, with or without the schema."""

    converter: Converter
    kind: pa.DataType = KAFKA.field("value").type

    @override
    def parts(self, part: RecordPart, topics: pa.Array, headers: Sequence[Header] = ()) -> Parts:
        left, right = self.converter.wrap(part.schema)
        if part.column is None:
            return [left, part.text, right]
        return flat(left, json_parts(part, self.converter.style), right)

    @override
    def headers(self, part: RecordPart, topics: pa.Array) -> list[Entry]:
        return []


def json_parts(part: RecordPart, style: Style) -> Parts:
    """A column of values as JSON. Raises DecodeError."""
    values = part.values
    if part.schema.type != "struct" or values.null_count:
        return flat(fragment(values, part.schema, style))
    # A struct's fields stay apart until all is joined: one copy of their text less.
    pieces = [fragment(field.values, field.schema, style) for _, field in part.fields()]
    return struct_parts([field.name for field in part.schema.fields], pieces)
