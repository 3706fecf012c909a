"""Leaves out changes that a snapshot, read after them, holds already (see snapshot/reading.py)."""

from __future__ import annotations

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.postgres import ranges
from tailrace.connectors.postgres.catalog import Catalog
from tailrace.connectors.postgres.connect import connect, server_errors
from tailrace.connectors.postgres.ranges import KeyColumn
from tailrace.errors import SourceError
from tailrace.events.encode.arrow import as_type, mask
from tailrace.events.keychange import split_key_changes
from tailrace.model.change import ChangeBatch
from tailrace.model.table import TableId
from tailrace.snapshot.reading import Key, Skip


class Contained:
    """For one stretch of the log, all of which lies before the positions of `skips`."""

    def __init__(self, config: Config, skips: tuple[Skip, ...]) -> None:
        self.config = config
        self._connection: psycopg.Connection | None = None
        self._keys: dict[TableId, tuple[KeyColumn, ...]] = {}
        # Of several for a table the first reaches down furthest, as a table is read by ascending key.
        self._bounds: dict[str, Key | None] = {}
        for skip in skips:
            bound = self._bounds.setdefault(skip.table, skip.above)
            self._bounds[skip.table] = None if skip.above is None else bound

    def without(self, batch: ChangeBatch) -> ChangeBatch:
        """The batch without the changes that are contained. A changed key counts as a deletion and a creation."""
        name = str(batch.table.id)
        if name not in self._bounds or not len(batch):
            return batch
        bound = self._bounds[name]
        if bound is None:
            return batch.slice(0, 0)
        if batch.schema_change is not None:
            return batch
        batch = split_key_changes(batch, faults=False)
        with server_errors("keys cannot be compared"):
            kept = ~np.array(self._are_above(batch, bound), bool)
        return ChangeBatch(batch.table, batch.rows.filter(mask(kept)))

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    def _are_above(self, batch: ChangeBatch, bound: Key) -> list[bool]:
        if self._connection is None:
            self._connection = connect(self.config, application="tailrace keys")
        key = self._key(batch.table.id, len(bound))
        texts = []
        for column in key:
            after, before = (_texts(batch.rows.column(image), column.name) for image in ("after", "before"))
            texts.append(pc.coalesce(after, before).to_pylist())
        return ranges.are_above(self._connection, key, bound, texts)

    def _key(self, table: TableId, columns: int) -> tuple[KeyColumn, ...]:
        if table not in self._keys:
            assert self._connection is not None
            catalog = Catalog(self._connection, self.config)
            captured = catalog.table(table)
            key = () if captured is None else ranges.comparable_key(catalog, captured)
            if len(key) != columns:
                raise SourceError(
                    "the table was dropped or its key changed before the log from the time of its snapshot was read",
                    where=str(table),
                    remedy="start with a new checkpoint, for a new snapshot",
                )
            self._keys[table] = key
        return self._keys[table]


def _texts(images: pa.StructArray, name: str) -> pa.Array:
    return as_type(pc.struct_field(images, name), pa.string())
