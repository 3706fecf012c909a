"""Bit strings against a plain model of java.util.BitSet.toByteArray."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tailrace.connectors.postgres.types import bits
from tailrace.errors import DecodeError
from tests.unit.postgres.test_values import kind, read


def model(text: str) -> bytes:
    """The bit strings' last digit is bit 0 of the first byte; zero bytes at the end are left out."""
    octets = bytearray((len(text) + 7) // 8)
    for place, digit in enumerate(reversed(text)):
        octets[place // 8] |= (digit == "1") << place % 8
    return bytes(octets).rstrip(b"\0")


@given(st.lists(st.none() | st.text("01", max_size=70), max_size=20), st.integers(0, 3), st.booleans())
def test_bits_are_the_models(texts: list[str | None], skipped: int, one_by_one: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if one_by_one:
            patch.setattr(bits, "_MOST_CELLS", 0)
        found = bits.bits(pa.array(texts, pa.string()).slice(skipped))
    found.validate(full=True)
    assert found.to_pylist() == [None if text is None else model(text) for text in texts[skipped:]]


@pytest.mark.parametrize(
    ("text", "value"), [("100000001", b"\x01\x01"), ("000000000", b""), ("1", b"\x01"), ("0" * 63 + "1", b"\x01")]
)
def test_recorded_bits(text: str, value: bytes) -> None:
    assert read(kind("bit", 64), text) == [value]
    assert read(kind("varbit"), text) == [value]


@pytest.mark.parametrize("text", ["2", "0 1", "01\n", "\u0660"])
def test_what_is_no_bit_string(text: str) -> None:
    with pytest.raises(DecodeError):
        bits.bits(pa.array(["01", text]))
