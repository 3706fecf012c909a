"""Bytes in every mode, and bytes from hex digits."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.connectors.types.binary import binary_type, hex_bytes
from tailrace.errors import DecodeError
from tests.unit.connectors.rules import config


@pytest.mark.parametrize(
    ("mode", "value"),
    [("bytes", b"\xfb\xff"), ("hex", "fbff"), ("base64", "+/8="), ("base64-url-safe", "-_8=")],
)
def test_modes(mode: str, value: object) -> None:
    of = binary_type(config(binary__handling__mode=mode))
    found = of.convert(pa.array([b"\xfb\xff", None, b""], pa.binary()))
    assert found.type == of.arrow
    assert found.to_pylist() == [value, None, type(value)()]


def test_hex_digits() -> None:
    assert hex_bytes(pa.array(["?", "0Aff", None, ""]).slice(1)).to_pylist() == [b"\x0a\xff", None, b""]


@pytest.mark.parametrize("text", ["0", "0g", "zz"])
def test_what_is_no_hex(text: str) -> None:
    with pytest.raises(DecodeError, match="hex digits"):
        hex_bytes(pa.array([text]))
