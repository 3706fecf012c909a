"""Delta tables with partitions, with properties of the user's, and with features that deltalake does not keep."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tailrace.errors import TableError
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableSchema
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.form import FEED, Forms
from tailrace.sinks.replica.layout import ReplicaLayout
from tailrace.sinks.replica.target import Target, read_table
from tailrace.sinks.replica.upkeep import Upkeep
from tests.unit.sinks.iceberg.lake import BAG, NAME, ORDERS, Lake, Row, order

DAY = Column("day", ConnectSchema("int32", True), pa.date32())
NUMBER = Column("place", ConnectSchema("double", True), pa.float64())
# Texts that name folders, paths and nulls elsewhere.
HARD = ["b/ü %", "a b", "x=y", "q'\"", "null", "%41", "..", "\n", "\\", "#?&+", None]


class DeltaReplica(Lake):
    """A replica below a folder."""

    def __init__(self, folder: Path, forms: Forms) -> None:
        super().__init__(folder)
        self.forms = forms

    def batch(self, number: int, upkeep: Upkeep | None = None) -> MicroBatch:
        return MicroBatch(
            str(self.folder / "lake"), "query", number, upkeep=upkeep, layout=ReplicaLayout(forms=self.forms)
        )

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(self.folder / "lake" / NAME)

    @property
    def partitions(self) -> list[str]:
        return list(self.delta.metadata().partition_columns)

    def rows(self) -> list[Row]:
        found: list[Row] = read_table(str(self.folder / "lake"), NAME).sort_by("id").to_pylist()
        return found

    def keep(self, first: int) -> None:
        upkeep = Upkeep(1)
        assert upkeep.after(Target(str(self.folder / "lake"), NAME), "query", first) is None


def with_column(schema: TableSchema, column: Column) -> TableSchema:
    return replace(schema, columns=(*schema.columns, column))


@pytest.fixture
def replica(tmp_path: Path) -> Callable[..., DeltaReplica]:
    def make(*partitions: str, table: str = ".*", **properties: str) -> DeltaReplica:
        names = {table: partitions} if partitions else {}
        return DeltaReplica(tmp_path, Forms({f"delta.{name}": text for name, text in properties.items()}, names))

    return make


def inserts(*rows: Row) -> list[tuple[str, Row | None, Row | None]]:
    return [("c", None, row) for row in rows]


def test_rows_move_between_partitions(replica: Callable[..., DeltaReplica]) -> None:
    here = replica("note", table=r"PUBLIC\.orders")
    here.write(*inserts(*(order(number, note) for number, note in enumerate(HARD))))
    assert here.partitions == ["note"]
    assert [row["note"] for row in here.rows()] == HARD
    last = len(HARD) - 1
    here.write(
        ("u", order(0, HARD[0]), order(0, None)),
        ("u", order(last, None), order(last, "x=y")),
        ("u", order(1), order(100, "a b")),
        ("d", order(2), None),
    )
    assert here.write(("d", order(2), None), again=True) == 0
    wanted = {number: note for number, note in enumerate(HARD) if number not in (1, 2)} | {0: None, last: "x=y"}
    assert {row["id"]: row["note"] for row in here.rows()} == {**wanted, 100: "a b"}


def test_a_renamed_column_still_partitions(replica: Callable[..., DeltaReplica]) -> None:
    here = replica("note")
    here.write(*inserts(order(1, "a"), order(2, None)))
    here.alter(("note", "remark"))
    assert here.partitions == ["remark"]
    here.write(
        *inserts({"id": 3, "remark": "b"}),
        schema=replace(ORDERS, columns=(ORDERS.columns[0], replace(ORDERS.columns[1], name="remark"))),
    )
    assert here.partitions == ["remark"]
    assert [row["remark"] for row in here.rows()] == ["a", None, "b"]
    here.alter(dropped=["remark"])
    assert here.partitions == []
    assert here.rows() == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_rows_without_a_key_leave_partitions(replica: Callable[..., DeltaReplica]) -> None:
    here = replica("note")
    here.write(*inserts(order(1, "a"), order(1, "a"), order(1, None), order(1, None), order(2, "a")), schema=BAG)
    here.write(("d", order(1, None), None), ("d", order(1, "a"), None), ("c", None, order(3, None)), schema=BAG)
    assert sorted(map(str, here.rows())) == sorted(
        map(str, [order(1, None), order(1, "a"), order(2, "a"), order(3, None)])
    )


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_that_stands_for_null_partitions_nothing(replica: Callable[..., DeltaReplica], text: str) -> None:
    here = replica("note")
    with pytest.raises(TableError, match="the column note, by which the table is partitioned, has an empty text"):
        here.write(*inserts(order(1, text), order(2, None)))
    here.write(*inserts(order(2, "a")))
    with pytest.raises(TableError, match="partition it by another column"):
        here.write(("u", order(2, "a"), order(2, text)))
    assert here.rows() == [order(2, "a")]


@pytest.mark.parametrize(("column", "says"), [("place", "is of type double"), ("nothing", "has no column nothing")])
def test_a_column_that_partitions_no_table(replica: Callable[..., DeltaReplica], column: str, says: str) -> None:
    here = replica(column)
    with pytest.raises(TableError, match=says):
        here.write(*inserts(order(1, place=1.5)), schema=with_column(ORDERS, NUMBER))


def test_a_table_is_partitioned_when_it_is_wholly_written_again(replica: Callable[..., DeltaReplica]) -> None:
    here = replica()
    here.write(*inserts(order(1, "a")))
    here.forms = Forms({}, {".*": ("note",)})
    here.write(*inserts(order(2, "b")))
    assert here.partitions == []
    here.alter(("note", "note2"), ("id", "id"))
    assert here.partitions == []
    here.alter(("note2", "note"))
    assert here.partitions == ["note"]
    assert here.rows() == [order(1, "a"), order(2, "b")]


@pytest.mark.slow
def test_partitions_are_maintained(replica: Callable[..., DeltaReplica]) -> None:
    here = replica("note", enableChangeDataFeed="true")
    for number in range(40):
        here.write(*inserts(order(number, HARD[number % 2])))
    wanted = here.rows()
    for file in (here.folder / "lake" / NAME).rglob("*.parquet"):
        then = time.time() - 3600
        os.utime(file, (then, then))
    for log in (here.folder / "lake" / NAME / "_delta_log").glob("*.json"):
        lines = [_older(json.loads(line)) for line in log.read_text().splitlines()]
        log.write_text("\n".join(map(json.dumps, lines)) + "\n")
    here.keep(0)
    assert len(here.delta.file_uris()) == 2
    assert here.rows() == wanted
    files = Target(str(here.folder / "lake"), NAME).open()
    assert files is not None
    kept = files.maintenance()
    on_disk = {str(file.relative_to(here.folder / "lake" / NAME)) for file in _data(here)}
    assert {*kept.live} | {*kept.others()} == on_disk
    assert {*kept.live} <= on_disk


def _data(here: DeltaReplica) -> list[Path]:
    return [file for file in (here.folder / "lake" / NAME).rglob("*.parquet") if "_delta_log" not in file.parts]


def _older(action: dict[str, Any]) -> dict[str, Any]:
    for kind, name in (("commitInfo", "timestamp"), ("remove", "deletionTimestamp"), ("add", "modificationTime")):
        if kind in action:
            action[kind][name] -= 3_600_000
    return action


def feed(here: DeltaReplica) -> list[tuple[int, str, int, str | None]]:
    rows = pa.table(here.delta.load_cdf(starting_version=0).read_all()).to_pylist()
    return sorted((row["_commit_version"], row["_change_type"], row["id"], row["note"]) for row in rows)


def test_the_change_feed_has_the_changes(replica: Callable[..., DeltaReplica]) -> None:
    here = replica("note", enableChangeDataFeed="true")
    here.write(*inserts(order(1, "a"), order(2, None)))
    here.write(
        *(("u", order(1, "a"), order(1, "b")), ("d", order(2), None), ("c", None, order(3, "c"))),
        *(("c", None, order(4, "x")), ("d", order(4, "x"), None)),
    )
    here.write(("t", None, None), *inserts(order(5, None)))
    assert feed(here) == [
        (0, "insert", 1, "a"),
        (0, "insert", 2, None),
        (1, "delete", 2, None),
        (1, "insert", 3, "c"),
        (1, "update_postimage", 1, "b"),
        (1, "update_preimage", 1, "a"),
        (2, "delete", 1, "b"),
        (2, "delete", 3, "c"),
        (2, "insert", 5, None),
    ]


def test_a_table_that_is_there_gets_the_properties(replica: Callable[..., DeltaReplica]) -> None:
    here = replica()
    here.write(*inserts(order(1, "a")))
    here.forms = Forms({FEED: "true", "owner": "shop"})
    here.write(("u", order(1, "a"), order(1, "b")))
    assert here.delta.metadata().configuration[FEED] == "true"
    assert here.delta.metadata().configuration["owner"] == "shop"
    version = here.delta.version()
    here.write(("u", order(1, "b"), order(1, "c")))
    assert here.delta.version() == version + 1
    rows = pa.table(here.delta.load_cdf(starting_version=version).read_all()).to_pylist()
    assert sorted((row["_change_type"], row["note"]) for row in rows) == [
        ("update_postimage", "b"),
        ("update_postimage", "c"),
        ("update_preimage", "a"),
        ("update_preimage", "b"),
    ]


@pytest.mark.parametrize("feature", ["deletionVectors", "columnMapping"])
def test_what_deltalake_does_not_keep_is_refused(replica: Callable[..., DeltaReplica], feature: str) -> None:
    here = replica()
    here.write(*inserts(order(1, "a")))
    _give(here, feature)
    with pytest.raises(TableError, match=rf"(?s)Delta's feature {feature}.*DROP FEATURE {feature}"):
        here.write(*inserts(order(2, "a")))


def _give(here: DeltaReplica, feature: str) -> None:
    """What another program does that gives a table a feature."""
    metadata = next(
        json.loads(line)
        for line in (here.folder / "lake" / NAME / "_delta_log" / f"{0:020}.json").read_text().splitlines()
        if "metaData" in line
    )
    if feature == "columnMapping":
        metadata["metaData"]["configuration"] |= {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": "2",
        }
        columns = json.loads(metadata["metaData"]["schemaString"])
        for number, field in enumerate(columns["fields"], 1):
            name = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
            field["metadata"] = name
        metadata["metaData"]["schemaString"] = json.dumps(columns)
    readers = ["deletionVectors"] if feature == "deletionVectors" else ["columnMapping"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers, "writerFeatures": readers}
    number = here.delta.version() + 1
    log = here.folder / "lake" / NAME / "_delta_log" / f"{number:020}.json"
    log.write_text("\n".join(json.dumps(each) for each in ({"protocol": protocol}, metadata)) + "\n")
