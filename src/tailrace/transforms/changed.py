"""ExtractChangedRecordState: adds the names of changed and of unchanged fields as headers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailrace.config.faults import Fault
from tailrace.config.kinds import TEXT, optional
from tailrace.events.equality import same
from tailrace.events.records import Bools, Header, RecordPart, Records
from tailrace.model.arrow import flags
from tailrace.model.schema import OPTIONAL_STRING, ConnectSchema
from tailrace.transforms.settings import Given, setting

_BITS = "io.debezium.data.Bits"
OPTIONS = (
    _HEADER_CHANGED_NAME := setting("header.changed.name", optional(TEXT)),
    _HEADER_UNCHANGED_NAME := setting("header.unchanged.name", optional(TEXT)),
)


@dataclass(frozen=True)
class ExtractChangedRecordState:
    """Compares `before` and `after` column by column. Both lists are empty where one of the two is missing.

    With `differs_always` bit strings have always changed: the reference compares them by Java's identity.
    """

    changed: str | None
    unchanged: str | None
    differs_always: bool = False

    @staticmethod
    def of(given: Given) -> ExtractChangedRecordState:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        names = [config[option] for option in OPTIONS]
        changed, unchanged = (name if name and name.strip() else None for name in names)
        return ExtractChangedRecordState(changed, unchanged, Fault.UNEQUAL_BITS in given.faults)

    def added(self, records: Records) -> tuple[Header, ...]:
        """The headers of change events."""
        if records.value is None or not records.value.is_envelope or not (self.changed or self.unchanged):
            return ()
        if not (records.value.has("before") and records.value.has("after")):
            return ()
        before, after = records.value.field("before"), records.value.field("after")
        compared = flags(before.values.is_valid()) & flags(after.values.is_valid())
        differ = np.zeros((len(records), len(after.schema.fields)), np.bool_)
        if compared.any():
            olds = dict(before.fields())
            for index, (name, part) in enumerate(after.fields()):
                differ[:, index] = self._differ(olds[name], part)
        names = pa.array([field.name for field in after.schema.fields], pa.string())
        sides = ((self.changed, differ), (self.unchanged, ~differ))
        return tuple(_header(name, names, chosen & compared[:, None]) for name, chosen in sides if name)

    def _differ(self, old: RecordPart, new: RecordPart) -> Bools:
        differ = ~same(old.values, new.values, new.schema)
        return differ | flags(new.values.is_valid()) if self.differs_always and new.schema.name == _BITS else differ

    def apply(self, records: Records) -> list[Records]:
        """The records as they are: the headers are added in place."""
        return [records]


def _header(name: str, fields: pa.Array, chosen: Bools) -> Header:
    """A header that lists the fields chosen in each row."""
    items = fields.take(pa.array(np.nonzero(chosen)[1], pa.int64()))
    offsets = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32)
    schema = ConnectSchema("array", optional=True, name=name, items=OPTIONAL_STRING)
    return Header(name, RecordPart(schema, pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)))
