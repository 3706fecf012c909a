"""PartitionRouting: chooses the partition by the hash of fields of the event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.kinds import NAMES, POSITIVE_INT, TEXT
from tailrace.errors import TransformError
from tailrace.events.records import Bools, Integers, RecordPart, Records
from tailrace.javalike.murmur import java, murmur
from tailrace.model.arrow import flags, indices, literal, mask
from tailrace.model.change import DELETE
from tailrace.transforms.fields import with_default
from tailrace.transforms.settings import Given, setting
from tailrace.transforms.transform import require, texts

OPTIONS = (
    _PARTITION_PAYLOAD_FIELDS := setting("partition.payload.fields", NAMES, required=True),
    _PARTITION_TOPIC_NUM := setting("partition.topic.num", POSITIVE_INT, required=True),
    # Any word but murmur means java, as in the reference.
    _PARTITION_HASH_FUNCTION := setting("partition.hash.function", TEXT, "java"),
)
_LARGEST = 0x7FFFFFFF
# Truncates and logical messages keep their partition.
_OTHERS = ("t", "m")


@dataclass(frozen=True)
class PartitionRouting:
    """Sums the hashes of the fields that are there. Hashes each different value of a field once, in Python."""

    fields: tuple[tuple[str, ...], ...]
    partitions: int
    murmur: bool

    @staticmethod
    def of(given: Given) -> PartitionRouting:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        return PartitionRouting(
            tuple(tuple(name.strip() for name in path.split(".")) for path in config[_PARTITION_PAYLOAD_FIELDS]),
            config[_PARTITION_TOPIC_NUM],
            config[_PARTITION_HASH_FUNCTION].strip().lower() == "murmur",
        )

    def apply(self, records: Records) -> list[Records]:
        """Change events with their partition; others, and events that have none of the fields, as they are."""
        events, nulls = records.with_value()
        if not len(events) or events.value is None or not events.value.is_envelope:
            return [records]
        op = texts(require(events.value, "op", "PartitionRouting"), "op")
        total, has_partition = np.zeros(len(events), np.int64), np.zeros(len(events), np.bool_)
        for path in self.fields:
            hashes, present = self._hashes(events.value, path, flags(pc.equal(op, literal(DELETE))))
            total += hashes
            has_partition |= present
        has_partition &= ~flags(pc.is_in(op, pa.array(_OTHERS, pa.string())))
        number = total & _LARGEST
        number = np.where(number == _LARGEST, 0, number) % self.partitions
        partition = pc.if_else(mask(has_partition), indices(number).cast(pa.int32()), events.partition)
        return [events.with_(partition=partition), nulls]

    def _hashes(self, envelope: RecordPart, path: tuple[str, ...], deleted: Bools) -> tuple[Integers, Bools]:
        """The hashes of a field and which records have it; `change` is the old row of a delete, else the new one."""
        if "change" in path[:-1]:
            at = path.index("change")
            old, old_there = self._hashes(envelope, (*path[:at], "before", *path[at + 1 :]), deleted)
            new, new_there = self._hashes(envelope, (*path[:at], "after", *path[at + 1 :]), deleted)
            return np.where(deleted, old, new), np.where(deleted, old_there, new_there)
        part = envelope
        for name in path:
            if part.schema.type != "struct" or not part.has(name):
                return np.zeros(len(deleted), np.int64), np.zeros(len(deleted), np.bool_)
            owner, part = part, with_default(part.field(name))
        present = flags(part.values.is_valid()) & flags(owner.values.is_valid())
        return self._of_values(part, ".".join(path)) * present, present

    def _of_values(self, part: RecordPart, path: str) -> Integers:
        if part.values.null_count == len(part.values):
            return np.zeros(len(part.values), np.int64)
        hash_of = murmur if self.murmur else java
        try:
            if pa.types.is_nested(part.values.type):
                raise ValueError(f"a value of type {part.schema.type} has no hash that is the same everywhere")
            codes = part.values.dictionary_encode()
            hash_codes = [
                0 if value is None else hash_of(value, part.schema.type) for value in codes.dictionary.to_pylist()
            ]
        except ValueError as error:
            raise TransformError(str(error), where=f"partition.payload.fields: {path}") from error
        hashes: Integers = np.array([*hash_codes, 0], np.int64)[codes.indices.fill_null(len(hash_codes)).to_numpy()]
        return hashes
