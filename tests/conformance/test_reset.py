"""A stopped pipeline forgets its position, as operators of Connect have it do: it begins again, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.errors import ConfigError
from tailrace.pipeline.definition import load
from tailrace.pipeline.query_id import position_of
from tailrace.pipeline.reset import reset
from tailrace.pipeline.runner import Pipeline
from tests.conformance.pipelines import Line, Started
from tests.conformance.subject import KEY, NOTE, VALUE, Delete, Insert, Row, Source, Subject, Update


def row(key: int) -> Row:
    return {KEY: key, VALUE: 0, NOTE: None}


def reset_lines(line: Line) -> list[Path]:
    """The checkpoints that were moved aside, once the position is forgotten."""
    assert reset(load(line.file))
    assert not (line.folder / "state").exists()
    assert reset(load(line.file)) == [], "nothing is left to forget"
    return sorted(line.folder.glob("state.reset-*"))


def test_a_pipeline_that_is_reset_reads_everything_again(
    subject: Subject, source: Source, folder: Path, spark: SparkSession
) -> None:
    source.create("goods", "untouched")
    for table in ("goods", "untouched"):
        source.commit(*(Insert(table, row(key)) for key in range(1, 31)))
    tables = ["goods", "untouched"]
    line = Line(subject, source, folder / "reset", {"replica": {"path": "lake"}}, tables=tables)
    with line.running(spark) as run:
        line.until(lambda: line.equals(*tables), run)
        with pytest.raises(ConfigError, match="the pipeline moves its position"):
            reset(load(line.file))
        source.commit(Insert("goods", row(40)))
        line.until(lambda: line.equals(*tables), run)
    source.commit(Insert("goods", row(50)), Update("goods", 1, {NOTE: "new"}), Delete("goods", 2))
    assert len(reset_lines(line)) == 1
    source.commit(Insert("goods", row(60)), Update("goods", 3, {KEY: 300}), Delete("goods", 40))

    started = Started(Pipeline(load(line.file), spark))
    line.until(lambda: position_of(load(line.file)).planned is not None, started.run)
    started.run.stop()
    assert len(reset_lines(line)) == 2, "a first snapshot that is not finished is forgotten as well"

    with line.running(spark) as run:
        line.until(lambda: line.equals(*tables), run)
        source.commit(Update("goods", 300, {VALUE: 7}), Delete("goods", 50), Insert("untouched", row(70)))
        line.until(lambda: line.equals(*tables), run)
