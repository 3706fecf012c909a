"""Kafka Connect's TimestampConverter: times as numbers, texts, or Connect's Date, Time and Timestamp."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.kinds import FLAG, TEXT
from tailrace.errors import TransformError
from tailrace.events.records import RecordPart, Records, struct
from tailrace.javalike.date_format import DAY
from tailrace.model.schema import INT64, STRING, ConnectSchema
from tailrace.override import override
from tailrace.transforms.apache import WithNulls, fields_of
from tailrace.transforms.settings import Given, Options, either, setting

_LOGICAL = "org.apache.kafka.connect.data."
_SCHEMAS = {
    "string": STRING,
    "unix": INT64,
    **{
        name: ConnectSchema(kind, name=_LOGICAL + name, version=1)
        for name, kind in (("Date", "int32"), ("Time", "int32"), ("Timestamp", "int64"))
    },
}
# Units of a millisecond: (multiply, divide).
_UNITS = {"seconds": (1, 1000), "milliseconds": (1, 1), "microseconds": (1000, 1), "nanoseconds": (1_000_000, 1)}
_LONGEST = 2**63 - 1


_FIELD = setting("field", TEXT, "")
_TARGET_TYPE = setting("target.type", either(*_SCHEMAS), required=True)
_FORMAT = setting("format", TEXT, "")
_UNIX_PRECISION = setting("unix.precision", either(*_UNITS), "milliseconds")
_REPLACE_NULL_WITH_DEFAULT = setting("replace.null.with.default", FLAG, "true")


class TimestampConverter(WithNulls):
    """Converts a field, or the whole key or value; a null under a schema gets the new schema, too.

    Debezium's own times of 64 bits (MicroTimestamp and others) are plain numbers here, as in Connect.
    """

    OPTIONS: Options = (
        _FIELD,
        _TARGET_TYPE,
        _FORMAT,
        _UNIX_PRECISION,
        _REPLACE_NULL_WITH_DEFAULT,
    )

    def __init__(self, given: Given, key: bool) -> None:
        super().__init__(key)
        config = given.read(self.OPTIONS)
        self.name, self.target = config[_FIELD], config[_TARGET_TYPE]
        self.fill = config[_REPLACE_NULL_WITH_DEFAULT]
        self.unit = _UNITS[config[_UNIX_PRECISION]]
        pattern = config[_FORMAT]
        if self.target == "string" and not pattern.strip():
            raise given.problem("format", "A format is required for the target type string", "write yyyy-MM-dd")
        self.format = given.date_format("format", pattern) if pattern.strip() else None

    @override
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The side with its times converted."""
        if not self.name:
            return self._converted(part, "TimestampConverter")
        where = f"TimestampConverter: {self.name}"
        fields = [
            (name, self._converted(field, where) if name == self.name else field)
            for name, field in fields_of(part, where, self.fill)
        ]
        absent = part.values.is_null()
        return struct(part.schema, fields, len(part.values), absent if absent.true_count else None)

    def _converted(self, part: RecordPart, where: str) -> RecordPart:
        millis = self._millis(part, where)
        return RecordPart(_SCHEMAS[self.target].with_(optional=part.schema.optional), self._made(millis))

    def _millis(self, part: RecordPart, where: str) -> pa.Array:
        """The values in milliseconds since 1970 (int64), by what their schema says."""
        schema, values = part.schema, part.values
        if schema.name == _LOGICAL + "Date":
            return pc.multiply(values.cast(pa.int64()), DAY)
        if schema.name in (_LOGICAL + "Time", _LOGICAL + "Timestamp"):
            return values.cast(pa.int64())
        if schema.type == "int64":
            multiply, divide = self.unit
            return _scaled(values, divide, multiply)
        if schema.type != "string":
            raise TransformError(
                f"{schema.name or schema.type} is no time that Kafka Connect knows",
                where=where,
                remedy="Convert int64, string, or Connect's Date, Time, Timestamp (time.precision.mode=connect).",
            )
        if self.format is None:
            raise TransformError("texts need a format", where=where, remedy="Set the transform's format.")
        try:
            return self.format.parse(values)
        except (ValueError, OverflowError) as error:
            raise TransformError(f"a text does not match the format {self.format.pattern}", where=where) from error

    def _made(self, millis: pa.Array) -> pa.Array:
        if self.target == "string":
            assert self.format is not None
            return self.format.format(millis)
        if self.target == "unix":
            return _scaled(millis, *self.unit)
        if self.target == "Timestamp":
            return millis
        numbers = millis.fill_null(0).to_numpy(zero_copy_only=False)
        made = np.floor_divide(numbers, DAY) if self.target == "Date" else np.mod(numbers, DAY)
        return pa.array(made.astype(np.int32), pa.int32(), mask=millis.is_null().to_numpy(zero_copy_only=False))


def _scaled(values: pa.Array, multiply: int, divide: int) -> pa.Array:
    """As Java's TimeUnit converts: divided towards zero, and at the end of 64 bits where they are exceeded."""
    if divide > 1:
        return pc.divide(values, divide)
    most = _LONGEST // multiply
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    made = np.clip(numbers, -most, most) * multiply
    made[numbers > most], made[numbers < -most] = _LONGEST, -_LONGEST - 1
    return pa.array(made, pa.int64(), mask=values.is_null().to_numpy(zero_copy_only=False))
