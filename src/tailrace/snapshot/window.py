"""A chunk of an incremental snapshot beside the log: which of its rows the log leaves standing."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.encode.arrow import flags, mask
from tailrace.events.encode.json import encode
from tailrace.model.change import TRUNCATE, ChangeBatch

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Visibility:
    """A pg_snapshot: transactions below `xmin`, and those below `xmax` that did not run then, are contained."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @staticmethod
    def parse(text: str) -> Visibility:
        """From `xmin:xmax:xip,xip`."""
        xmin, xmax, running = text.split(":")
        return Visibility(int(xmin), int(xmax), frozenset(int(xid) for xid in running.split(",") if xid))

    def contains(self, xids: npt.NDArray[np.int64]) -> Flags:
        """For each transaction, by the 32 bits that the log tells of its number, whether it is contained."""
        distance = (xids - self.xmax) & 0xFFFFFFFF
        whole = self.xmax + np.where(distance >= 1 << 31, distance - (1 << 32), distance)
        contained: Flags = (whole < self.xmin) | ((whole < self.xmax) & ~np.isin(whole, list(self.running)))
        return contained


@dataclass
class Window:
    """The rows of a chunk, read under a snapshot, while the log up to a later position passes by.

    A row whose key is changed by a transaction that the snapshot does not contain is dropped: the log has told what
    came later. All others are still what the table held at that position.
    """

    rows: ChangeBatch
    visibility: Visibility
    xid: str
    _changed: list[pa.Array] = field(default_factory=list)
    _is_truncated: bool = False

    def observe(self, *batches: ChangeBatch) -> None:
        """Note the keys that batches of the log change; `xid` names the source column of the transaction."""
        for batch in batches:
            self._observe(batch)

    def _observe(self, batch: ChangeBatch) -> None:
        if batch.table.id != self.rows.table.id or not len(batch):
            return
        source = batch.rows.column("source")
        xids = source.field(source.type.get_field_index(self.xid)).fill_null(0).to_numpy(zero_copy_only=False)
        later = ~self.visibility.contains(xids)
        if not later.any():
            return
        rows = batch.rows.filter(mask(later))
        self._is_truncated |= bool(pc.any(pc.equal(rows.column("op"), TRUNCATE)).as_py())
        for image in ("before", "after"):
            present = rows.filter(rows.column(image).is_valid())
            if len(present):
                self._changed.append(_keys(ChangeBatch(batch.table, present), image, self.rows.table.key))

    def survivors(self) -> ChangeBatch:
        """The rows that the log leaves standing."""
        if self._is_truncated or not len(self.rows):
            return self.rows.slice(0, 0)
        if not self._changed:
            return self.rows
        keys = _keys(self.rows, "after", self.rows.table.key)
        dropped = flags(pc.is_in(keys, pa.concat_arrays(self._changed)))
        return ChangeBatch(self.rows.table, self.rows.rows.filter(mask(~dropped)))


def _keys(batch: ChangeBatch, image: str, names: tuple[str, ...]) -> pa.Array:
    """The rows' keys as text that is equal where they are."""
    struct = batch.rows.column(image)
    parts = [encode(struct.field(struct.type.get_field_index(name)), batch.table.column(name).schema) for name in names]
    return pc.binary_join_element_wise(*parts, ",")
