"""EnforceRecordSize: shortens long texts and binary values of rows whose record is too large."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.kinds import COUNT, POSITIVE_INT, TEXT
from tailrace.events.records import Integers, RecordPart, Records, struct
from tailrace.model.arrow import flags, indices, mask
from tailrace.model.schema import Field
from tailrace.model.source import AFTER, BEFORE
from tailrace.transforms.fields import with_default
from tailrace.transforms.record_size import record_sizes, require_struct_key
from tailrace.transforms.settings import Given, setting

OPTIONS = (
    _MAX_BYTES := setting("max.bytes", POSITIVE_INT, required=True),
    _COMPRESSION_RATIO := setting("compression.ratio", TEXT, "1.0"),
    _MIN_FIELD_SIZE := setting("min.field.size", COUNT, "25000"),
)
_WHERE = "EnforceRecordSize"
_RATIO = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BEYOND_BMP = "[\U00010000-\U0010ffff]"
_INT, _LONG = 2**31 - 1, 2.0**62
# Numbers and bits, which mean something else when they are shortened. The reference stops with an error at these.
_WHOLE = ("org.apache.kafka.connect.data.Decimal", "io.debezium.data.Bits")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EnforceRecordSize:
    """Shortens the fields of `before` and `after` in proportion to their lengths, by what the record has too much.

    Columns are measured, and only values that are shortened are taken one by one.
    """

    most: int
    ratio: float
    least: int

    @staticmethod
    def of(given: Given) -> EnforceRecordSize:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        text = config[_COMPRESSION_RATIO].strip()
        ratio = float(text) if _RATIO.fullmatch(text) else 0.0
        if not 0 < ratio < float("inf"):
            raise given.problem("compression.ratio", "Must be a positive number", "write a ratio such as 0.5")
        return EnforceRecordSize(config[_MAX_BYTES], ratio, config[_MIN_FIELD_SIZE])

    def apply(self, records: Records) -> list[Records]:
        """Records of at most that size, as far as shortening helps; others, tombstones among them, as they are."""
        value = records.value
        if value is None or value.schema.type != "struct" or not len(records):
            return [records]
        require_struct_key(records, _WHERE)
        if not any(_is_row(field) for field in value.schema.fields):
            return [records]
        sizes = np.minimum(np.ceil(record_sizes(records) * self.ratio), _LONG).astype(np.int64)
        over = (sizes > self.most) & flags(value.values.is_valid())
        if not over.any():
            return [records]
        large, rest = records.split(over)
        return [group for group in (*self._shortened(large, sizes[over] - self.most), rest) if len(group)]

    def _shortened(self, records: Records, excess: Integers) -> Iterator[Records]:
        """New records of those that have something to shorten, and the others."""
        assert records.value is not None
        rows = {
            name: _Row.of(part, self.least)
            for name, part in records.value.fields()
            if _is_row(Field(name, part.schema))
        }
        total = sum((row.total for row in rows.values()), np.zeros(len(records), np.int64))
        fields = [
            (name, rows[name].without(_share(rows[name].total, total, excess)) if name in rows else part)
            for name, part in records.value.fields()
        ]
        yield records.with_(value=struct(records.value.schema, fields, len(records))).split(total > 0)[0]
        yield records.split(total > 0)[1]


def _is_row(field: Field) -> bool:
    return field.name in (BEFORE, AFTER) and field.schema.type == "struct"


@dataclass(frozen=True)
class _Row:
    """A row image, with the lengths of its fields that may be shortened: 0 where they may not."""

    part: RecordPart
    lengths: dict[str, Integers]
    total: Integers

    @staticmethod
    def of(part: RecordPart, least: int) -> _Row:
        is_present = flags(part.values.is_valid())
        lengths = {
            name: np.where(is_present & (sizes > least), sizes, 0)
            for name, field in part.fields()
            if (sizes := _length(with_default(field))) is not None
        }
        return _Row(part, lengths, sum(lengths.values(), np.zeros(len(is_present), np.int64)))

    def without(self, excess: Integers) -> RecordPart:
        """The image with that much less, spread over its fields."""
        if not self.total.any():
            return self.part
        fields = []
        for name, field in self.part.fields():
            lengths = self.lengths.get(name)
            if lengths is not None and lengths.any():
                removed = np.minimum(_share(lengths, self.total, excess), _INT)
                field = _cut(with_default(field), lengths > 0, np.maximum(lengths - removed, 0))
            fields.append((name, field))
        absent = self.part.values.is_null()
        return struct(self.part.schema, fields, len(self.total), absent if absent.true_count else None)


def _share(part: Integers, total: Integers, excess: Integers) -> Integers:
    """The part's share of the excess, rounded up: in double precision and in this order, as in the reference."""
    proportion: Floats = np.divide(part, total, out=np.zeros(len(total)), where=total > 0)
    return np.ceil(proportion * excess).astype(np.int64)


def _length(field: RecordPart) -> Integers | None:
    """Lengths of texts in UTF-16, as Java counts, or of bytes; None for other types. Null has 0."""
    values = field.values
    if field.schema.type == "string":
        lengths = pc.utf8_length(values)
        if not pc.all(pc.equal(lengths, pc.binary_length(values)), min_count=0).as_py():
            lengths = pc.add(lengths, pc.count_substring_regex(values, _BEYOND_BMP))
    elif field.schema.type == "bytes" and field.schema.name not in _WHOLE:
        lengths = pc.binary_length(values)
    else:
        return None
    numbers: Integers = lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _cut(field: RecordPart, chosen: npt.NDArray[np.bool_], lengths: Integers) -> RecordPart:
    """The field with the chosen values shortened to these lengths."""
    values = field.values
    long = values.take(indices(np.flatnonzero(chosen))).to_pylist()
    short = [_prefix(value, length) for value, length in zip(long, lengths[chosen].tolist(), strict=True)]
    return RecordPart(field.schema, pc.replace_with_mask(values, mask(chosen), pa.array(short, values.type)))


def _prefix(value: Any, length: int) -> Any:
    """The beginning of a text or of bytes. Of a surrogate pair that would be split nothing is left."""
    if isinstance(value, bytes) or value.isascii():
        return value[:length]
    return value.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "ignore")
