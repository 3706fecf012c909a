"""What Spark reports of a query is taken from Java once, in order, with none left out and none twice."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tailrace.pipeline.reports import Reports
from tailrace.spark.latest_file import LatestFile


class Java:
    """A query in Java that keeps its newest reports, and counts how many were read."""

    def __init__(self, most: int = 100) -> None:
        self.kept, self.most, self.read = list[str](), most, 0

    def add(self, *numbers: int) -> None:
        texts = [json.dumps({"batchId": number, "timestamp": str(number)}) for number in numbers]
        self.kept = [*self.kept, *texts][-self.most :]

    def lastProgress(self) -> Any:
        return self._report(self.kept[-1]) if self.kept else None

    def recentProgress(self) -> list[Any]:
        return [self._report(text) for text in self.kept]

    def _report(self, text: str) -> Any:
        def read() -> str:
            self.read += 1
            return text

        return SimpleNamespace(json=read)


def made(most: int = 100) -> tuple[Java, Reports]:
    java = Java(most)
    query: Any = SimpleNamespace(_jsq=java)
    return java, Reports(query)


def numbers(reports: Reports) -> list[int]:
    return [each["batchId"] for each in reports.new()]


def test_each_report_is_told_once_in_order() -> None:
    java, reports = made()
    assert (reports.last, numbers(reports)) == (None, [])
    java.add(0, 1)
    assert reports.last == {"batchId": 1, "timestamp": "1"}
    java.add(2, 3)
    assert numbers(reports) == [0, 1, 2, 3], "a look at the last one takes none away"
    assert numbers(reports) == []
    java.add(4)
    assert numbers(reports) == [4]


def test_a_look_reads_what_is_new_and_no_more() -> None:
    java, reports = made()
    java.add(*range(100))
    assert len(numbers(reports)) == 100
    java.read = 0
    for _ in range(10):
        assert numbers(reports) == []
    assert java.read == 10
    java.add(100, 101)
    assert numbers(reports) == [100, 101]
    assert java.read <= 14


def test_reports_that_spark_has_forgotten_meanwhile_do_not_bring_the_others_twice() -> None:
    java, reports = made(3)
    java.add(0, 1)
    assert numbers(reports) == [0, 1]
    java.add(2, 3, 4, 5, 6)
    assert numbers(reports) == [4, 5, 6]
    assert reports.last == {"batchId": 6, "timestamp": "6"}


def test_a_report_has_what_the_source_said_where_spark_did_not_ask_it(tmp_path: Path) -> None:
    java, file = Java(), LatestFile(tmp_path / "latest.json")
    file.write({"position": "7"}, {"complete_us": 1})
    query: Any = SimpleNamespace(_jsq=java)
    reports = Reports(query, file)
    for end in ("7", "8"):
        source = {"endOffset": {"position": end}, "latestOffset": {"position": end}}
        java.kept.append(json.dumps({"batchId": int(end), "sources": [source]}))
        last = reports.last
        assert last is not None
        assert last["sources"][0]["latestOffset"] == ({"complete_us": 1} if end == "7" else {})
