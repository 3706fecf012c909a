"""The bytes of hierarchyid and spatial values, from their text."""

from __future__ import annotations

import re
import struct

from ..tsql.errors import error, unsupported

# Patterns of hierarchyid: lowest value, prefix, and the bits that follow as marks; x is a bit of the value.
_RANGES = (
    (-8, "00111", "xxxT", -8, -1),
    (0, "01", "xxT", 0, 3),
    (4, "100", "xxT", 4, 7),
    (8, "101", "xxxT", 8, 15),
    (16, "110", "xx0x1xxxT", 16, 79),
    (80, "1110", "xxx0xxx0x1xxxT", 80, 1103),
)
_POINT = re.compile(r"^\s*POINT\s*\(\s*(\S+)\s+(\S+)\s*\)\s*$", re.IGNORECASE)
_LINE = re.compile(r"^\s*LINESTRING\s*\(([^()]*)\)\s*$", re.IGNORECASE)


def from_literal(kind: str, sql: str, srid: int | None = None) -> str:
    """A literal's text as the bytes of a value, as a PostgreSQL literal."""
    text = sql.removesuffix("::text").strip("'").replace("''", "'")
    raw = (
        hierarchyid(text)
        if kind == "hierarchyid"
        else spatial(text, (4326 if kind == "geography" else 0) if srid is None else srid)
    )
    return f"'\\x{raw.hex()}'::bytea"


def hierarchyid(path: str) -> bytes:
    """The bytes of a path such as /1/3/."""
    if not re.fullmatch(r"/(-?\d+(\.-?\d+)*/)*", path):
        raise error(6522, path)
    bits = ""
    for level in path.strip("/").split("/") if path != "/" else []:
        labels = [int(label) for label in level.split(".")]
        for number, label in enumerate(labels):
            last = number == len(labels) - 1
            bits += _label(label if last else label + 1, last)
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big") if bits else b""


def _label(value: int, last: bool) -> str:
    for base, prefix, pattern, low, high in _RANGES:
        if low <= value <= high:
            width = pattern.count("x")
            digits = iter(format(value - base, f"0{width}b"))
            marks = {"x": lambda digits=digits: next(digits), "T": lambda: "1" if last else "0"}
            return prefix + "".join(marks[mark]() if mark in marks else mark for mark in pattern)
    raise unsupported(f"hierarchyid labels such as {value}")


def spatial(text: str, srid: int) -> bytes:
    """The bytes of a point or line in the well-known text format."""
    point, line = _POINT.match(text), _LINE.match(text)
    if point:
        return struct.pack("<iBBdd", srid, 1, 0x0C, *_order(srid, float(point[1]), float(point[2])))
    if line:
        pairs = [tuple(float(number) for number in pair.split()) for pair in line[1].split(",")]
        if len(pairs) == 2:
            return struct.pack("<iBBdddd", srid, 1, 0x14, *_order(srid, *pairs[0]), *_order(srid, *pairs[1]))
        raw = struct.pack("<iBBI", srid, 1, 0x04, len(pairs))
        raw += b"".join(struct.pack("<dd", *_order(srid, *pair)) for pair in pairs)
        figures = struct.pack("<IBI", 1, 1, 0)
        return raw + figures + struct.pack("<IiiB", 1, -1, 0, 2)
    raise unsupported(f"the spatial value {text[:40]}; points and lines only")


def _order(srid: int, x: float, y: float) -> tuple[float, float]:
    """Geography stores latitude first, though the text has longitude first."""
    return (y, x) if srid == 4326 else (x, y)
