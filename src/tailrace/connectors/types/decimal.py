"""Decimal columns under `decimal.handling.mode`, converted without a loop over rows.

Conversions take plain decimal text (`-12.50`, no exponent), and NaN, Infinity and -Infinity from databases that have
them. A connector that reads decimals in another form keeps the schema and replaces `convert`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.events import DECIMAL_HANDLING_MODE
from tailrace.connectors.lost_values import became_null
from tailrace.connectors.types.binary import bytes_of
from tailrace.connectors.value_type import Convert, ValueType, as_string, is_strict, keeps_all
from tailrace.errors import DecodeError
from tailrace.model.arrow import literal
from tailrace.model.held import held, held_type, without_zeros
from tailrace.model.schema import ConnectSchema, Field

VARIABLE = ConnectSchema(
    "struct",
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
    fields=(Field("scale", ConnectSchema("int32")), Field("value", ConnectSchema("bytes"))),
)
VARIABLE_TYPE = pa.struct([("scale", pa.int32()), ("value", pa.binary())])
# Arrow's widest decimal. Wider columns are held as unscaled bytes.
WIDEST = 76
_SPECIAL = ("NaN", "Infinity", "-Infinity")
_JAVA_NAMES = (("NaN", "NAN"), ("-Infinity", "NEGATIVE_INFINITY"), ("Infinity", "POSITIVE_INFINITY"))


def fixed_type(precision: int, scale: int, config: Config) -> ValueType:
    """A decimal column with a declared precision and scale."""
    mode = config[DECIMAL_HANDLING_MODE]
    if mode != "precise":
        return inexact_type(mode, digits=scale)
    schema, finite = decimal_schema(scale, precision), _finite_only(config)
    kind = _exact_type(schema, precision, scale, finite)
    return _with_others(kind) if keeps_all(config) else kind


def _exact_type(schema: ConnectSchema, precision: int, scale: int, finite: Convert) -> ValueType:
    if precision > WIDEST or not -WIDEST < scale <= WIDEST:
        return ValueType(schema, pa.binary(), lambda text: unscaled_bytes(finite(as_string(text)), scale), "AA==")
    # A narrow decimal of many places cannot be taken out of Arrow again.
    arrow = pa.decimal128(precision, scale) if max(precision, scale) <= 38 else pa.decimal256(precision, scale)
    return ValueType(schema, arrow, lambda text: pc.cast(finite(as_string(text)), arrow), "AA==")


def variable_type(config: Config) -> ValueType:
    """A decimal column whose values have a scale each."""
    mode = config[DECIMAL_HANDLING_MODE]
    if mode != "precise":
        return inexact_type(mode)
    if keeps_all(config):
        return ValueType(ConnectSchema("string"), pa.string(), lambda text: without_zeros(as_string(text)))
    finite = _finite_only(config)
    return ValueType(VARIABLE, VARIABLE_TYPE, lambda text: variable_scale(finite(as_string(text))))


def _with_others(kind: ValueType) -> ValueType:
    """Decimals, and the text of NaN and infinities."""

    def convert(text: pa.Array) -> pa.Array:
        text = as_string(text)
        special = is_special(text)
        others = pc.if_else(special, text, pa.scalar(None, pa.string()))
        return held(kind.convert(pc.if_else(special, pa.scalar(None, pa.string()), text)), others)

    return replace(kind, arrow=held_type(kind.arrow), convert=convert)


def is_special(text: pa.Array) -> pa.Array:
    """Which decimals are no numbers or infinite."""
    return pc.is_in(text, pa.array(_SPECIAL, text.type))


def inexact_type(mode: str, digits: int | None = None) -> ValueType:
    """Decimals as texts or doubles. `digits`: see `string_type`."""
    kind = string_type(digits) if mode == "string" else double_type(as_string, 0.0)
    return replace(kind, form=mode)


def string_type(digits: int | None = None) -> ValueType:
    """Decimals as plain text. `digits` is the declared scale, None if there is none."""
    zero = zero_text(max(1 if digits is None else digits, 0))
    # What an old row lacks has the declared digits; without any it is a whole zero.
    schema = ConnectSchema("string", empty=zero_text(max(digits or 0, 0)))
    return ValueType(schema, pa.string(), lambda text: _java_names(as_string(text)), zero, digits=digits)


def zero_text(digits: int) -> str:
    """Zero with so many digits after the point."""
    return format(Decimal(0).scaleb(-digits), "f")


def double_type(plain: Convert, zero: object) -> ValueType:
    """Decimals as doubles. `plain` makes a column's form into decimal text."""
    return ValueType(
        ConnectSchema("double"),
        pa.float64(),
        lambda text: pc.cast(plain(text), pa.float64()),
        zero,
        loses="digits that a double does not have",
    )


def decimal_schema(scale: int, precision: int | None = None) -> ConnectSchema:
    """The schema of an exact decimal."""
    parameters = [("scale", str(scale))]
    if precision is not None:
        parameters.append(("connect.decimal.precision", str(precision)))
    return ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal", version=1, parameters=tuple(parameters))


def _java_names(text: pa.Array) -> pa.Array:
    special = is_special(text)
    if not pc.any(special).as_py():
        return text
    for printed, java in _JAVA_NAMES:
        text = pc.if_else(pc.equal(text, literal(printed)), literal(java), text)
    return text


def _finite_only(config: Config) -> Callable[[pa.Array], pa.Array]:
    """NaN and infinities, which an exact decimal cannot hold, become null with a warning, or an error if configured."""
    strict = is_strict(config)

    def finite(text: pa.Array) -> pa.Array:
        special = is_special(text)
        if not pc.any(special).as_py():
            return text
        if strict:
            raise DecodeError(
                "NaN and infinity have no exact decimal", remedy="set decimal.handling.mode to double or string"
            )
        became_null(pc.sum(special).as_py(), "NaN or infinite decimals (decimal.handling.mode=precise)")
        return pc.if_else(special, pa.scalar(None, text.type), text)

    return finite


def variable_scale(text: pa.Array) -> pa.StructArray:
    """Decimals as structs of scale and unscaled value; trailing zeros are dropped."""
    trimmed = without_zeros(text)
    point = pc.find_substring(trimmed, ".")
    length = pc.utf8_length(trimmed)
    scale = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(length, point), 1))
    value = integer_bytes(pc.replace_substring(trimmed, ".", ""))
    # The struct itself is null where the value is.
    return pa.StructArray.from_arrays(
        [pc.fill_null(pc.cast(scale, pa.int32()), 0), value], fields=list(VARIABLE_TYPE), mask=pc.is_null(text)
    )


def unscaled_bytes(text: pa.Array, scale: int) -> pa.Array:
    """Decimals too wide for Arrow as unscaled big-endian bytes. Runs once per value; columns this wide are rare.

    A negative scale comes as its 11 bits, as in Debezium: -2 as 2046. Raises DecodeError for an exponent.
    """
    _without_exponent(text, r"^[+-]?[0-9]*\.?[0-9]*$")
    exact = Context(prec=2000)
    shifted = [None if item is None else str(int(exact.scaleb(Decimal(item), scale))) for item in text.to_pylist()]
    return integer_bytes(pa.array(shifted, pa.string()))


def integer_bytes(text: pa.Array) -> pa.Array:
    """Integers in decimal text as minimal big-endian two's-complement bytes. Raises DecodeError for other text."""
    long = pc.fill_null(pc.greater(pc.utf8_length(text), 18), False)
    if not pc.any(long).as_py():
        return int64_bytes(pc.cast(text, pa.int64()))
    short = int64_bytes(pc.cast(pc.if_else(long, pa.scalar(None, text.type), text), pa.int64()))
    printed = text.filter(long)
    _without_exponent(printed, r"^[+-]?[0-9]+$")
    # Through Decimal: Python's int() reads at most 4,300 digits, and decimals can have far more.
    others = [_integer_bytes(int(Decimal(item))) for item in printed.to_pylist()]
    return pc.replace_with_mask(short, long, pa.array(others, pa.binary()))


def _without_exponent(text: pa.Array, pattern: str) -> None:
    """With an exponent a short text would be a number of any length. Raises DecodeError."""
    if not pc.all(pc.match_substring_regex(text, pattern), min_count=0).as_py():
        raise DecodeError("a decimal has other signs than digits")


def _integer_bytes(value: int) -> bytes:
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return value.to_bytes(size, "big", signed=True)


def int64_bytes(values: pa.Array) -> pa.Array:
    """int64 values as minimal big-endian two's-complement bytes, as Java's BigInteger writes them."""
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    magnitude = np.where(numbers >= 0, numbers, ~numbers)
    size = np.ones(len(numbers), np.int64)
    for extra in range(1, 8):
        size += magnitude >= (1 << (8 * extra - 1))
    octets = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    return bytes_of(size, octets[np.arange(8) >= 8 - size[:, None]], values)
