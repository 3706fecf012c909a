"""Columns looked up again in the table where the log did not repeat them (ReselectColumnsPostProcessor).

One query a batch of rows reads, at one moment, the rows concerned and no others. What it finds is the row as it is by
then, which may be later than the change.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.config import Config
from tailrace.config.processors import Reselect
from tailrace.connectors.postgres.catalog.tables import CapturedTable, Catalog
from tailrace.connectors.postgres.server.connect import connect, first_line
from tailrace.connectors.postgres.types.values import ValueType, converted
from tailrace.errors import SourceError
from tailrace.events.encode.arrow import flags, indices, mask
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


@dataclass
class Reselector:
    """Fills images of one read, over a connection of its own."""

    config: Config
    wish: Reselect
    connection: psycopg.Connection | None = None
    _keys: dict[TableId, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def close(self) -> None:
        """Let go of the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def key(self, table: CapturedTable) -> tuple[str, ...]:
        """The columns by which rows of a table are found; none if there is no key."""
        return tuple(name for name, _ in self._key(table))

    def fill(
        self, table: CapturedTable, keys: list[pa.Array], after: pa.StructArray, unchanged: pa.StructArray | None
    ) -> tuple[pa.StructArray, pa.StructArray | None]:
        """New images with what the table holds now, and what of the rest is still unknown.

        `keys` are the rows' key columns as text, in the order of `key`. Raises SourceError in mode `fail`.
        """
        lacking = {name: flag for name, flag in self._lacking(table, after, unchanged).items() if flag.any()}
        if not lacking or not keys:
            return after, unchanged
        rows = np.flatnonzero(np.logical_or.reduce(list(lacking.values())))
        try:
            found, texts = self._look_up(table, [key.take(indices(rows)) for key in keys], list(lacking))
        except psycopg.Error as error:
            self._tell(f"columns cannot be selected again: {first_line(error)}", table)
            return after, unchanged
        if len(found) < len(rows):
            self._tell(f"{len(rows) - len(found)} rows are gone by now", table)
        return self._merged(table, after, unchanged, lacking, rows[found], texts)

    def _lacking(
        self, table: CapturedTable, after: pa.StructArray, unchanged: pa.StructArray | None
    ) -> dict[str, Flags]:
        """The rows that lack a value, by column."""
        lacking = {}
        present = flags(after.is_valid())
        for place, column in enumerate(table.schema.columns):
            if not self.wish.wants(table.schema.id, column.name):
                continue
            at = -1 if unchanged is None else unchanged.type.get_field_index(column.name)
            unknown = flags(unchanged.field(at)) if unchanged is not None and at >= 0 else np.zeros(len(after), bool)
            missing = flags(after.field(place).is_null()) & ~unknown
            lacking[column.name] = present & (unknown * self.wish.unavailable | missing * self.wish.null).astype(bool)
        return lacking

    def _look_up(self, table: CapturedTable, keys: list[pa.Array], columns: list[str]) -> tuple[Places, list[pa.Array]]:
        """Which of the rows are there (by their place), and the columns' texts."""
        names = [sql.Identifier(f"k{place}") for place in range(len(keys))]
        same = [
            sql.SQL("t.{} = k.{}::{}").format(sql.Identifier(name), alias, sql.SQL(type_name))
            for (name, type_name), alias in zip(self._key(table), names, strict=True)
        ]
        query = sql.SQL(
            "SELECT k.place - 1, {} FROM unnest({}) WITH ORDINALITY AS k({}, place) JOIN {} t ON {} ORDER BY 1"
        ).format(
            sql.SQL(", ").join(sql.SQL("t.{}").format(sql.Identifier(column)) for column in columns),
            sql.SQL(", ").join([sql.SQL("%s::text[]")] * len(keys)),
            sql.SQL(", ").join(names),
            sql.Identifier(table.schema.id.schema, table.schema.id.table),
            sql.SQL(" AND ").join(same),
        )
        result = self._connected().execute(query, [key.to_pylist() for key in keys]).pgresult
        assert result is not None
        texts = [
            pa.array([result.get_value(row, column + 1) for row in range(result.ntuples)], pa.binary())
            for column in range(len(columns))
        ]
        found = np.array([int(result.get_value(row, 0) or b"0") for row in range(result.ntuples)], np.int64)
        return found, [text.cast(pa.string()) for text in texts]

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
            values = _converted(text, table.types[place], f"{table.schema.id}.{name}").filter(mask(chosen))
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

    def _key(self, table: CapturedTable) -> tuple[tuple[str, str], ...]:
        """Names and types of the key columns."""
        if table.schema.id not in self._keys:
            catalog = Catalog(self._connected(), self.config)
            by_event = table.schema.key if self.wish.by_event_key else None
            self._keys[table.schema.id] = catalog.key_types(table.schema.id, by_event)
        return self._keys[table.schema.id]

    def _connected(self) -> psycopg.Connection:
        if self.connection is None:
            self.connection = connect(self.config, application="tailrace reselect")
        return self.connection

    def _tell(self, what: str, table: CapturedTable) -> None:
        if self.wish.strict:
            remedy = "set reselect.error.handling.mode=warn to keep the placeholder instead"
            raise SourceError(what, where=str(table.schema.id), remedy=remedy)
        log.warning("%s: %s", table.schema.id, what)


def _converted(text: pa.Array, kind: ValueType, where: str) -> pa.Array:
    return converted(text, kind, f"{where}, selected again")
