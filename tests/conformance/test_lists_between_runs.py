"""A replica equals its source, whatever lists and masks left out in an earlier run."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.pipelines import Line
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Row, Source, Subject, Update

ALWAYS, AT_TIMES = "always", "attimes"


def row(key: int) -> Row:
    return {KEY: key, VALUE: 0, NOTE: None}


def kept_by(subject: Subject, source: Source, folder: Path) -> Line:
    """A pipeline that keeps a replica."""
    return Line(
        subject,
        source,
        folder,
        {"replica": {"path": "lake", "read_again": {"at_most_every": "0s"}}},
        tables=[ALWAYS, source.signals],
        properties={"table.watch.interval.ms": "300", "signal.data.collection": str(source.id(source.signals))},
    )


def test_a_replica_is_equal_though_its_lists_were_narrowed_and_widened(
    subject: Subject, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Tables that were listed all the time are not read again."""
    caplog.set_level(logging.WARNING)
    with subject.source() as source:
        source.create(ALWAYS, AT_TIMES)
        source.commit(*(Insert(table, row(key)) for table in (ALWAYS, AT_TIMES) for key in (1, 2)))
        line = kept_by(subject, source, tmp_path / "lists")

        def equal_with(*tables: str) -> None:
            """Run with these tables in the list until the replica equals them."""
            listed = ",".join(re.escape(source.id(table).filtered) for table in tables)
            line.write(**{subject.package.include_list: listed})
            with line.running(spark) as run:
                source.commit(Insert(ALWAYS, row(len(source.rows(ALWAYS)) + 1)))
                line.until(lambda: line.equals(*tables), run)

        equal_with(ALWAYS)
        source.commit(Insert(AT_TIMES, row(3)))
        equal_with(ALWAYS, AT_TIMES)
        source.commit(Update(AT_TIMES, 1, {NOTE: "unseen"}))
        equal_with(ALWAYS)
        equal_with(ALWAYS, AT_TIMES)
        marked = [each.getMessage() for each in caplog.records if " is incomplete: " in each.getMessage()]
        assert [each.partition(" is ")[0] for each in marked] == [str(source.id(AT_TIMES))] * 2


def test_a_replica_is_equal_though_a_column_was_left_out_or_masked(
    subject: Subject, tmp_path: Path, spark: SparkSession
) -> None:
    with subject.source() as source:
        source.create(ALWAYS)
        source.commit(Insert(ALWAYS, row(1) | {NOTE: "first"}))
        line = kept_by(subject, source, tmp_path / "columns")
        plain = dict(line.content["source"]["config"])
        for altering in filter(None, (source.excluding(ALWAYS, NOTE), source.masking(ALWAYS, NOTE))):
            key = len(source.rows(ALWAYS)) + 1
            line.write(**altering)
            with line.running(spark) as run:
                source.commit(Insert(ALWAYS, row(key) | {NOTE: "more"}))
                line.until(lambda key=key: len(line.replica(ALWAYS)) == key, run)  # type: ignore[misc]
            assert not line.equals(ALWAYS)
            line.content["source"]["config"] = dict(plain)
            line.write()
            with line.running(spark) as run:
                line.until(lambda: line.equals(ALWAYS), run)
