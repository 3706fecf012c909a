"""The hashes that choose partitions, against values that Java and the recordings give."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tailrace.javalike.murmur import java, murmur


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("hello", "string", 99162322),
        ("", "string", 0),
        ("polygenelubricants", "string", -2147483648),
        ("\U0001f600", "string", 1772899),
        (7, "int32", 7),
        (-1, "int32", -1),
        (-1, "int64", 0),
        (1 << 32, "int64", 1),
        (True, "boolean", 1231),
        (1.5, "double", 1073217536),
        (1.5, "float", 1069547520),
        (-0.0, "double", -2147483648),
        (Decimal("12.34"), "bytes", 38256),
        (Decimal("-12.34"), "bytes", -38252),
        (b"\x01\xff", "bytes", 31 * (31 - 1) + 1),
    ],
)
def test_hash_codes_are_java_s(value: Any, kind: str, expected: int) -> None:
    assert java(value, kind) == expected


@pytest.mark.parametrize(("text", "partition"), [("Sally", 3), ("Anne", 1), ("", 2)])
def test_texts_go_where_the_recording_has_them(text: str, partition: int) -> None:
    assert (murmur(text, "string") & 0x7FFFFFFF) % 4 == partition


def test_every_byte_of_a_text_counts() -> None:
    texts = ["é" * length + "x" * rest for length in range(20) for rest in range(3)]
    assert len({murmur(text, "string") for text in texts}) == len(texts)
    assert murmur(5, "int32") == murmur(5, "int64")


def test_a_struct_has_no_hash() -> None:
    with pytest.raises(ValueError, match="no hash"):
        java({"a": 1}, "struct")
