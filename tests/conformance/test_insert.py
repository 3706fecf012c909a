"""How many modules and functions one INSERT runs through, from the server's log to the row for Kafka."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from pyspark.sql.types import StructType

import tailrace
from tailrace.capture.capture import Capture
from tailrace.connectors import registry
from tailrace.spark.shapes import Shaper
from tests.behaviour import streams_here
from tests.conformance.stepped import row
from tests.conformance.subject import Insert, Source, Subject

HOME = next(iter(tailrace.__path__))
MOST_MODULES = 100
"""Measured: 92 for databases that SQL reads, 81 for MongoDB, 62 for the toy."""


@pytest.mark.long
def test_an_insert_runs_through_few_modules(subject: Subject, source: Source) -> None:
    streams_here.install()
    source.create("one_insert")
    source.commit(Insert("one_insert", row(1)))
    package = registry.named(subject.connector).load()
    config = package.resolve({**source.properties("one_insert"), "topic.prefix": "t"})
    capture = Capture(package.connector(config))
    try:
        offset = capture.begin()
        for _ in range(3):
            offset, _ = _read(capture, source, offset)
        source.commit(Insert("one_insert", row(2)))
        with _calls() as calls:
            _, rows = _read(capture, source, offset)
    finally:
        capture.close()
    modules = {file for file, _ in calls}
    print(f"\n{subject.connector}: {len(modules)} modules, {len(calls)} functions for one INSERT")
    assert rows == 1
    assert len(modules) <= MOST_MODULES


def _read(capture: Capture, source: Source, start: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """A micro-batch as Spark asks for it: its end, and how many rows it has for Kafka."""
    source.settle()
    end = capture.head(start, None)
    shaper = Shaper(capture, StructType(), "", "run")
    return end, sum(
        rows.num_rows
        for split in capture.plan(start, end)
        for chunk in capture.read(split)
        for rows in shaper.rows(chunk)
    )


@contextmanager
def _calls() -> Iterator[set[tuple[str, int]]]:
    """The functions of the package that are called: their files and lines."""
    found: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            found.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
