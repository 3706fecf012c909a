"""Operations on the fields of a struct that several transforms share, as in Connect's own transforms."""

from __future__ import annotations

from collections.abc import Collection

from tailrace.events.payload import filled
from tailrace.events.records import RecordPart, struct
from tailrace.model.arrow import flags


def with_default(part: RecordPart) -> RecordPart:
    """A field as `Struct.get` reads it: its default in place of null."""
    return RecordPart(part.schema, filled(part.values, part.schema))


def excluding(part: RecordPart, names: Collection[str]) -> RecordPart:
    """A struct without some fields; its schema is required from then on. Null stays as it is, schema included."""
    if part.schema.type != "struct" or not flags(part.values.is_valid()).any():
        return part
    kept = [(name, with_default(field)) for name, field in part.fields() if name not in names]
    return rebuilt(part, kept)


def rebuilt(part: RecordPart, fields: list[tuple[str, RecordPart]]) -> RecordPart:
    """A struct of other fields under the same name, required, as Connect's transforms make them."""
    return struct(part.schema.with_(optional=False, default=None), fields, len(part.values))
