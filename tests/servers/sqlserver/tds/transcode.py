"""Turns UTF-8 text of many values at once into UTF-16 or a code page.

PostgreSQL's text holds neither NUL nor lone surrogates, which SQL Server's nvarchar may: they are stored as the
characters from U+10F800 on, a surrogate by its last eleven bits; NUL is U+10F7FF.
"""

from __future__ import annotations

import codecs
import re

import numpy as np

from .collations import code_page
from .copy_binary import Bytes, Integers

_FIRST_STAND_IN = 0x10F800
_NUL_STAND_IN = "\U0010f7ff"
_STAND_INS = re.compile("[\U0010f7ff-\U0010ffff]")
# Code pages of one byte a character, for which PostgreSQL has a function that narrows text.
CODE_PAGES = ("cp1250", "cp1251", "cp1252", "cp1253", "cp1254")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def from_utf16(raw: bytes) -> str:
    """The text of UTF-16 code units in the form in which it is stored."""
    text = raw.decode("utf-16-le", "surrogatepass")
    return _UNSTORABLE.sub(_stand_in, text) if _UNSTORABLE.search(text) else text


def from_code_page(raw: bytes, collation: str | None) -> str:
    """The text of a code page's bytes in the form in which it is stored."""
    codec = code_page(collation)
    text = raw.decode(codec, "sqlserver" if codec.startswith("cp125") else "replace")
    return text.replace("\x00", _NUL_STAND_IN)


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match.group())
    return _NUL_STAND_IN if code == 0 else chr(_FIRST_STAND_IN + (code & 0x7FF))


def _original(match: re.Match[str]) -> str:
    return "\x00" if match.group() == _NUL_STAND_IN else chr(0xD800 + ord(match.group()) - _FIRST_STAND_IN)


def _characters(content: Bytes, lengths: Integers, *, surrogate_pairs: bool) -> Integers:
    """How many characters, or UTF-16 code units, each value has."""
    count = ((content & 0xC0) != 0x80).astype(np.int64)
    if surrogate_pairs:
        count += content >= 0xF0
    sums = np.concatenate([[0], np.cumsum(count)])
    ends = np.cumsum(lengths)
    return sums[ends] - sums[ends - lengths]


def _is_ascii(content: Bytes) -> bool:
    return not len(content) or int(content.max()) < 0x80


def to_utf16(content: Bytes, lengths: Integers) -> tuple[Bytes, Integers]:
    """UTF-16 of joined UTF-8 values, with the lengths in bytes."""
    if _is_ascii(content):
        wide = np.zeros(2 * len(content), np.uint8)
        wide[::2] = content
        return wide, lengths * 2
    text = content.tobytes().decode()
    if _STAND_INS.search(text):
        return _each(
            content, lengths, lambda value: _STAND_INS.sub(_original, value).encode("utf-16-le", "surrogatepass")
        )
    wide = np.frombuffer(text.encode("utf-16-le"), np.uint8)
    return wide, _characters(content, lengths, surrogate_pairs=True) * 2


def to_code_page(content: Bytes, lengths: Integers, collation: str | None) -> tuple[Bytes, Integers]:
    """The code page's bytes of joined UTF-8 values, with the lengths in bytes."""
    codec = code_page(collation)
    if _is_ascii(content):
        return content, lengths
    text = content.tobytes().decode()
    if codec.startswith("cp125") and not _STAND_INS.search(text):
        narrow = np.frombuffer(text.encode(codec, "sqlserver"), np.uint8)
        return narrow, _characters(content, lengths, surrogate_pairs=False)
    errors = "sqlserver" if codec.startswith("cp125") else "replace"
    return _each(content, lengths, lambda value: value.replace(_NUL_STAND_IN, "\x00").encode(codec, errors))


def _each(content: Bytes, lengths: Integers, convert: object) -> tuple[Bytes, Integers]:
    raw = content.tobytes()
    ends = np.cumsum(lengths).tolist()
    values = [convert(raw[end - size : end].decode()) for end, size in zip(ends, lengths.tolist(), strict=True)]  # type: ignore[operator]
    return np.frombuffer(b"".join(values), np.uint8), np.fromiter(map(len, values), np.int64, len(values))


def _replacement(error: UnicodeError) -> tuple[str | bytes, int]:
    """Characters outside of a code page: C1 controls keep their number, others become `?`, one for each code unit."""
    if isinstance(error, UnicodeDecodeError):
        return chr(error.object[error.start]), error.start + 1
    assert isinstance(error, UnicodeEncodeError)
    out = bytearray()
    for character in error.object[error.start : error.end]:
        if 0x80 <= ord(character) < 0xA0:
            out.append(ord(character))
        else:
            out += b"?" * (2 if ord(character) > 0xFFFF else 1)
    return bytes(out), error.end


codecs.register_error("sqlserver", _replacement)
