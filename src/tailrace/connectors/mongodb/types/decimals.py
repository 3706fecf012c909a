"""Formats Decimal128 as the Java driver does (IEEE 754-2008, binary significand)."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.mongodb.types.layout import Buffer, Flags, Ints
from tailrace.model.arrow import mask

_BIAS = 6176
_SPECIAL, _INFINITE, _LARGE = 0x3 << 61, 0x1E << 58, 0x1F << 58
_WIDE = Context(prec=100, traps=[])
Words = npt.NDArray[np.uint64]


def decimal_text(buffer: Buffer, starts: Ints) -> pa.Array:
    """Decimals as text: `12.50`, `1E+30`, `NaN`, `-Infinity`."""
    low, high = buffer.uint64[starts], buffer.uint64[starts + 8]
    exponents = ((high >> np.uint64(49)) & np.uint64(0x3FFF)).astype(np.int64) - _BIAS
    digits = pc.cast(pa.array(low), pa.string())
    sizes = pc.binary_length(digits).to_numpy()
    special = (high & np.uint64(_SPECIAL)) == np.uint64(_SPECIAL)
    small = (high & np.uint64((1 << 49) - 1)) == 0  # the significand has 64 bits
    # Of these the text is the digits with a point among them; all else is written with an exponent or by name.
    plain = small & ~special & (exponents <= 0) & (exponents >= -18) & (exponents + sizes - 1 >= -6)
    texts = pc.if_else(mask((high >> np.uint64(63)) == 1), pc.binary_join_element_wise("-", digits, ""), digits)
    for exponent in np.unique(exponents[plain & (exponents < 0)]).tolist():
        rows = plain & (exponents == exponent)
        texts = pc.replace_with_mask(texts, mask(rows), _with_point(low[rows], high[rows], -exponent))
    if plain.all():
        return texts
    return pc.replace_with_mask(texts, mask(~plain), _one_by_one(low[~plain], high[~plain]))


def decimal_of(low: int, high: int) -> Decimal:
    """One decimal from its two words."""
    sign = "-" if high >> 63 else ""
    if high & _LARGE == _LARGE:
        return Decimal("NaN")
    if high & _LARGE == _INFINITE:
        return Decimal(sign + "Infinity")
    if high & _SPECIAL == _SPECIAL:  # a significand beyond 34 digits, which counts as zero
        return Decimal(f"{sign}0E{((high >> 47) & 0x3FFF) - _BIAS}")
    significand = (high & ((1 << 49) - 1)) << 64 | low
    return Decimal(f"{sign}{significand}E{((high >> 49) & 0x3FFF) - _BIAS}")


def decimal_column(buffer: Buffer, starts: Ints, kind: pa.DataType) -> tuple[Flags, pa.Array]:
    """Which of the decimals the Arrow type holds exactly, and these."""
    numbers = [_rescaled(decimal_of(*words), kind) for words in zip(*_words(buffer, starts), strict=True)]
    fits = np.array([number is not None for number in numbers], np.bool_)
    return fits, pa.array([number for number in numbers if number is not None], kind)


def _words(buffer: Buffer, starts: Ints) -> tuple[list[int], list[int]]:
    return buffer.uint64[starts].tolist(), buffer.uint64[starts + 8].tolist()


def _rescaled(number: Decimal, kind: pa.DataType) -> Decimal | None:
    """The same number with the scale of the type, None where it is another one then."""
    if not number.is_finite():
        return None
    rescaled = _WIDE.quantize(number, Decimal((0, (1,), -kind.scale))) if number else Decimal(0)
    fits = rescaled == number and abs(number) < Decimal((0, (1,), kind.precision - kind.scale))
    return rescaled if fits else None


def _with_point(low: Words, high: Words, scale: int) -> pa.Array:
    digits = pc.utf8_lpad(pc.cast(pa.array(low), pa.string()), scale + 1, "0")
    sign = pc.if_else(mask((high >> np.uint64(63)) == 1), pa.scalar("-"), pa.scalar(""))
    whole, fraction = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(sign, whole, ".", fraction, "").cast(pa.string())


def _one_by_one(low: Words, high: Words) -> pa.Array:
    texts = [str(decimal_of(*words)) for words in zip(low.tolist(), high.tolist(), strict=True)]
    return pa.array(texts, pa.string())
