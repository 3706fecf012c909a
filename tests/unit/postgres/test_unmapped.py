"""Types without a mapping, carried as the bytes of their text."""

from __future__ import annotations

import pytest

from tests.unit.postgres.test_values import kind, read

UNKNOWN = {"include.unknown.datatypes": "true"}
FAULTS = {**UNKNOWN, "compat.faults": "true"}


@pytest.mark.parametrize(
    ("mode", "value"),
    [("bytes", b"16/\xc3\xbf"), ("hex", "31362fc3bf"), ("base64", "MTYvw78="), ("base64-url-safe", "MTYvw78=")],
)
def test_every_mode(mode: str, value: object) -> None:
    assert read(kind("pg_lsn", -1, {**UNKNOWN, "binary.handling.mode": mode}), "16/ÿ", "") == [value, type(value)()]


@pytest.mark.parametrize(
    ("name", "text", "java"),
    [
        ("line", "{1,2,3}", b"{1.0,2.0,3.0}"),
        ("circle", "<(1,2),3.5>", b"<(1.0,2.0),3.5>"),
        ("box", "(1e+20,2),(-0,-1e-05)", b"(1.0E20,2.0),(-0.0,-1.0E-5)"),
        ("path", "((Infinity,NaN),(-Infinity,5e-324))", b"((Infinity,NaN),(-Infinity,4.9E-324))"),
        ("polygon", "((1e+07,1e+23),(0.001,1e-45))", b"((1.0E7,1.0E23),(0.001,1.0E-45))"),
        ("pg_lsn", "16/B374D848", b"16/B374D848"),
    ],
)
def test_numbers_as_java_prints_them(name: str, text: str, java: bytes) -> None:
    assert read(kind(name, -1, FAULTS), text) == [java]
    assert read(kind(name, -1, UNKNOWN), text) == [text.encode()]
