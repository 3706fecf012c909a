"""Converts the row images of one relation's messages to Arrow structs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.log.computed import Computed
from tailrace.connectors.postgres.log.protocol.framing import Frames
from tailrace.connectors.postgres.log.protocol.pgoutput import Rows
from tailrace.connectors.postgres.log.protocol.tuples import TEXT, UNCHANGED, Cells
from tailrace.connectors.postgres.position import format_lsn
from tailrace.connectors.value_type import ValueType, converted
from tailrace.model.arrow import mask


@dataclass(frozen=True, slots=True)
class Images:
    """Converts the images of one relation's rows; knows where it is, for errors.

    `chosen` are the places of the table's columns in the relation, None for those that are computed.
    """

    frames: Frames
    rows: Rows
    table: CapturedTable
    chosen: list[int | None]
    lsn: int
    computed: Computed | None

    def struct(
        self, cells: list[Cells], has: npt.NDArray[np.bool_], old: list[pa.Array] | None = None
    ) -> tuple[pa.StructArray, list[pa.Array] | None]:
        """A row image as a struct array, and its columns. A large value the log did not repeat is taken from `old`."""
        schema = self.table.schema
        if not has.any():
            return pa.nulls(len(has), schema.row_type), None
        arrays: list[pa.Array] = []
        more = self._computed(cells, has) if self.table.absent else {}
        for place, column, kind in zip(self.chosen, schema.columns, self.table.types, strict=True):
            if place is None:
                arrays.append(more[column.name])
                continue
            array = self._convert(cells[place], column.name, kind)
            if old is not None:
                repeated = cells[place].tag == UNCHANGED
                if repeated.any():
                    array = pc.if_else(mask(repeated), old[len(arrays)], array)
            arrays.append(array)
        absent = None if has.all() else mask(~has)
        return pa.StructArray.from_arrays(arrays, fields=list(schema.row_type), mask=absent), arrays

    def _computed(self, cells: list[Cells], has: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
        """Columns that the log does not have, of images that have all others: an old one may be a key alone."""
        assert self.computed is not None
        relation = self.rows.relations[0]
        if cells is self.rows.old and relation.identity != "f":
            has = np.zeros(len(has), np.bool_)
        return self.computed.columns(self.table, relation, cells, self.rows.old, has, self.frames)

    def _convert(self, cells: Cells, name: str, kind: ValueType) -> pa.Array:
        where = f"{self.table.schema.id}.{name}, batch from LSN {format_lsn(self.lsn)}"
        return converted(cells.text(self.frames.buffer), kind, where)

    def unchanged(self) -> pa.StructArray | None:
        """Finds large values, by column and row, that the log did not repeat and no old image has."""
        flags = {
            column.name: self.rows.new[place].tag == UNCHANGED
            for place, column in zip(self.chosen, self.table.schema.columns, strict=True)
            if place is not None
        }
        filled = {name: ~self._in_old(name) & flag for name, flag in flags.items() if flag.any()}
        if not any(flag.any() for flag in filled.values()):
            return None
        return pa.StructArray.from_arrays([mask(flag) for flag in filled.values()], names=list(filled))

    def _in_old(self, name: str) -> npt.NDArray[np.bool_]:
        place = next(place for place, column in enumerate(self.rows.columns) if column.name == name)
        # Of the key, too: an old key is sent whole, even where the new row does not repeat a large part of it.
        present: npt.NDArray[np.bool_] = self.rows.old[place].tag == TEXT
        return present
