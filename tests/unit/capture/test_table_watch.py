"""Descriptions of tables: those that a table outgrew between two questions to the catalogue are sent by themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from tailrace.capture.table_watch import TableWatch
from tailrace.config import Config
from tailrace.connectors.offset import Reached
from tailrace.connectors.postgres.config import resolve
from tailrace.model.schema import ConnectSchema
from tailrace.model.structure import Structure
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.snapshot.table_note import TableNote

TABLE = TableId("shop", "public", "orders")
CONFIG = resolve(
    {
        "database.hostname": "h",
        "database.user": "u",
        "database.dbname": "d",
        "topic.prefix": "t",
        "table.watch.interval.ms": "3600000",
    }
)


class Catalogue:
    """What a connector reads of the catalogue: the columns of one table, renamed between two questions."""

    config = CONFIG

    def __init__(self) -> None:
        self.columns = ["id", "v"]

    def structures(self, config: Config, here: Reached) -> dict[TableId, Structure]:
        """See Connector.structures."""
        return {TABLE: Structure("1", {name: str(place) for place, name in enumerate(self.columns)})}

    def schema(self, config: Config, table: TableId) -> TableSchema:
        """See Connector.schema."""
        columns = tuple(Column(name, ConnectSchema("int32"), pa.int32()) for name in self.columns)
        return TableSchema(table, columns, ("id",), ("id",))


def looked(watch: TableWatch, catalogue: Any) -> tuple[TableNote, ...]:
    """The descriptions of a look at the end of the log."""
    watch.look(CONFIG, SimpleNamespace(position=0, log={}))  # type: ignore[arg-type]
    watch.ended(0)
    return watch.take(CONFIG) if watch.is_due(0) else ()


def test_a_description_comes_with_the_columns_of_its_moment() -> None:
    catalogue = Catalogue()
    (note,) = looked(TableWatch(catalogue), catalogue)  # type: ignore[arg-type]
    assert note.structure is not None
    assert note.schema is not None
    assert [column.name for column in note.schema.columns] == [*note.structure.columns] == ["id", "v"]


def test_a_table_that_is_renamed_after_its_description_was_read_is_told_as_it_was_and_then_as_it_is() -> None:
    catalogue = Catalogue()
    watch = TableWatch(catalogue)  # type: ignore[arg-type]
    watch.look(CONFIG, SimpleNamespace(position=0, log={}))  # type: ignore[arg-type]
    watch.ended(0)
    catalogue.columns = ["id", "note"]
    (before,) = watch.take(CONFIG)
    assert before.structure is not None
    assert ([*before.structure.columns], before.schema) == (["id", "v"], None)
    # At once, though the interval is an hour.
    (after,) = looked(watch, catalogue)
    assert after.structure is not None
    assert after.schema is not None
    assert [column.name for column in after.schema.columns] == [*after.structure.columns] == ["id", "note"]
