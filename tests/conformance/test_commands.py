"""Commands around a pipeline that does not run: `init`, `check`, `status`, `drop`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.connectors import registry
from tailrace.pipeline.definition import load
from tailrace.pipeline.run_state import run_state
from tests.conformance.pipelines import READY, Line, command
from tests.conformance.subject import KEY, NOTE, SECRET, VALUE, Insert, Source, Subject


@pytest.fixture(scope="module")
def source(subject: Subject) -> Iterator[Source]:
    """A database with two tables."""
    with subject.source() as source:
        source.create("items", "other")
        source.commit(Insert("items", {KEY: 1, VALUE: 0, NOTE: None}))
        yield source


def test_init_writes_a_file_that_check_takes(
    subject: Subject, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, environment = source.url()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "made.yaml"
    found = json.loads(command("init", url, "-o", file, "--sink", "console", "--json"))
    assert {str(source.id(table)) for table in ("items", "other")} <= set(found["tables"])
    text = file.read_text(encoding="utf-8")
    assert SECRET not in text
    assert f"connector: {subject.connector}\n" in text
    assert load(file).entry.name == subject.connector
    findings = json.loads(command("check", file, "--json", code=READY))
    assert [finding for finding in findings if finding["ok"] is False] == []
    assert "exists already" in command("init", url, "-o", file, code=1)


@pytest.mark.parametrize(("columns", "shares"), [((VALUE,), True), ((VALUE, KEY), False)], ids=str)
def test_rows_that_share_an_event_key_are_reported(
    subject: Subject, source: Source, columns: tuple[str, ...], shares: bool
) -> None:
    """By a warning of `check`, and `reconcile` does not compare their table."""
    package, table = registry.named(subject.connector).load(), source.id("items")
    given = {**source.properties("shared"), "topic.prefix": "t"}
    config = package.resolve({**given, "message.key.columns": f"{table.filtered}:{','.join(columns)}"})
    admin = package.admin(config)
    found = [each for each in admin.checks() if "share an event key" in each.what]
    assert [each.ok for each in found] == [None] * shares
    with admin.now() as now:
        schema = now.table(table)
        assert ("does not tell the table's rows apart" in (now.obstacle(schema, schema.key) or "")) is shares


def test_status_and_drop_know_what_a_pipeline_has_created(
    subject: Subject, source: Source, folder: Path, spark: SparkSession
) -> None:
    line = Line(subject, source, folder / "finished", tables=["items"])
    before = line.json("status")
    assert (before["phase"], before["position"]) == ("not started", None)
    line.command("check", code=READY)
    line.once(spark)
    source.commit(Insert("items", {KEY: 2, VALUE: 0, NOTE: None}))
    status = line.json("status")
    assert status["position"] != status["current"], "a change was made after the run"
    assert run_state(str(line.folder / "state")).caught_up is not None, "the run has stored what it saw of the log"
    assert status["lag_seconds"] > 0
    said = line.command("drop", "--yes")
    assert ": dropped" in said
    assert ": dropped" not in line.command("drop", "--yes")
    assert "problem" in line.command("check", code=1)
    error = line.fails(spark)
    assert error.remedy
