"""GeometryFormatTransformer: converts geometries between WKB and EWKB, which has the SRID inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import TransformError
from tailrace.events.records import Bools, Records
from tailrace.model.arrow import flags, mask
from tailrace.model.text.strings import bytes_of, from_bytes
from tailrace.transforms.geometries import HAS_SRID, Geometries
from tailrace.transforms.settings import Given, either, setting

OPTIONS = (_FORMAT := setting("format", either("wkb", "ewkb"), "wkb"),)
_WHERE = "GeometryFormatTransformer"
_HEAD, _EXTENDED_HEAD = 5, 9  # bytes of order and type, and of the SRID behind them


@dataclass(frozen=True)
class GeometryFormat:
    """Makes EWKB of WKB and WKB of EWKB; without `extends` it leaves WKB as it is.

    As in the reference `format` names the form that geometries have, not the one that they get.
    """

    extends: bool

    @staticmethod
    def of(given: Given) -> GeometryFormat:
        """From the transform's settings. Raises SettingsError."""
        return GeometryFormat(given.read(OPTIONS)[_FORMAT] == "wkb")

    def apply(self, records: Records) -> list[Records]:
        """The records with their geometries converted; tombstones as they are."""
        return Geometries(self._converted, _WHERE).apply(records)

    def _converted(self, wkb: pa.Array, srid: pa.Array) -> pa.Array:
        valid = flags(wkb.is_valid())
        lengths = pc.binary_length(wkb).fill_null(0).to_numpy(zero_copy_only=False)
        little, kinds = _heads(wkb, lengths >= _HEAD)
        is_extended = (kinds & HAS_SRID) != 0
        extending = valid & ~is_extended if self.extends else np.zeros(len(wkb), np.bool_)
        # Geometries without an SRID stay as they are, as from 3.7 on; 3.6 ends the pipeline there.
        extending &= flags(srid.is_valid())
        if (extending & (lengths < _HEAD)).any() or (is_extended & (lengths < _EXTENDED_HEAD)).any():
            raise TransformError("a geometry ends within its head", where=_WHERE)
        srids = srid.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        made = _rebuilt(wkb, is_extended, little, (kinds & ~HAS_SRID,), _EXTENDED_HEAD)
        return _rebuilt(made, extending, little, (kinds | HAS_SRID, srids), _HEAD)


def _heads(wkb: pa.Array, long: Bools) -> tuple[Bools, npt.NDArray[np.int64]]:
    """Whether the byte order is the little one, and the type; 0 where there is no head."""
    _, data = bytes_of(pc.binary_slice(wkb.filter(mask(long)), 0, _HEAD))
    heads = data.reshape(-1, _HEAD)
    little, kinds = np.zeros(len(wkb), np.bool_), np.zeros(len(wkb), np.int64)
    little[long] = heads[:, 0] == 1
    words = np.ascontiguousarray(heads[:, 1:])
    kinds[long] = np.where(little[long], words.view("<u4")[:, 0], words.view(">u4")[:, 0])
    return little, kinds


def _rebuilt(
    wkb: pa.Array, chosen: Bools, little: Bools, words: Sequence[npt.NDArray[np.int64]], rest: int
) -> pa.Array:
    """The chosen geometries with other words between the byte order and what begins at `rest`."""
    if not chosen.any():
        return wkb
    some = wkb.filter(mask(chosen))
    between = (_word_bytes(word[chosen], little[chosen]) for word in words)
    pieces = (pc.binary_slice(some, 0, 1), *between, _tails(some, rest))
    made = pc.binary_join_element_wise(*pieces, pa.scalar(b"", some.type))
    return pc.replace_with_mask(wkb, mask(chosen), made)


def _tails(values: pa.Array, start: int) -> pa.Array:
    """What begins there; no value is shorter. Arrow's binary_slice without an end fails for several values."""
    offsets, data = bytes_of(values)
    kept = np.ones(len(data), np.bool_)
    kept[(offsets[:-1, None] + np.arange(start)).reshape(-1)] = False
    return from_bytes(offsets - start * np.arange(len(offsets)), data[kept], "binary", values)


def _word_bytes(numbers: npt.NDArray[np.int64], little: Bools) -> pa.Array:
    words = (numbers & 0xFFFFFFFF).astype("<u4")
    data = np.where(little, words, words.byteswap()).tobytes()
    return pa.Array.from_buffers(pa.binary(4), len(words), [None, pa.py_buffer(data)]).cast(pa.binary())
