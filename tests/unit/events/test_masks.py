"""Masks, hashes and truncation. Expected hashes are those of a recording and of Java's ObjectOutputStream."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from tailrace.config.masks import Hash, Mask, Stars, Truncate
from tailrace.model.masked import cut_bytes, masked

SALT = "CzQMA0cB5K"
UNLIMITED = 2**31 - 1


def of(mask: Mask, *texts: str | None, absent: str | None = None, length: int = UNLIMITED) -> list[str | None]:
    assert isinstance(mask, Truncate | Stars | Hash)
    padded = pa.array(["?", *texts], pa.string()).slice(1)
    found: list[str | None] = masked(padded, mask, absent, length).to_pylist()
    return found


def test_recorded_hashes() -> None:
    email = "aafb457e5910b05385a3e70e6106efaf470eaeea06945b670c44174526edf049"
    assert of(Hash("SHA-256", SALT, True), "sally@acme.com", None, length=80) == [email, None]
    assert of(Hash("SHA-256", SALT, False), "123-45-6789", length=20) == ["ec5d1c2c938883bcadbd"]


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("", "5b3d6ca0412baec5bd29469bcf15b3d11a89841fb2aaed6509e63dd51531bbb0"),
        ("a\0b", "bdc7f913ce6aff17f08342a233b29e3baeb2bab699ae7dd8acdb7d2dddf810ff"),
        ("\U0001f600é", "6989270f0ba9d0d7df0e8887e1b6eb134a4e3a7e9ba547ac793a459cc5bb23db"),
        ("x" * 65535, "34a359e63b40a2d95c206e1f513c16fdc402cd75402ad0798122d10fbf5d3f60"),
        ("x" * 65536, "2701004dbe8412c9380ce8f9c2e9c68405f0dcc579a98cfb151c9e7668251e82"),
        ("é" * 32768, "fe1a287304f6cdd50e8d99347825bea9a953b64e1b507b240d4af82024b42db5"),
    ],
    ids=["empty", "nul", "astral", "short", "long", "long in bytes"],
)
def test_hashes_of_what_java_serialises(text: str, digest: str) -> None:
    assert of(Hash("SHA-256", "salt", True), text) == [digest]


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [("MD5", "md5"), ("SHA-1", "sha1"), ("sha-512", "sha512"), ("SHA3-256", "sha3_256"), ("SHA-512/256", "sha512_256")],
)
def test_algorithms(algorithm: str, name: str) -> None:
    assert of(Hash(algorithm, "s", False), "é") == [hashlib.new(name, "sé".encode()).hexdigest()]


def test_null_under_a_hash() -> None:
    mask = Hash("SHA-256", "s", False)
    assert of(mask, None, "") == [None, *of(mask, "")]
    assert of(mask, None, "", absent="") == of(mask, "", "")
    assert of(mask, None, absent="default") == of(mask, "default")
    assert of(mask) == []


def test_stars_take_the_place_of_everything() -> None:
    assert of(Stars(3), "a", None, "abcdef") == ["***"] * 3
    assert of(Stars(0), "a", None) == ["", ""]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("abcdef", "abc"),
        ("ab", "ab"),
        ("", ""),
        ("éüß€", "éüß"),
        ("\U0001f600\U0001f600", "\U0001f600"),
        ("a\U0001f600b", "a\U0001f600"),
        ("ab\U0001f600", "ab"),
    ],
)
def test_truncation_counts_as_java_does(text: str, cut: str) -> None:
    assert of(Truncate(3), text, None, text) == [cut, None, cut]
    assert of(Truncate(0), text) == [""]


def test_bytes_are_cut() -> None:
    assert cut_bytes(pa.array([b"abc", b"", None]), 2).to_pylist() == [b"ab", b"", None]
