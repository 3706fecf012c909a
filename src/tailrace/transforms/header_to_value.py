"""HeaderToValue: copies or moves headers into the value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.config.kinds import NAMES
from tailrace.errors import TransformError
from tailrace.events.records import Header, RecordPart, Records, struct
from tailrace.model.schema import ConnectSchema
from tailrace.transforms.fields import with_default
from tailrace.transforms.settings import Given, either, setting

OPTIONS = (
    _HEADERS := setting("headers", NAMES, required=True),
    _FIELDS := setting("fields", NAMES, required=True),
    _OPERATION := setting("operation", either("move", "copy"), required=True),
)

Entry = tuple[tuple[str, ...], RecordPart]


@dataclass(frozen=True)
class HeaderToValue:
    """Puts each header into the field at the same place of the list; `a.b` is field b of the struct a."""

    names: tuple[str, ...]
    fields: tuple[tuple[str, ...], ...]
    move: bool

    @staticmethod
    def of(given: Given) -> HeaderToValue:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        headers, fields = config[_HEADERS], config[_FIELDS]
        if len(headers) != len(fields):
            message = "'fields' config must have the same number of elements as 'headers' config."
            raise given.problem("fields", message)
        paths = tuple(tuple(field.split(".")) for field in fields)
        return HeaderToValue(headers, paths, config[_OPERATION] == "move")

    def apply(self, records: Records) -> list[Records]:
        """The records by which of the headers they have; tombstones and those without any stay."""
        events, nulls = records.with_value()
        used = [header for header in events.headers if header.name in self.names]
        if not len(events) or not used:
            return [records]
        present = np.stack([header.where(len(events)) for header in used], axis=1)
        kinds, codes = np.unique(present, axis=0, return_inverse=True)
        groups = [events.take(np.flatnonzero(codes.reshape(-1) == code)) for code in range(len(kinds))]
        return [nulls, *(self._with_fields(group) for group in groups)]

    def _with_fields(self, records: Records) -> Records:
        value, count = records.value, len(records)
        used = [header for header in records.headers if header.name in self.names and header.where(count).all()]
        if value is None or not used:
            return records
        if value.schema.type != "struct":
            raise TransformError(f"the value is {value.schema.type}, not a struct", where="HeaderToValue")
        entries = [(self.fields[self.names.index(header.name)], header.on(count)) for header in used]
        kept: Sequence[Header] = records.headers
        if self.move:
            kept = [header for header in records.headers if header.name not in self.names]
        return records.with_(value=_merged(value, entries), headers=tuple(kept))


def _merged(part: RecordPart, entries: Sequence[Entry]) -> RecordPart:
    """A struct with more fields: those of its own first, then fields that do not exist in it, then new structs."""
    fields = {name: with_default(field) for name, field in part.fields()}
    rows, absent = len(part.values), part.values.is_null()
    direct = {path[0]: field for path, field in entries if len(path) == 1}
    nested: dict[str, list[Entry]] = {}
    for path, field in entries:
        if len(path) > 1:
            nested.setdefault(path[0], []).append((path[1:], field))
    for name in [name for name in nested if name in fields]:
        if fields[name].schema.type != "struct":
            raise TransformError(
                f"Field '{name}' is a primitive type, not a struct. Cannot add a nested field.", where="HeaderToValue"
            )
        fields[name] = _merged(fields[name], nested.pop(name))
    for name, field in direct.items():
        own = fields.get(name)
        if own is not None and own.schema.type != field.schema.type:
            raise TransformError(f"field {name!r} is there with another type", where="HeaderToValue")
        fields[name] = field if own is None else RecordPart(own.schema, field.values)
    for name, inner in nested.items():
        empty = struct(ConnectSchema("struct", optional=True), [], rows)
        fields[name] = RecordPart((made := _merged(empty, inner)).schema.with_(optional=True), made.values)
    schema = part.schema.with_(optional=False, default=None)
    return struct(schema, list(fields.items()), rows, absent if absent.true_count else None)
