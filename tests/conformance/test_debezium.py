"""A pipeline continues at an offset as Debezium stores it, and prints its own position as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.behaviour.streams import eventually
from tests.conformance.pipelines import PREFIX, READY, Line
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Source, Subject

CONTINUES = {"snapshot.mode": "no_data"}


def insert(*keys: int) -> list[Insert]:
    return [Insert("handed", {KEY: key, VALUE: 0, NOTE: None}) for key in keys]


@pytest.fixture(scope="module")
def first(subject: Subject, source: Source, folder: Path, spark: SparkSession) -> Line:
    """A pipeline that has read a few changes, and has stopped."""
    source.create("handed")
    line = Line(subject, source, folder / "first", tables=["handed"])
    source.commit(*insert(1))
    line.once(spark)
    source.commit(*insert(2, 3))
    line.once(spark)
    return line


def handed(first: Line) -> dict[str, Any]:
    """What the command prints."""
    found: dict[str, Any] = json.loads(first.command("offset").splitlines()[-1])
    return found


def second(subject: Subject, first: Line, folder: Path, offsets: Any, **more: str) -> Line:
    """A pipeline with a checkpoint of its own that continues there, with what the first one has on the server."""
    same = {name: value for name, value in first.source.properties(first.name).items() if name.endswith(".name")}
    own = {**CONTINUES, **same, "offset.takeover": json.dumps(offsets), **more}
    if subject.connector == "postgres":
        own["slot.takeover"] = "true"
    return Line(subject, first.source, folder, tables=["handed"], properties=own)


def test_a_pipeline_continues_where_another_program_stopped(
    subject: Subject, source: Source, first: Line, folder: Path, spark: SparkSession
) -> None:
    offsets = handed(first)
    (entry,) = offsets["offsets"]
    assert PREFIX in entry["partition"].values()
    source.commit(*insert(4, 5))
    file = folder / "offsets.json"
    file.write_text(json.dumps(offsets), encoding="utf-8")
    line = second(subject, first, folder / "second", offsets, **{"offset.takeover": str(file)})
    # The slot is held for a while after a query has ended.
    eventually(lambda: "is in use" not in line.command("check", code=(*READY, 1)))
    assert "the pipeline begins where Debezium stopped" in line.command("check", code=READY)
    line.once(spark)
    source.commit(*insert(6))
    line.once(spark)
    assert line.keys("handed") == [("c", 4), ("c", 5), ("c", 6)], "none is missing, none comes twice"
    assert handed(line)["offsets"] != offsets["offsets"]


@pytest.mark.parametrize(
    ("stored", "more", "said"),
    [
        ({"snapshot": "INITIAL", "snapshot_completed": False, "initsync": True}, {}, "snapshot is not finished"),
        (
            {"incremental_snapshot_collections": '[{"incremental_snapshot_collections_id":"a.b"}]'},
            {},
            "incremental snapshot is not finished, of a.b",
        ),
        ({}, {"topic.prefix": "other"}, "with topic.prefix=shop, and this one has other"),
        ({}, {"snapshot.mode": "initial"}, "the tables would be read again"),
        ({}, {"offset.takeover": "nowhere.json"}, "nowhere.json cannot be read"),
        ({}, {"offset.takeover": "{"}, "is no JSON of offsets"),
        ({}, {"offset.takeover": "{}"}, "Debezium has read nothing"),
    ],
)
def test_an_offset_from_which_changes_would_be_lost_is_refused(
    subject: Subject, first: Line, tmp_path: Path, stored: dict[str, Any], more: dict[str, str], said: str
) -> None:
    offsets = handed(first)
    offsets["offsets"][0]["offset"].update(stored)
    assert said in second(subject, first, tmp_path / "refused", offsets, **more).command("check", code=1)


@pytest.mark.long
def test_a_start_from_such_an_offset_fails(subject: Subject, first: Line, tmp_path: Path, spark: SparkSession) -> None:
    offsets = handed(first)
    offsets["offsets"][0]["offset"].update({"snapshot": "INITIAL", "snapshot_completed": False, "initsync": True})
    error = second(subject, first, tmp_path / "refused", offsets).fails(spark)
    assert "snapshot is not finished" in str(error)
    assert "start the connector again" in str(error.remedy)


@pytest.mark.long
def test_a_pipeline_that_runs_or_has_no_position_prints_no_offset(
    subject: Subject, source: Source, tmp_path: Path, spark: SparkSession
) -> None:
    source.create("unread")
    line = Line(subject, source, tmp_path / "new", tables=["unread"])
    assert "has no position in the log yet" in line.command("offset", code=1)
    with line.running(spark):
        assert "stop it first" in line.command("offset", code=1)
