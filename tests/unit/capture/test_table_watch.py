"""Descriptions of tables: those that a table outgrew between two questions to the catalogue are sent by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.capture.table_watch import TableWatch
from tailrace.config import Config
from tailrace.connectors.captured_lists import CapturedLists
from tailrace.connectors.offset import Reached
from tailrace.connectors.postgres.config import resolve
from tailrace.model.differences import differences
from tailrace.model.schema import ConnectSchema
from tailrace.model.structure import Stored, Structure
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

    def structures(self, config: Config, reached: Reached) -> dict[TableId, Structure]:
        """The columns by their places."""
        return {TABLE: Structure("1", {name: str(place) for place, name in enumerate(self.columns)})}

    def schema(self, config: Config, table: TableId) -> TableSchema:
        """All columns are numbers."""
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


NARROW = resolve({**CONFIG.given, "table.include.list": "public.customers"})


class Older(Catalogue):
    """A catalogue that does not tell when its tables were made."""

    def older(self, config: Config, reached: Reached, tables: Any) -> Any:
        """No table is known to be older."""
        return tables


def described(catalogue: Any, log: Mapping[str, Any], *, batches: int = 1) -> tuple[Structure, Mapping[str, Any]]:
    """What a process sends of the table after an offset, and what the offset after some batches has of the log."""
    found: list[TableNote] = []
    watch = TableWatch(catalogue)
    for _ in range(batches):
        watch.look(catalogue.config, SimpleNamespace(position=0, log=log))  # type: ignore[arg-type]
        watch.ended(0)
        log = watch.noted(log, {"other": 1})
        found += watch.take(catalogue.config) if watch.is_due(0) else []
    (note,) = found
    assert note.structure is not None
    return note.structure, log


def lists_of(config: Config, log: Mapping[str, Any]) -> dict[str, Any]:
    return CapturedLists.at(config, log).to_json()


def test_a_table_that_the_lists_did_not_have_before_may_lack_rows() -> None:
    before = {"lists": lists_of(NARROW, {})}
    structure, log = described(Older(), before)
    assert (structure.epoch, structure.unread) == (1, "it was not captured when its rows were written")
    # Until the next batch nobody knows whether the sink has the description.
    assert described(Older(), log)[0].unread
    structure, log = described(Older(), log, batches=2)
    assert structure.unread
    assert log["other"] == 1
    structure, log = described(Older(), log)
    assert (structure.epoch, structure.unread) == (1, None)


def test_a_first_start_and_an_offset_of_an_earlier_release_say_nothing_of_the_lists() -> None:
    structure, log = described(Older(), {})
    assert (structure.epoch, structure.unread) == (0, None)
    assert log["lists"] == lists_of(CONFIG, {})
    earlier = {"tables": {"since": 5, "lists": lists_of(NARROW, {})["digest"], "epoch": 3, "next": 7}}
    assert described(Older(), earlier)[0].epoch == 4


@pytest.mark.parametrize("is_reported", [False, True])
def test_a_table_that_the_lists_did_not_have_for_a_start_is_incomplete(is_reported: bool) -> None:
    now = Structure("1", {"id": "1"}, epoch=2, is_reported=is_reported)
    assert differences(Stored.of(replace(now, epoch=0)), now).why == ("it was not captured for a while",)
    assert not differences(Stored.of(replace(now, epoch=1)), now).why


def test_a_table_that_had_signals_is_another_list() -> None:
    signals = replace(CONFIG, given={**CONFIG.given, "signal.data.collection": "public.signals"})
    log = {"lists": CapturedLists.at(signals, {}).to_json()}
    assert CapturedLists.at(CONFIG, log).is_new


def test_tables_of_filter_steps_are_lists_as_well() -> None:
    plain = CapturedLists.at(CONFIG, {})
    log = {"lists": plain.to_json()}
    for steps, is_new in (
        ('[{"filter": {"tables": ["public[.]a"]}}]', True),
        ('[{"filter": {"operations": ["c"]}}]', False),
    ):
        assert CapturedLists.at(replace(CONFIG, steps=steps), log).is_new is is_new
