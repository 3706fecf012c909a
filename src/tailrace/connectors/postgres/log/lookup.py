"""Looks up rows again by their key, in one query for a batch of rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.catalog.tables import Catalog, source_of
from tailrace.connectors.postgres.server.connect import connect, first_line
from tailrace.connectors.reselect import LookupFailed, Places
from tailrace.model.table import TableId


@dataclass
class PostgresLookup:
    """Reads rows by their keys, over a connection of its own."""

    config: Config
    by_event_key: bool
    connection: psycopg.Connection | None = None
    _keys: dict[TableId, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def close(self) -> None:
        """End the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def key(self, table: CapturedTable) -> tuple[str, ...]:
        """The columns by which rows of a table are found; none if there is no key."""
        return tuple(name for name, _ in self._key(table))

    def rows(self, table: CapturedTable, keys: list[pa.Array], columns: list[str]) -> tuple[Places, list[pa.Array]]:
        """The places in `keys` of the rows that exist, and the columns' texts. Raises LookupFailed."""
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
            source_of(table),
            sql.SQL(" AND ").join(same),
        )
        connection = self._connected()
        try:
            result = connection.execute(query, [key.to_pylist() for key in keys]).pgresult
        except psycopg.Error as error:
            raise LookupFailed(first_line(error)) from error
        assert result is not None
        texts = [
            pa.array([result.get_value(row, column + 1) for row in range(result.ntuples)], pa.binary())
            for column in range(len(columns))
        ]
        places = np.array([int(result.get_value(row, 0) or b"0") for row in range(result.ntuples)], np.int64)
        return places, [text.cast(pa.string()) for text in texts]

    def _key(self, table: CapturedTable) -> tuple[tuple[str, str], ...]:
        """Names and types of the key columns."""
        if table.schema.id not in self._keys:
            catalog = Catalog(self._connected(), self.config)
            by_event = table.schema.key if self.by_event_key else None
            self._keys[table.schema.id] = catalog.key_types(table.schema.id, by_event)
        return self._keys[table.schema.id]

    def _connected(self) -> psycopg.Connection:
        if self.connection is None:
            self.connection = connect(self.config, application="tailrace reselect")
        return self.connection
