"""SwapGeometryCoordinates: swaps x and y of geometries of some reference systems (SRIDs)."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.kinds import TEXT
from tailrace.errors import TransformError
from tailrace.events.records import Records
from tailrace.transforms.geometries import HAS_M, HAS_SRID, HAS_Z, Geometries
from tailrace.transforms.settings import Given, setting

_WHERE = "SwapGeometryCoordinates"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INTS = range(-(2**31), 2**31)
_LINE, _POLYGON, _MULTI_POINT, _COLLECTION = 2, 3, 4, 7


_SRIDS = setting("srids", TEXT, "4326,3857,4269")


@dataclass(frozen=True)
class SwapGeometryCoordinates:
    """Swaps the coordinates of geometries, those in arrays and maps among them. Works value by value."""

    srids: tuple[int, ...]

    @staticmethod
    def of(given: Given) -> SwapGeometryCoordinates:
        """From the transform's settings. Raises SettingsError."""
        text = given.read((_SRIDS,))[_SRIDS]
        items = [item.strip() for item in (text.rstrip(",") or text).split(",")]
        for item in items:
            if not _INTEGER.fullmatch(item) or int(item) not in _INTS:
                raise given.problem("srids", f"An integer is expected, not {item!r}", "write numbers such as 4326,3857")
        return SwapGeometryCoordinates(tuple(int(item) for item in items))

    def apply(self, records: Records) -> list[Records]:
        """The records with their geometries swapped; tombstones as they are."""
        return Geometries(self._swapped, _WHERE, in_lists=True).apply(records)

    def _swapped(self, wkb: pa.Array, srid: pa.Array) -> pa.Array:
        """Geometries without an SRID stay as they are."""
        chosen = pc.and_(pc.is_in(srid, pa.array(self.srids, pa.int32())), wkb.is_valid())
        if not chosen.true_count:
            return wkb
        made = [_swapped(each) for each in wkb.filter(chosen).to_pylist()]
        return pc.replace_with_mask(wkb, chosen, pa.array(made, wkb.type))


def _swapped(wkb: bytes) -> bytes:
    try:
        return _Swap(wkb).run()
    except (ValueError, IndexError, struct.error, RecursionError) as error:
        raise TransformError(
            f"Failed to swap EWKB/WKB coordinates: {error}",
            where=_WHERE,
            remedy="Leave its SRID out of srids, or its table by a predicate.",
        ) from error


class _Swap:
    """One pass over a geometry, which copies it (GeometryTraverser, GeometryCoordinateSwapper).

    What follows the geometry is left out. The parts of a multi-geometry have its dimensions, whatever their types say.
    """

    def __init__(self, wkb: bytes) -> None:
        self._wkb, self._at, self._out = wkb, 0, bytearray()

    def run(self) -> bytes:
        self._geometry(self._byte_order())
        return bytes(self._out)

    def _geometry(self, order: str) -> None:
        kind = self._integer(order)
        dimensions = 2 + bool(kind & HAS_Z) + bool(kind & HAS_M)
        if kind & HAS_SRID:
            self._integer(order)
        base = kind & 0xFF
        if not 1 <= base <= _COLLECTION:
            raise ValueError(f"Invalid geometry type: {base}")
        if base < _MULTI_POINT:
            self._shape(base, order, dimensions)
            return
        for _ in range(self._integer(order)):
            inner = self._byte_order()
            if base == _COLLECTION:
                self._geometry(inner)
            else:
                self._integer(inner)
                self._shape(base - 3, inner, dimensions)

    def _shape(self, base: int, order: str, dimensions: int) -> None:
        """A point, a line or a polygon, behind its type."""
        for _ in range(self._integer(order) if base == _POLYGON else 1):
            self._points(self._integer(order) if base >= _LINE else 1, order, dimensions)

    def _points(self, count: int, order: str, dimensions: int) -> None:
        size = max(count, 0) * dimensions * 8
        data = self._wkb[self._at : self._at + size]
        if len(data) < size:
            raise ValueError(f"it ends within a point, after {len(self._wkb)} bytes")
        self._at += size
        if count == 1:
            self._out += data[8:16] + data[:8] + data[16:]
            return
        ordinates = np.frombuffer(data, f"{order}u8").reshape(-1, dimensions)[:, [1, 0, *range(2, dimensions)]]
        self._out += ordinates.tobytes()

    def _byte_order(self) -> str:
        octet = self._wkb[self._at]
        self._at += 1
        self._out.append(octet)
        return _order(octet)

    def _integer(self, order: str) -> int:
        (number,) = struct.unpack_from(f"{order}i", self._wkb, self._at)
        self._at += 4
        self._out += struct.pack(f"{order}i", number)
        return int(number)


def _order(octet: int) -> str:
    return "<" if octet == 1 else ">"
