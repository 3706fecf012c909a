"""SchemaChangeEventFilter: drops schema changes of some kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailrace.config.kinds import NAMES
from tailrace.events.records import Records
from tailrace.transforms.settings import Given, setting

KINDS = ("CREATE", "ALTER", "DROP", "TRUNCATE", "DATABASE")
_NAME = "SchemaChangeValue"


_EXCLUDED = setting("schema.change.event.exclude.list", NAMES, required=True)


@dataclass(frozen=True)
class SchemaChangeEventFilter:
    """Looks at each schema change's first table; one that names no table is a change of the database."""

    excluded: frozenset[str]

    @staticmethod
    def of(given: Given) -> SchemaChangeEventFilter:
        """From the transform's settings. Raises SettingsError."""
        kinds = given.read((_EXCLUDED,))[_EXCLUDED]
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise given.problem(_EXCLUDED.name, f"unknown kind {unknown[0]!r}", f"known: {', '.join(KINDS)}")
        return SchemaChangeEventFilter(frozenset(kinds))

    def apply(self, records: Records) -> list[Records]:
        """The records without those changes."""
        value = records.value
        if value is None or not (value.schema.name or "").endswith(_NAME) or not value.has("tableChanges"):
            return [records]
        all_changes = value.field("tableChanges").values.to_pylist()
        kept = [
            changes is not None and (changes[0]["type"] if changes else "DATABASE") not in self.excluded
            for changes in all_changes
        ]
        return [records.split(np.array(kept, np.bool_))[0]]
