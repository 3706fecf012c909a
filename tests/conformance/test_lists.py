"""What the include and exclude lists leave out is never read, whoever asks for it. Without Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.behaviour.stepping import Stepped
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Source, Subject

STEPS = 12


def notices_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
@pytest.mark.parametrize("together", [True, False], ids=["with_another", "alone"])
def test_a_signal_for_a_table_outside_the_lists_reads_nothing_of_it(
    subject: Subject, source: Source, tmp_path: Path, kind: str, together: bool
) -> None:
    """The notification says so, the table is incomplete, and the tables beside it are read."""
    place = f"{kind}_{'beside' if together else 'alone'}"
    inside, outside = source.id(f"in_{place}"), source.id(f"out_{place}")
    source.create(inside.table, outside.table)
    source.commit(*(Insert(each.table, {KEY: 1, VALUE: 0, NOTE: None}) for each in (inside, outside)))
    file = tmp_path / "notices.jsonl"
    stream = Stepped(
        subject.connector,
        source,
        {
            **source.properties(place.replace("_", "")),
            subject.package.include_list: re.escape(inside.filtered),
            "snapshot.mode": "no_data",
            "signal.data.collection": str(source.id(source.signals)),
            "notification.enabled.channels": "file",
            "notification.file": str(file),
        },
    )
    read: list[str] = []
    try:
        for _ in range(3):
            stream.step()
        asked = [outside, *([inside] if together else [])]
        signal = {"type": kind, "data-collections": [str(each) for each in asked]}
        source.signal(uuid4().hex, "execute-snapshot", json.dumps(signal))
        for _ in range(STEPS):
            stream.step()
            read += [each["topic"] for each in stream.records if (each["value"] or {})["payload"]["op"] == "r"]
            if notices_of(file)[-1]["type"] == "COMPLETED" and len(notices_of(file)) > 2:
                break
        notices = notices_of(file)
    finally:
        stream.close()
    ended = [each["additional_data"] for each in notices if each["type"] == "TABLE_SCAN_COMPLETED"]
    of_inside = {str(inside): "SUCCEEDED"} if together else {}
    assert {each["scanned_collection"]: each["status"] for each in ended} == {str(outside): "NOT_CAPTURED", **of_inside}
    assert next(each for each in ended if each["status"] == "NOT_CAPTURED")["total_rows_scanned"] == "0"
    assert [topic.rpartition(".")[2] for topic in read] == ([inside.table] if together else [])
    assert [each["table"] for each in stream.offset["snapshots"]["incomplete"]] == [str(outside)]
    assert notices[-1]["type"] == "COMPLETED"
