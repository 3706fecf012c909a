"""Collations: their five bytes on the wire, their code page, and how they compare."""

from __future__ import annotations

import re
import struct

from ..datatypes import DEFAULT_COLLATION

# Prefix of the name: locale identifier, code page.
_LOCALES = {
    "SQL_Latin1_General_CP1": (0x0409, "cp1252"),
    "Latin1_General": (0x0409, "cp1252"),
    "Czech": (0x0405, "cp1250"),
    "Polish": (0x0415, "cp1250"),
    "Hungarian": (0x040E, "cp1250"),
    "Cyrillic_General": (0x0419, "cp1251"),
    "Greek": (0x0408, "cp1253"),
    "Turkish": (0x041F, "cp1254"),
    "Japanese": (0x0411, "cp932"),
    "Chinese_PRC": (0x0804, "cp936"),
    "Korean_Wansung": (0x0412, "cp949"),
    "French": (0x040C, "cp1252"),
    "German_PhoneBook": (0x10407, "cp1252"),
    "Modern_Spanish": (0x0C0A, "cp1252"),
}
_SORT_IDS = {DEFAULT_COLLATION.lower(): 52, "sql_latin1_general_cp1_cs_as": 51}
_IGNORE_CASE, _IGNORE_ACCENT, _IGNORE_WIDTH, _IGNORE_KANA, _BINARY, _BINARY2, _UTF8 = (
    1 << n for n in (20, 21, 23, 22, 24, 25, 26)
)


def known(name: str) -> bool:
    """Whether there is a collation of this name."""
    return any(name.lower().startswith(prefix.lower() + "_") for prefix in _LOCALES)


def collation_bytes(name: str | None) -> bytes:
    """The five bytes of a collation: locale and flags, sort order."""
    name = name or DEFAULT_COLLATION
    flags = _locale(name)[0]
    parts = name.upper().split("_")
    if "BIN2" in parts:
        flags |= _BINARY2
    elif "BIN" in parts:
        flags |= _BINARY
    else:
        flags |= _IGNORE_CASE if "CI" in parts else 0
        flags |= _IGNORE_ACCENT if "AI" in parts else 0
        flags |= _IGNORE_WIDTH if "WS" not in parts else 0
        flags |= _IGNORE_KANA if "KS" not in parts else 0
    flags |= _UTF8 if "UTF8" in parts else 0
    version = re.search(r"_(90|100|140)_", name)
    flags |= {"90": 1, "100": 2, "140": 3}[version.group(1)] << 28 if version else 0
    return struct.pack("<IB", flags, _SORT_IDS.get(name.lower(), 0))


def code_page(name: str | None) -> str:
    """The codec of CHAR, VARCHAR and TEXT values."""
    name = name or DEFAULT_COLLATION
    return "utf-8" if name.upper().endswith("UTF8") else _locale(name)[1]


def ignores_case(name: str | None) -> bool:
    """Whether `a` equals `A`."""
    return "_CI" in (name or DEFAULT_COLLATION).upper()


def _locale(name: str) -> tuple[int, str]:
    for prefix, locale in _LOCALES.items():
        if name.lower().startswith(prefix.lower() + "_"):
            return locale
    raise KeyError(name)
