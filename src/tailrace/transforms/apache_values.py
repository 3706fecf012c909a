"""Kafka Connect's own transforms MaskField and TimestampRouter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.kinds import FLAG, NAMES, TEXT, optional
from tailrace.errors import TransformError
from tailrace.events.records import RecordPart, Records, struct
from tailrace.javalike.date_format import DateFormat
from tailrace.model.arrow import flags, join, repeat
from tailrace.override import override
from tailrace.transforms.apache import Sided, fields_of
from tailrace.transforms.settings import Given, Options, setting

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_NUMBERS = ("int8", "int16", "int32", "int64", "float", "double")
_ZEROS: dict[str, object] = {"boolean": False, "string": "", "array": [], "map": {}, **dict.fromkeys(_NUMBERS, 0)}


_FIELDS = setting("fields", NAMES, required=True)
_REPLACEMENT = setting("replacement", optional(TEXT))
_REPLACE_NULL_WITH_DEFAULT = setting("replace.null.with.default", FLAG, "true")


class MaskField(Sided):
    """Replaces values by the zero of their type, or numbers and texts by a value given; null stays null."""

    OPTIONS: Options = (
        _FIELDS,
        _REPLACEMENT,
        _REPLACE_NULL_WITH_DEFAULT,
    )

    def __init__(self, given: Given, key: bool) -> None:
        super().__init__(key)
        config = given.read(self.OPTIONS)
        self.names, self.replacement = config[_FIELDS], config[_REPLACEMENT]
        self.fill = config[_REPLACE_NULL_WITH_DEFAULT]
        if self.replacement is not None and not self.replacement:
            raise given.problem("replacement", "A value is required", "leave it out for the zero of each type")

    @override
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The struct with masked fields."""
        fields = [
            (name, self._masked(name, field) if name in self.names else field)
            for name, field in fields_of(part, "MaskField", self.fill)
        ]
        return struct(part.schema, fields, len(part.values))

    def _masked(self, name: str, field: RecordPart) -> RecordPart:
        kind, values = field.schema.type, field.values
        is_decimal = field.schema.name == _DECIMAL
        if self.replacement is None:
            is_maskable = is_decimal or kind in _ZEROS
            mask: object = Decimal(0) if is_decimal else _ZEROS.get(kind)
        else:
            is_maskable = is_decimal or kind in (*_NUMBERS, "string")
            mask = self._given(name, kind, is_decimal) if is_maskable else None
        if not is_maskable:
            what = "with a replacement" if self.replacement is not None else ""
            raise TransformError(
                f"a value of the type {kind} cannot be masked {what}".rstrip(), where=f"MaskField: {name}"
            )
        if pa.types.is_binary(values.type) and isinstance(mask, Decimal):
            raise TransformError("a decimal of more than 76 digits cannot be masked", where=f"MaskField: {name}")
        try:
            masked = pa.array([mask if each else None for each in flags(values.is_valid())], values.type)
        except (OverflowError, pa.ArrowInvalid) as error:
            raise _no_value(self.replacement, kind, name) from error
        return RecordPart(field.schema, masked)

    def _given(self, name: str, kind: str, is_decimal: bool) -> object:
        text = self.replacement or ""
        try:
            if is_decimal:
                return Decimal(text)
            return text if kind == "string" else float(text) if kind in ("float", "double") else int(text)
        except (ValueError, ArithmeticError) as error:
            raise _no_value(text, kind, name) from error


def _no_value(replacement: str | None, kind: str, name: str) -> TransformError:
    return TransformError(f"the replacement {replacement} is no {kind}", where=f"MaskField: {name}")


_TOPIC_FORMAT = setting("topic.format", TEXT, "${topic}-${timestamp}")
_TIMESTAMP_FORMAT = setting("timestamp.format", TEXT, "yyyyMMdd")


@dataclass(frozen=True)
class TimestampRouter:
    """Makes the topic of itself and the record's timestamp in UTC; records without one keep theirs."""

    topic: tuple[str, ...]
    format: DateFormat

    @staticmethod
    def of(given: Given) -> TimestampRouter:
        """From the transform's settings. Raises SettingsError."""
        config = given.read((_TOPIC_FORMAT, _TIMESTAMP_FORMAT))
        pattern = given.date_format(_TIMESTAMP_FORMAT.name, config[_TIMESTAMP_FORMAT])
        return TimestampRouter(tuple(re.split(r"(\$\{(?:topic|timestamp)\})", config[_TOPIC_FORMAT])), pattern)

    def apply(self, records: Records) -> list[Records]:
        """The records under their new topics."""
        moments = pc.floor_temporal(records.timestamp, unit="millisecond").cast(pa.timestamp("ms", "UTC"))
        placeholders = {"${topic}": records.topic, "${timestamp}": self.format.format(moments.cast(pa.int64()))}
        topic = join(repeat("", len(records)), *(placeholders.get(piece, piece) for piece in self.topic))
        return [records.with_(topic=pc.if_else(topic.is_valid(), topic, records.topic))]
