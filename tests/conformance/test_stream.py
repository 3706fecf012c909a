"""What a running pipeline makes of the changes of its tables. All tests share the pipeline; each has its own tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.pipeline.runner import Run
from tests.conformance.pipelines import PREFIX, READY, Line, Record
from tests.conformance.subject import KEY, NOTE, SECRET, VALUE, Delete, Insert, Row, Source, Subject, Update

KEYED = ("items", "moved", "first", "second", "hidden", "masked", "wide", "rolled", "emptied", "void", "left_out")
HEARTBEATS = f"__debezium-heartbeat.{PREFIX}"


def row(key: int, note: str | None = None) -> Row:
    return {KEY: key, VALUE: key * 10, NOTE: note}


@pytest.fixture(scope="module")
def stream(subject: Subject, source: Source, folder: Path, spark: SparkSession) -> Iterator[Until]:
    """A pipeline that has read its snapshot."""
    source.create(*KEYED)
    source.create("bag", has_key=False)
    source.commit(*(Insert("items", row(key)) for key in (1, 2, 3)), Insert("bag", row(1)), Insert("hidden", row(1)))
    properties = {
        "provide.transaction.metadata": "true",
        "heartbeat.interval.ms": "500",
        "skipped.operations": "none",
        **source.excluding("hidden", VALUE),
        **source.masking("masked", NOTE),
        subject.package.exclude_list: f".*{source.id('left_out').table}",
    }
    line = Line(subject, source, folder / "stream", properties=properties)
    with line.running(spark) as run:
        yield Until(line, run)


class Until:
    """A pipeline that runs."""

    def __init__(self, line: Line, run: Run) -> None:
        self.line, self.run = line, run

    def __call__(self, condition: Callable[[], Any]) -> Any:
        return self.line.until(condition, self.run)

    def has(self, table: str, *expected: tuple[str, int]) -> None:
        """Wait for as many changes of a table, and compare operations and keys."""
        self(lambda: len(self.line.keys(table)) >= len(expected))
        assert self.line.keys(table) == list(expected)


def test_the_first_snapshot_reads_every_row(stream: Until) -> None:
    read = [event for event in stream.line.events("items") if event["op"] == "r"]
    assert sorted(key for op, key in stream.line.keys("items") if op == "r") == [1, 2, 3]
    assert all(event["source"]["snapshot"] not in (None, "false") for event in read)
    assert stream.line.keys("bag")[:1] == [("r", 1)]
    assert stream.line.events("void") == []


def test_changes_are_events_in_the_order_of_the_log(source: Source, stream: Until) -> None:
    source.commit(Insert("items", row(10, "a")))
    source.commit(Update("items", 10, {NOTE: "b"}), Update("items", 10, {NOTE: None}))
    source.commit(Delete("items", 10))
    expected = [("c", None, "a"), ("u", "a", "b"), ("u", "b", None), ("d", None, None)]

    def found() -> list[tuple[str, Row | None, Row | None]]:
        return [change for change in stream.line.changes("items") if KEY in (change[2] or change[1] or {})]

    stream(lambda: any(op == "d" for op, _, _ in found()))
    own = [(op, before, after) for op, before, after in found() if (after or before or {})[KEY] == 10]
    assert [(op, before and before[NOTE], after and after[NOTE]) for op, before, after in own] == expected
    assert own[0][2] == row(10, "a")


def test_the_source_block_identifies_the_origin_of_a_change(subject: Subject, source: Source, stream: Until) -> None:
    (event,) = [event for event in stream.line.events("bag") if event["op"] == "r"]
    block = subject.package.source_block(subject.package.resolve(stream.line.content["source"]["config"]))
    assert set(event["source"]) == {field.name for field in block.members}
    assert (event["source"]["connector"], event["source"]["name"]) == (block.connector, PREFIX)
    values = set(map(str, event["source"].values()))
    assert set(source.id("bag").parts) <= values
    assert event["ts_ms"] >= event["source"]["ts_ms"] > 0


def test_a_tombstone_follows_a_delete(source: Source, stream: Until) -> None:
    source.commit(Insert("first", row(1)))
    source.commit(Delete("first", 1))
    topic = stream.line.topic("first")
    records = stream(lambda: (found := stream.line.records(topic)) and len(found) >= 3 and found)
    assert [record["value"] and record["value"]["op"] for record in records] == ["c", "d", None]
    assert [source.key(record["key"]) for record in records] == [1] * 3
    assert records[0]["key"] == records[1]["key"] == records[2]["key"]


def test_a_new_key_is_a_delete_and_a_create(source: Source, stream: Until) -> None:
    source.commit(Insert("moved", row(1)))
    source.commit(Update("moved", 1, {KEY: 2}))
    topic = stream.line.topic("moved")
    records = stream(lambda: (found := stream.line.records(topic)) and len(found) >= 4 and found)
    told = [(record["value"] and record["value"]["op"], source.key(record["key"])) for record in records]
    assert told == [("c", 1), ("d", 1), (None, 1), ("c", 2)]


def test_events_of_a_new_key_have_the_other_key_in_a_header(source: Source, stream: Until) -> None:
    source.commit(Insert("moved", row(11)))
    source.commit(Update("moved", 11, {KEY: 12}))
    topic = stream.line.topic("moved")

    def found() -> list[Record]:
        return [each for each in stream.line.records(topic) if source.key(each["key"]) in (11, 12)]

    records = stream(lambda: len(found()) >= 4 and found())
    assert json.loads(records[1]["headers"]["__debezium.newkey"]) == {KEY: 12}
    assert json.loads(records[3]["headers"]["__debezium.oldkey"]) == {KEY: 11}


def test_a_table_without_a_key_has_events_without_keys(source: Source, stream: Until) -> None:
    source.commit(Insert("bag", row(7)), Insert("bag", row(7)))
    source.commit(Delete("bag", 7))
    stream.has("bag", ("r", 1), ("c", 7), ("c", 7), ("d", 7), ("d", 7))
    records = stream.line.records(stream.line.topic("bag"))
    assert {record["key"] is None for record in records} == {True}


def test_a_transaction_has_metadata(source: Source, stream: Until) -> None:
    source.commit(Insert("first", row(22)), Insert("second", row(23)), Insert("first", row(24)))

    def marks() -> list[dict[str, Any]]:
        found = [record["value"] for record in stream.line.records(f"{PREFIX}.transaction")]
        ends = [place for place, mark in enumerate(found) if mark["status"] == "END" and mark["event_count"] == 3]
        return found[ends[-1] - 1 : ends[-1] + 1] if ends else []

    begin, end = stream(marks)
    assert begin["status"] == "BEGIN"
    assert {each["data_collection"]: each["event_count"] for each in end["data_collections"]} == {
        str(source.id("first")): 2,
        str(source.id("second")): 1,
    }
    found = {
        image[KEY]: (event["transaction"]["total_order"], event["transaction"]["data_collection_order"])
        for table in ("first", "second")
        for event in stream.line.events(table)
        if (image := source.image(event["after"])) and image[KEY] in (22, 23, 24)
    }
    assert found == {22: (1, 1), 23: (2, 1), 24: (3, 2)}


def test_heartbeats_are_sent_without_changes(stream: Until) -> None:
    before = len(stream.line.records(HEARTBEATS))
    stream(lambda: len(stream.line.records(HEARTBEATS)) >= before + 2)
    record = stream.line.records(HEARTBEATS)[-1]
    assert record["key"] == {"serverName": PREFIX}
    assert record["value"]["ts_ms"] > 0


def test_excluded_tables_and_columns_are_not_in_events(source: Source, stream: Until) -> None:
    source.commit(Insert("left_out", row(1)), Insert("hidden", row(2, "seen")))
    stream.has("hidden", ("r", 1), ("c", 2))
    assert stream.line.records(stream.line.topic("left_out")) == []
    images = [source.image(event["after"]) or {} for event in stream.line.events("hidden")]
    assert all(VALUE not in image for image in images)
    assert images[-1] == {KEY: 2, NOTE: "seen"}


def test_masked_columns_have_asterisks(source: Source, stream: Until) -> None:
    source.commit(Insert("masked", row(1, SECRET)))
    source.commit(Update("masked", 1, {NOTE: f"{SECRET}2"}))
    stream.has("masked", ("c", 1), ("u", 1))
    assert [after[NOTE] for _, _, after in stream.line.changes("masked") if after] == ["***", "***"]


def test_a_new_column_is_in_the_events_after_it(source: Source, stream: Until) -> None:
    source.commit(Insert("wide", row(1)))
    source.add_column("wide", "more")
    source.commit(Insert("wide", {**row(2), "more": 5}), Update("wide", 1, {"more": 6}))
    stream.has("wide", ("c", 1), ("c", 2), ("u", 1))
    assert [after for _, _, after in stream.line.changes("wide")] == [
        row(1),
        {**row(2), "more": 5},
        {**row(1), "more": 6},
    ]


def test_rolled_back_changes_are_no_events(source: Source, stream: Until) -> None:
    source.roll_back(Insert("rolled", row(1)))
    source.commit(Insert("rolled", row(2)))
    stream.has("rolled", ("c", 2))


def test_a_truncate_is_an_event(source: Source, stream: Until) -> None:
    source.commit(Insert("emptied", row(1)))
    source.truncate("emptied")
    stream(lambda: len(stream.line.events("emptied")) == 2)
    event = stream.line.events("emptied")[-1]
    assert (event["op"], event["before"], event["after"]) == ("t", None, None)


def test_status_shows_how_far_a_running_pipeline_is(source: Source, stream: Until) -> None:
    source.commit(Insert("second", row(30)))
    stream(lambda: ("c", 30) in stream.line.keys("second"))
    status = stream(lambda: (found := stream.line.json("status")) and found["lag_seconds"] is not None and found)
    assert status["phase"] == "stream"
    assert status["position"]
    assert status["current"]
    assert (status["problems"], status["incomplete"]) == ([], [])
    assert status["position"] in stream.line.command("status")


def test_check_finds_nothing_wrong_with_a_running_pipeline(stream: Until) -> None:
    findings = json.loads(stream.line.command("check", "--json", code=READY))
    assert [finding for finding in findings if finding["ok"] is False] == []


def test_secrets_are_in_no_file_of_the_pipeline(stream: Until, source: Source) -> None:
    """In the checkpoint, in the records, in what commands print; masked values count as secrets."""
    files = [file for file in stream.line.folder.rglob("*") if file.is_file() and file != stream.line.file]
    assert files
    telling = []
    for file in files:
        with suppress(FileNotFoundError):  # Spark, which is running, renames files meanwhile
            telling += [str(file)] if SECRET in file.read_text("utf-8", errors="replace") else []
    assert telling == []
    assert SECRET not in stream.line.command("status", "--json")
    assert SECRET not in stream.line.command("check", "--json", code=READY)
