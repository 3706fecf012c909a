"""NUMERIC, MONEY and BYTEA as PostgreSQL prints and declares them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.options.events import DECIMAL_HANDLING_MODE
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.postgres.options import MONEY_FRACTION_DIGITS
from tailrace.connectors.types import decimal
from tailrace.connectors.types.binary import hex_bytes
from tailrace.connectors.value_type import ValueType, as_string
from tailrace.errors import DecodeError
from tailrace.model.schema import ConnectSchema

# Of the server's money, where lc_monetary is C.
_PLACES = 2


def numeric(modifier: int, config: Config) -> ValueType:
    """A NUMERIC column under `decimal.handling.mode`."""
    if modifier < 0:
        return decimal.variable_type(config)
    precision, scale = _declared(modifier, is_signed=Fault.UNSIGNED_SCALES not in config[COMPAT_FAULTS])
    return replace(decimal.fixed_type(precision, scale, config), digits=scale)


def money(config: Config) -> ValueType:
    """A MONEY column: a decimal without precision. Its defaults are not shown."""
    mode = config[DECIMAL_HANDLING_MODE]
    if mode == "string":
        empty = decimal.zero_text(config[MONEY_FRACTION_DIGITS])
        return ValueType(ConnectSchema("string", empty=empty), pa.string(), _money_text, form=mode)
    if mode == "double":
        return replace(decimal.double_type(_money_text, None), form=mode)
    scale = config[MONEY_FRACTION_DIGITS]
    # A value has up to 17 digits before the point and 2 behind it; Arrow does not notice digits that do not fit.
    arrow = pa.decimal128(38, scale) if scale <= 38 - 17 else pa.decimal256(decimal.WIDEST, scale)

    def convert(text: pa.Array) -> pa.Array:
        cents = pc.cast(_money_text(text), pa.decimal128(19, 2))
        # Half up for Java, which is away from zero.
        return pc.cast(pc.round(cents, scale, "half_towards_infinity") if scale < _PLACES else cents, arrow)

    # With fewer places than the server has, values are rounded.
    return ValueType(decimal.decimal_schema(scale), arrow, convert, form="" if scale >= _PLACES else str(scale))


def _declared(modifier: int, *, is_signed: bool) -> tuple[int, int]:
    """Precision and scale of a type modifier, whose scale may be negative."""
    packed = modifier - 4
    scale = packed & 0x7FF
    return (packed >> 16) & 0xFFFF, (scale ^ 1024) - 1024 if is_signed else scale


def _money_text(text: pa.Array) -> pa.Array:
    """`-$1,234.11` or `($1,234.11)` (lc_monetary is C) as `-1234.11`."""
    bare = pc.replace_substring_regex(as_string(text), r"[$,)]", "")
    return pc.replace_substring(bare, "(", "-")


def hex_to_bytes(text: pa.Array) -> pa.Array:
    """BYTEA in hex output (`\\x0aff`) as bytes. Raises DecodeError for anything else."""
    if not pc.all(pc.starts_with(text, "\\x"), min_count=0).as_py():
        raise DecodeError(
            "a BYTEA value is not in hex output",
            remedy="the server ignored bytea_output=hex; check the role's settings",
        )
    return hex_bytes(pc.utf8_slice_codeunits(as_string(text), 2))
