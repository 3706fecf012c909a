"""Reads column values that the log did not repeat from the table again (ReselectColumnsPostProcessor).

One query for a batch of rows reads, at one moment, the rows concerned and no others. It finds the row as it is at that
moment, which may be later than the change.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.config.processors import Reselect
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.value_type import converted
from tailrace.errors import SourceError
from tailrace.model.arrow import flags, indices, mask

log = logging.getLogger(__name__)

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class LookupFailed(SourceError):
    """The database refused the query for a table's rows."""


class Lookup(Protocol):
    """How a connector reads some rows of a table by their key, outside the log."""

    def key(self, table: CapturedTable) -> tuple[str, ...]:
        """The columns by which rows of a table are found; none if there is no key."""

    def rows(self, table: CapturedTable, keys: list[pa.Array], columns: list[str]) -> tuple[Places, list[pa.Array]]:
        """The places in `keys` of the rows that exist, and the named columns in the form that conversions read.

        `keys` are the rows' key columns in the order of `key`, as text. Raises LookupFailed.
        """

    def close(self) -> None:
        """End the connection."""


@dataclass
class Reselector:
    """Fills the images of one read."""

    settings: Reselect
    lookup: Lookup

    def close(self) -> None:
        """End the connection."""
        self.lookup.close()

    def key(self, table: CapturedTable) -> tuple[str, ...]:
        """The columns by which rows of a table are found; none if there is no key."""
        return self.lookup.key(table)

    def fill(
        self, table: CapturedTable, keys: list[pa.Array], after: pa.StructArray, unchanged: pa.StructArray | None
    ) -> tuple[pa.StructArray, pa.StructArray | None]:
        """New images with what the table holds now, and which values are still unknown.

        `keys` are the rows' key columns as text, in the order of `key`. Raises SourceError in mode `fail`.
        """
        lacking = {name: flag for name, flag in self._lacking(table, after, unchanged).items() if flag.any()}
        if not lacking or not keys:
            return after, unchanged
        rows = np.flatnonzero(np.logical_or.reduce(list(lacking.values())))
        try:
            places, texts = self.lookup.rows(table, [key.take(indices(rows)) for key in keys], list(lacking))
        except LookupFailed as error:
            self._report(f"columns cannot be selected again: {error}", table)
            return after, unchanged
        if len(places) < len(rows):
            self._report(f"{len(rows) - len(places)} rows are gone by now", table)
        return self._merged(table, after, unchanged, lacking, rows[places], texts)

    def _lacking(
        self, table: CapturedTable, after: pa.StructArray, unchanged: pa.StructArray | None
    ) -> dict[str, Flags]:
        """The rows that lack a value, by column."""
        lacking = {}
        present = flags(after.is_valid())
        for place, column in enumerate(table.schema.columns):
            if not self.settings.wants(table.schema.id, column.name):
                continue
            at = -1 if unchanged is None else unchanged.type.get_field_index(column.name)
            unknown = flags(unchanged.field(at)) if unchanged is not None and at >= 0 else np.zeros(len(after), bool)
            missing = flags(after.field(place).is_null()) & ~unknown
            lacking[column.name] = present & (
                unknown * self.settings.unavailable | missing * self.settings.null
            ).astype(bool)
        return lacking

    def _merged(
        self,
        table: CapturedTable,
        after: pa.StructArray,
        unchanged: pa.StructArray | None,
        lacking: dict[str, Flags],
        rows: npt.NDArray[np.intp],
        texts: list[pa.Array],
    ) -> tuple[pa.StructArray, pa.StructArray | None]:
        images = [after.field(place) for place in range(after.type.num_fields)]
        unknown = {} if unchanged is None else {each.name: flags(unchanged.field(each.name)) for each in unchanged.type}
        for name, text in zip(lacking, texts, strict=True):
            place = after.type.get_field_index(name)
            chosen = lacking[name][rows]
            where = f"{table.schema.id}.{name}, selected again"
            values = converted(text, table.types[place], where).filter(mask(chosen))
            pick = np.arange(len(after))
            pick[rows[chosen]] = len(after) + np.arange(len(values))
            images[place] = pa.concat_arrays([images[place], values]).take(indices(pick))
            if name in unknown:
                unknown[name] = unknown[name].copy()
                unknown[name][rows[chosen]] = False
        filled = pa.StructArray.from_arrays(images, fields=list(after.type), mask=after.is_null())
        left = {name: flag for name, flag in unknown.items() if flag.any()}
        still = pa.StructArray.from_arrays([mask(flag) for flag in left.values()], names=list(left)) if left else None
        return filled, still

    def _report(self, what: str, table: CapturedTable) -> None:
        if self.settings.strict:
            remedy = "set reselect.error.handling.mode=warn to keep the placeholder instead"
            raise SourceError(what, where=str(table.schema.id), remedy=remedy)
        log.warning("%s: %s", table.schema.id, what)
