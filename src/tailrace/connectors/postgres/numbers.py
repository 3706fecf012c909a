"""NUMERIC, MONEY and BYTEA: from text to decimals and bytes, without a loop over rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.errors import DecodeError
from tailrace.events.encode.arrow import literal
from tailrace.model.schema import ConnectSchema, Field

log = logging.getLogger(__name__)

Numeric = tuple[ConnectSchema, pa.DataType, Callable[[pa.Array], pa.Array], object]

VARIABLE = ConnectSchema(
    "struct",
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
    fields=(Field("scale", ConnectSchema("int32")), Field("value", ConnectSchema("bytes"))),
)
VARIABLE_TYPE = pa.struct([("scale", pa.int32()), ("value", pa.binary())])
# Arrow's widest decimal; wider columns are held as variable-scale text would be, in bytes.
_WIDEST = 76
_SPECIAL = ("NaN", "Infinity", "-Infinity")
_JAVA_NAMES = (("NaN", "NAN"), ("-Infinity", "NEGATIVE_INFINITY"), ("Infinity", "POSITIVE_INFINITY"))


def numeric(name: str, modifier: int, config: Config) -> Numeric:
    """How a NUMERIC or MONEY column is read under `decimal.handling.mode`: schema, Arrow type, conversion, zero."""
    mode = config.text("decimal.handling.mode")
    if name == "money":
        return _money(mode, config)
    variable = modifier < 0
    precision, scale = (0, 1) if variable else _declared(modifier, config.flag("compat.faults"))
    if mode == "string":
        zero = format(Decimal(0).scaleb(-max(scale, 0)), "f")
        return ConnectSchema("string"), pa.string(), lambda text: _java_names(_as_string(text)), zero
    if mode == "double":
        return _double(_as_string, 0.0)
    finite = _finite_only(config)
    if variable:
        return VARIABLE, VARIABLE_TYPE, lambda text: variable_scale(finite(_as_string(text))), None
    schema = _decimal(("scale", str(scale)), ("connect.decimal.precision", str(precision)))
    if precision > _WIDEST or not -_WIDEST < scale <= _WIDEST:
        return schema, pa.binary(), lambda text: unscaled_bytes(finite(_as_string(text)), scale), "AA=="
    # A narrow decimal of many places cannot be taken out of Arrow again.
    kind = pa.decimal128(precision, scale) if max(precision, scale) <= 38 else pa.decimal256(precision, scale)
    return schema, kind, lambda text: pc.cast(finite(_as_string(text)), kind), "AA=="


def _money(mode: str, config: Config) -> Numeric:
    """MONEY: a decimal without precision. Its defaults are not shown."""
    if mode == "string":
        return ConnectSchema("string"), pa.string(), _money_text, None
    if mode == "double":
        return _double(_money_text, None)
    scale = config.number("money.fraction.digits")
    # A value has up to 17 digits before the point and 2 behind it; Arrow does not notice digits that do not fit.
    kind = pa.decimal128(38, scale) if scale <= 38 - 17 else pa.decimal256(_WIDEST, scale)

    def convert(text: pa.Array) -> pa.Array:
        cents = pc.cast(_money_text(text), pa.decimal128(19, 2))
        # Half up for Java, which is away from zero.
        return pc.cast(pc.round(cents, scale, "half_towards_infinity") if scale < 2 else cents, kind)

    return _decimal(("scale", str(scale))), kind, convert, None


def _double(plain: Callable[[pa.Array], pa.Array], zero: object) -> Numeric:
    return ConnectSchema("double"), pa.float64(), lambda text: pc.cast(plain(text), pa.float64()), zero


def _decimal(*parameters: tuple[str, str]) -> ConnectSchema:
    return ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal", version=1, parameters=parameters)


def scale_of(modifier: int, config: Config) -> int:
    """The declared scale of a NUMERIC."""
    return _declared(modifier, config.flag("compat.faults"))[1]


def _declared(modifier: int, faults: bool) -> tuple[int, int]:
    """Precision and scale of a type modifier; the reference engine reads a negative scale as 2048 - n."""
    packed = modifier - 4
    scale = packed & 0x7FF
    return (packed >> 16) & 0xFFFF, scale if faults else (scale ^ 1024) - 1024


def _as_string(text: pa.Array) -> pa.Array:
    return text if text.type == pa.string() else pc.cast(text, pa.string())


def _money_text(text: pa.Array) -> pa.Array:
    """`-$1,234.11` or `($1,234.11)` (lc_monetary is C) as `-1234.11`."""
    bare = pc.replace_substring_regex(_as_string(text), r"[$,)]", "")
    return pc.replace_substring(bare, "(", "-")


def _java_names(text: pa.Array) -> pa.Array:
    special = pc.is_in(text, pa.array(_SPECIAL, text.type))
    if not pc.any(special).as_py():
        return text
    for printed, java in _JAVA_NAMES:
        text = pc.if_else(pc.equal(text, literal(printed)), literal(java), text)
    return text


def _finite_only(config: Config) -> Callable[[pa.Array], pa.Array]:
    """NaN and infinities have no place in a decimal: null with a warning, or an error if so configured."""
    strict = config.text("event.converting.failure.handling.mode") == "fail"

    def finite(text: pa.Array) -> pa.Array:
        special = pc.is_in(text, pa.array(_SPECIAL, text.type))
        if not pc.any(special).as_py():
            return text
        if strict:
            raise DecodeError(
                "NaN and infinity have no exact decimal", remedy="set decimal.handling.mode to double or string"
            )
        log.warning(
            "%d NaN or infinite NUMERIC values become null under decimal.handling.mode=precise", pc.sum(special).as_py()
        )
        return pc.if_else(special, pa.scalar(None, text.type), text)

    return finite


def variable_scale(text: pa.Array) -> pa.StructArray:
    """NUMERIC without a declared scale as structs of scale and unscaled value; trailing zeros are dropped."""
    fraction = pc.match_substring(text, ".")
    trimmed = pc.if_else(fraction, pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), "."), text)
    point = pc.find_substring(trimmed, ".")
    length = pc.utf8_length(trimmed)
    scale = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(length, point), 1))
    value = integer_bytes(pc.replace_substring(trimmed, ".", ""))
    # The struct itself is null where the value is.
    return pa.StructArray.from_arrays(
        [pc.fill_null(pc.cast(scale, pa.int32()), 0), value], fields=list(VARIABLE_TYPE), mask=pc.is_null(text)
    )


def unscaled_bytes(text: pa.Array, scale: int) -> pa.Array:
    """Decimals too wide for Arrow as unscaled big-endian bytes. Runs once per value; columns this wide are rare."""
    exact = Context(prec=2000)
    shifted = [None if item is None else str(int(exact.scaleb(Decimal(item), scale))) for item in text.to_pylist()]
    return integer_bytes(pa.array(shifted, pa.string()))


def integer_bytes(text: pa.Array) -> pa.Array:
    """Integers in decimal text as minimal big-endian two's-complement bytes."""
    long = pc.fill_null(pc.greater(pc.utf8_length(text), 18), False)
    if not pc.any(long).as_py():
        return int64_bytes(pc.cast(text, pa.int64()))
    short = int64_bytes(pc.cast(pc.if_else(long, pa.scalar(None, text.type), text), pa.int64()))
    # By way of Decimal, for Python's int() reads at most 4,300 digits, and NUMERIC has up to 131,072.
    others = [_integer_bytes(int(Decimal(item))) for item in text.filter(long).to_pylist()]
    return pc.replace_with_mask(short, long, pa.array(others, pa.binary()))


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


def bytes_of(sizes: npt.NDArray[np.integer[Any]], octets: npt.NDArray[np.uint8], like: pa.Array) -> pa.Array:
    """A binary array of values of those sizes, standing one after another in `octets`; null where `like` is."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    result = pa.Array.from_buffers(pa.binary(), len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(octets)])
    return result if like.null_count == 0 else pc.if_else(pc.is_valid(like), result, pa.scalar(None, pa.binary()))


_HEX: npt.NDArray[np.uint8] = np.full(256, 255, np.uint8)
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    _HEX[list(_digits)] = range(16)


def hex_to_bytes(text: pa.Array) -> pa.Array:
    """BYTEA in hex output (`\\x0aff`) as bytes. Raises DecodeError for anything else."""
    if not pc.all(pc.starts_with(text, "\\x"), min_count=0).as_py():
        raise DecodeError(
            "a BYTEA value is not in hex output",
            remedy="the server ignored bytea_output=hex; check the role's settings",
        )
    return hex_bytes(pc.utf8_slice_codeunits(_as_string(text), 2))


def hex_bytes(digits: pa.Array) -> pa.Array:
    """Pairs of hex digits as bytes. Raises DecodeError for anything else."""
    _, offsets_buffer, data = digits.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[digits.offset : digits.offset + len(digits) + 1]
    nibbles: npt.NDArray[np.uint8] = _HEX[np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]]
    if (nibbles > 15).any() or ((offsets - offsets[0]) % 2).any():
        raise DecodeError("a value holds something other than pairs of hex digits")
    return bytes_of(np.diff(offsets) // 2, nibbles[0::2] * np.uint8(16) + nibbles[1::2], digits)
