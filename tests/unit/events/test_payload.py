"""Values outside of a table's columns."""

from __future__ import annotations

import base64
from decimal import Decimal

import pyarrow as pa

from tailrace.events.payload import filled
from tailrace.model.schema import ConnectSchema


def test_a_long_decimal_as_the_default_keeps_its_digits() -> None:
    number = 1234567890123456789012345678_0123456789
    default = base64.b64encode(number.to_bytes(16, "big")).decode()
    schema = ConnectSchema("bytes", True, "org.apache.kafka.connect.data.Decimal", 1, default=default)
    (found,) = filled(pa.nulls(1, pa.decimal128(38, 10)), schema).to_pylist()
    assert found == Decimal("1234567890123456789012345678.0123456789")
