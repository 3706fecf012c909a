"""Keys of a replica that the source is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.pipeline.sides import Sides
from tailrace.sinks.replica.compare import ComparedColumns, Suspects

TABLE = TableSchema(
    TableId("db", "dbo", "t"), (Column("id", ConnectSchema("string", False), pa.string()),), ("id",), ("id",)
)


class Now:
    """A source in which no text but of one letter is a value of the key."""

    def table(self, _: TableId) -> TableSchema:
        return TABLE

    def texts(self, keys: pa.Table) -> list[tuple[str, ...]]:
        return [(each or "",) for each in keys.column("id").to_pylist()]

    def understood(self, _: TableSchema, __: Sequence[str], wanted: Sequence[tuple[str, ...]]) -> Iterator[pa.Table]:
        yield pa.table({"id": pa.array([text if len(text) == 1 else None for (text,) in wanted], pa.string())})


class Admin:
    @contextmanager
    def now(self) -> Iterator[Now]:
        yield Now()


def test_the_source_is_not_asked_for_what_is_no_key_of_its() -> None:
    sides: Any = object.__new__(Sides)
    sides.table, sides.layout, sides._admin = TABLE, ComparedColumns.of(TABLE, None), Admin()
    keys = pa.table({"id": pa.array(["a", "bb", None])})
    asked = sides.ask(Suspects(keys, sides.layout.key_hashes(keys)))
    assert asked.accepted.tolist() == [True, False, False]
