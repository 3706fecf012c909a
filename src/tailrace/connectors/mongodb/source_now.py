"""Reads the collections as of one cluster time for comparisons: all documents, or those of some keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.mongodb.catalog import Collections
from tailrace.connectors.mongodb.client import FAILURES, Client
from tailrace.connectors.mongodb.documents import Documents
from tailrace.connectors.mongodb.position import time_of
from tailrace.connectors.mongodb.snapshot.reads import at_time, batches, value_of
from tailrace.connectors.ports import Position, SourceNow
from tailrace.errors import SourceError
from tailrace.model.native import native_rows
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override


class MongoNow(SourceNow):
    """Implements SourceNow by reads as of one cluster time."""

    def __init__(self, client: Client, config: Config, horizon: Position) -> None:
        self._client, self._collections = client, Collections(client, config)
        self._documents = Documents(config)
        self._horizon = horizon
        self._time = time_of(horizon.to_text()) - 1

    @property
    @override
    def horizon(self) -> Position:
        return self._horizon

    @override
    def tables(self) -> list[TableId]:
        with FAILURES.translated("the collections cannot be listed"):
            return self._collections.captured()

    @override
    def followed(self) -> list[TableId]:
        with FAILURES.translated("the collections cannot be listed"):
            return self._collections.read_first()

    @override
    def table(self, table: TableId) -> TableSchema:
        if table not in self.tables():
            raise SourceError("the collection is gone", where=str(table), remedy="remove it from the pipeline")
        return self._documents.schema(table)

    @override
    def obstacle(self, table: TableSchema, key: Sequence[str]) -> str | None:
        return None if tuple(key) == table.key else f"its replica is not kept by {', '.join(table.key)}"

    @override
    def rows(self, table: TableSchema) -> Iterator[pa.Table]:
        for page, _ in self._read(table, {}):
            yield page

    @override
    def texts(self, keys: pa.Table) -> list[Key]:
        """Keys are texts already."""
        return [(text,) for text in keys.column(0).to_pylist()]

    @override
    def understood(self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]) -> Iterator[pa.Table]:
        yield pa.table({names[0]: pa.array([key[0] if _is_json(key[0]) else None for key in wanted], pa.string())})

    @override
    def rows_of(
        self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        """A document's text is its version."""
        ids = [value_of(key[0]) for key in wanted]
        yield from self._read(table, {"filter": {"_id": {"$in": ids}}})

    def _read(self, table: TableSchema, options: dict[str, Any]) -> Iterator[tuple[pa.Table, pa.Array]]:
        """Rows of documents, and the documents' texts."""
        rows = self._documents
        with FAILURES.translated(f"{table.id}: the documents cannot be read"):
            for batch in batches(self._client, table.id, {**at_time(self._time), **options}):
                native = native_rows(table, rows.images(table, batch.documents, rows.keys(batch.documents)))
                page = pa.Table.from_arrays(native.flatten(), schema=pa.schema(list(native.type)))
                yield page, rows.text(table, batch.documents)


def _is_json(text: str | None) -> bool:
    try:
        value_of(text or "")
    except ValueError:
        return False
    return True
