"""Finds the rows of a chunk that no later change in the log supersedes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.snapshots import Fence
from tailrace.model.arrow import flags, mask
from tailrace.model.change import TRUNCATE, UPDATE, ChangeBatch
from tailrace.model.text.json import encode


@dataclass
class Window:
    """The rows of a chunk, read under a snapshot, and the changes of the log after it that supersede them.

    `fence` tells which changes the snapshot does not contain. What becomes of a row:

    | the later changes | the row |
    |---|---|
    | none is of this row | is sent as it was read |
    | one is of this row | is dropped: the log has sent a newer image |
    | the row has op `d` (its key has no row), and one brings a row of the key | is dropped |
    | all of this row leave out a large value that they did not change | is sent with the newest values of the others |

    The last is sent because no consumer may have the large value yet. `identity` are the columns that tell rows apart,
    of those in old images. An event's key may not do that.
    """

    rows: ChangeBatch
    fence: Fence
    identity: tuple[str, ...]
    _: KW_ONLY
    _later: list[ChangeBatch] = field(default_factory=list)
    _moved: list[pa.Array] = field(default_factory=list)
    _brought: list[pa.Array] = field(default_factory=list)
    _is_truncated: bool = False

    def observe(self, *batches: ChangeBatch) -> None:
        """Note which rows the batches of the log change."""
        later = [changes for batch in batches if (changes := self._not_contained(batch)) is not None]
        for changes in later:
            self._is_truncated |= bool(pc.any(pc.equal(changes.rows.column("op"), TRUNCATE)).as_py())
            self._brought.append(_keys(changes, "after", changes.table.key))
            old, new = self._old(changes), _keys(changes, "after", self.identity)
            self._moved.append(new.filter(pc.fill_null(pc.not_equal(old, new), False)))
        ours = pa.concat_arrays([self._own(), *self._moved]).drop_null()
        for changes in later:
            self._later.append(ChangeBatch(changes.table, changes.rows.filter(pc.is_in(self._old(changes), ours))))

    def _not_contained(self, batch: ChangeBatch) -> ChangeBatch | None:
        """The changes of the rows' table that the snapshot does not contain, None where there are none."""
        # A schema change has a row of its own in the log, without images.
        if batch.table.id != self.rows.table.id or batch.schema_change is not None or not len(batch):
            return None
        later = self.fence.supersedes(batch)
        return ChangeBatch(batch.table, batch.rows.filter(mask(later))) if later.any() else None

    def _old(self, changes: ChangeBatch) -> pa.Array:
        """The identity columns of changed rows: an update that does not change them has no old image."""
        updated = pc.equal(changes.rows.column("op"), UPDATE)
        stayed = pc.if_else(updated, _keys(changes, "after", self.identity), None)
        return pc.coalesce(_keys(changes, "before", self.identity), stayed)

    def _own(self) -> pa.Array:
        return _keys(self.rows, "after", self.identity)

    def survivors(self) -> ChangeBatch:
        """The rows that no change in the log supersedes."""
        if self._is_truncated or not len(self.rows):
            return self.rows.slice(0, 0)
        if not self._brought:
            return self.rows
        own, absent = self._own(), _keys(self.rows, "before", self.rows.table.key)
        changed = pa.concat_arrays([pa.nulls(0, pa.string()), *(self._old(batch) for batch in self._later)])
        brought = pa.concat_arrays(self._brought)
        kept = ~flags(pc.or_(pc.is_in(own, changed.drop_null()), pc.is_in(absent, brought.drop_null())))
        rows = self.rows.rows
        if any(batch.column("unchanged") is not None for batch in self._later):
            became = self._became(own.to_pylist())
            kept[list(became)] = True
            place = rows.schema.get_field_index("after")
            images = pa.array(became.values(), rows.schema.field(place).type)
            take = np.arange(len(rows))
            take[list(became)] = len(rows) + np.arange(len(became))
            rows = rows.set_column(place, "after", pa.concat_arrays([rows.column(place), images]).take(pa.array(take)))
        return self.rows.with_rows(rows.filter(mask(kept)))

    def _became(self, own: list[str | None]) -> dict[int, dict[str, Any]]:
        """The final state of changed rows whose columns the log does not contain completely, by their places."""
        names = frozenset(self.rows.rows.schema.field("after").type.names)
        # By identity: place, image, and the columns that no later change contains. Rows of a chunk are few, so a loop
        # will do.
        state: dict[str | None, tuple[int, dict[str, Any], frozenset[str]]] = {
            key: (place, image, names)
            for place, (key, image) in enumerate(zip(own, self.rows.rows.column("after").to_pylist(), strict=True))
        }
        for before, after, change in sorted(self._changes(), key=lambda each: each[2]["order"]):
            row = state.pop(before, None)
            if row is None or after is None:
                continue
            place, image, untold = row
            missing = {name for name, is_so in (change.get("unchanged") or {}).items() if is_so and name in names}
            image = {**change["after"], **{name: image[name] for name in missing}}
            state[after] = place, {name: image.get(name) for name in names}, untold & missing
        return {place: image for place, image, untold in state.values() if untold and untold != names}

    def _changes(self) -> Iterator[tuple[str | None, str | None, dict[str, Any]]]:
        """Old and new identity, and all columns of each change."""
        for batch in self._later:
            old, new = self._old(batch).to_pylist(), _keys(batch, "after", self.identity).to_pylist()
            yield from zip(old, new, batch.rows.to_pylist(), strict=True)


def _keys(batch: ChangeBatch, image: str, names: tuple[str, ...]) -> pa.Array:
    """The named columns of the rows as text that is equal where they are; null where there is no image, or no name."""
    struct = batch.rows.column(image)
    if not names:
        return pa.nulls(len(batch), pa.string())
    parts = [encode(struct.field(struct.type.get_field_index(name)), batch.table.column(name).schema) for name in names]
    return pc.if_else(struct.is_valid(), pc.binary_join_element_wise(*parts, ","), None)
