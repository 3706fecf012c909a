"""Kafka Connect's Cast: values as other primitive types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from tailrace.config.faults import Fault
from tailrace.config.kinds import FLAG, NAMES
from tailrace.errors import TransformError
from tailrace.events.payload import array, from_json
from tailrace.events.records import RecordPart, Records, struct
from tailrace.events.value_texts import DECIMAL, value_texts
from tailrace.model.arrow import flags, literal
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.binary import decimal_of
from tailrace.model.text.numbers import decimal_text, scale_of
from tailrace.override import override
from tailrace.transforms.apache import Sided, fields_of
from tailrace.transforms.settings import Given, Options, setting

_LOGICAL = "org.apache.kafka.connect.data."
# Names in `spec`: Connect's type as its JSON converter writes it, and the column's.
_TYPES: dict[str, tuple[str, pa.DataType]] = {
    "int8": ("int8", pa.int8()),
    "int16": ("int16", pa.int16()),
    "int32": ("int32", pa.int32()),
    "int64": ("int64", pa.int64()),
    "float32": ("float", pa.float32()),
    "float64": ("double", pa.float64()),
    "boolean": ("boolean", pa.bool_()),
    "string": ("string", pa.string()),
}
_STRUCTURED = ("array", "map", "struct")
_INTEGER = r"^[+-]?[0-9]+$"
_FRACTION = r"^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"


_SPEC = setting("spec", NAMES, required=True)
_REPLACE_NULL_WITH_DEFAULT = setting("replace.null.with.default", FLAG, "true")


class Cast(Sided):
    """Casts fields of a struct, or the whole key or value, and the defaults of their schemas."""

    OPTIONS: Options = (
        _SPEC,
        _REPLACE_NULL_WITH_DEFAULT,
    )

    def __init__(self, given: Given, key: bool) -> None:
        super().__init__(key)
        config = given.read(self.OPTIONS)
        self.fill, self.lacks_dates = config[_REPLACE_NULL_WITH_DEFAULT], Fault.EARLY_TIMES_WITHOUT_DATE in given.faults
        self.whole: str | None = None
        self.casts: dict[str, str] = {}
        for item in config[_SPEC]:
            *field, kind = (text.strip() for text in item.rstrip(":").split(":"))
            if len(field) > 1:
                raise given.problem("spec", f"Invalid cast: {item}", "write field:type,another:type")
            if kind.lower() not in _TYPES:
                raise given.problem("spec", f"{kind} is no type to cast to", f"the types are {', '.join(_TYPES)}")
            if field:
                self.casts[field[0]] = kind.lower()
            else:
                self.whole = kind.lower()
        if self.whole and len(config[_SPEC]) > 1:
            message = "A type for the entire key or value cannot be given with other casts"
            raise given.problem("spec", message, "give one type, or a field for each type")

    @override
    def of_part(self, part: RecordPart, records: Records) -> RecordPart:
        """The side with its values cast."""
        if self.whole:
            made = _cast(part, self.whole, f"Cast to {self.whole}", self.lacks_dates)
            if (part.schema.name or "").startswith(_LOGICAL):
                return made
            # The schema of a whole key or value keeps its name and what else it says.
            kept = {name: getattr(part.schema, name) for name in ("name", "version", "doc", "parameters")}
            return RecordPart(made.schema.with_(**kept), made.column)
        fields = [
            (name, _cast(field, self.casts[name], f"Cast: {name}", self.lacks_dates) if name in self.casts else field)
            for name, field in fields_of(part, "Cast", self.fill)
        ]
        return struct(part.schema, fields, len(part.values))


def _cast(part: RecordPart, kind: str, where: str, lacks_dates: bool) -> RecordPart:
    """The values, and the schema with its default, as a type of `spec`. Raises TransformError."""
    schema = part.schema
    name, target = _TYPES[kind]
    default = None
    if schema.default is not None:
        value = array([from_json(schema.default, schema)], schema)
        default = _constant(_values(value, schema, target, where, lacks_dates))
    made = _values(part.values, schema, target, where, lacks_dates)
    return RecordPart(ConnectSchema(name, optional=schema.optional, default=default), made)


def _constant(values: pa.Array) -> Any:
    """The one value as a schema has it; a float32 with its own digits."""
    value = values[0].as_py()
    return float(str(np.float32(value))) if pt.is_float32(values.type) else value


def _values(values: pa.Array, schema: ConnectSchema, target: pa.DataType, where: str, lacks_dates: bool) -> pa.Array:
    if values.null_count == len(values):
        return pa.nulls(len(values), target)
    if schema.type in _STRUCTURED:
        raise TransformError(
            f"{schema.type} cannot be cast", where=where, remedy="Leave it out of the transform's spec."
        )
    try:
        if pt.is_string(target):
            return value_texts(values, schema, lacks_dates)
        if schema.name == DECIMAL:
            return _of_decimals(values, schema, target)
        if schema.type == "string":
            return _of_texts(values, target)
        if schema.type != "bytes":
            return _of_numbers(values, target)
    except pa.ArrowInvalid as error:
        raise TransformError(
            f"a value of the type {schema.type} is no {target}, or out of its range", where=where
        ) from error
    raise TransformError("bytes can be cast to string only", where=where)


def _of_decimals(values: pa.Array, schema: ConnectSchema, target: pa.DataType) -> pa.Array:
    if pt.is_floating(target):
        return decimal_text(values, schema).cast(target)
    return _of_numbers(_low_bits(values, schema), target)


def _low_bits(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """The lowest 64 bits of the decimals without their fractions, as BigDecimal.longValue has them."""
    nulls = ~flags(values.is_valid())
    if pt.is_decimal(values.type):
        whole = values.cast(pa.decimal256(76, 0), safe=False)
        words = np.frombuffer(whole.buffers()[1], np.int64).reshape(-1, 4)[whole.offset : whole.offset + len(whole), 0]
        return pa.array(words, pa.int64(), mask=nulls)
    scale = scale_of(schema)
    wholes = [0 if raw is None else int(decimal_of(raw, scale)) for raw in values.to_pylist()]
    return pa.array(np.array([whole % 2**64 for whole in wholes], np.uint64).view(np.int64), pa.int64(), mask=nulls)


def _of_texts(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pt.is_boolean(target):
        return pc.equal(pc.utf8_lower(values), literal("true"))
    if pt.is_floating(target):
        values = pc.replace_substring_regex(values, r"^[\x00-\x20]+|[\x00-\x20]+$", "")
        _all_match(values, _FRACTION)
        return pc.replace_substring_regex(values, r"^\+|[fFdD]$", "").cast(target)
    _all_match(values, _INTEGER)
    return pc.replace_substring_regex(values, r"^\+?(-?)0*([0-9])", r"\1\2").cast(target)


def _all_match(values: pa.Array, pattern: str) -> None:
    if not pc.all(pc.match_substring_regex(values, pattern)).as_py():
        raise pa.ArrowInvalid("a text is no number")


def _of_numbers(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Numbers and booleans as Java narrows them: integers lose their high bits, fractions end at int or long."""
    nulls = ~flags(values.is_valid())
    zero = pa.scalar(False if pt.is_boolean(values.type) else 0, values.type)
    numbers: npt.NDArray[Any] = values.fill_null(zero).to_numpy(zero_copy_only=False)
    if pt.is_floating(values.type) and not pt.is_floating(target):
        wide = 64 if pt.is_int64(target) or pt.is_boolean(target) else 32
        numbers = _saturated(numbers.astype(np.float64), wide)
    with np.errstate(over="ignore"):
        return pa.array(numbers.astype(target.to_pandas_dtype()), target, mask=nulls)


def _saturated(numbers: npt.NDArray[np.float64], bits: int) -> npt.NDArray[np.int64]:
    """Without fractions, NaN as 0, and what is out of the range of so many bits as its nearest end."""
    end = 2 ** (bits - 1)
    high, low = numbers >= end, numbers < -end
    out = np.where(high | low | np.isnan(numbers), 0, numbers).astype(np.int64)
    out[high], out[low] = end - 1, -end
    return out
