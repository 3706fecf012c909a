"""The command beside a pipeline of Spark's: what it prints, its exit codes, and the repair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Pipeline
from tests.behaviour.streams import followed
from tests.behaviour.test_reconcile import ITEMS, traffic
from tests.conftest import Database


def command(code: int, *arguments: object) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def reports(code: int, *arguments: object) -> dict[str, dict[str, Any]]:
    """The reports by table, of --json."""
    (line,) = command(code, "reconcile", *arguments, "--json").splitlines()
    return {report["table"]: report for report in json.loads(line)["tables"]}


@pytest.fixture
def pipeline(database: Database, spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A pipeline that runs."""
    database.execute(*ITEMS, "CREATE TABLE log (line text)", "INSERT INTO log VALUES ('one')")
    database.execute("CREATE TABLE signals (id text PRIMARY KEY, type text, data text)")
    config = {**database.properties, "topic.prefix": "shop", "slot.name": f"slot_{database.name}"}
    config["signal.data.collection"] = "public.signals"
    content = {
        "name": "shop",
        "source": {"config": {**config, "signal.poll.interval.ms": "200"}},
        "sink": {"replica": {"path": "lake"}},
        "checkpoint": "state",
        "trigger": "100ms",
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    run = Pipeline(load(file), spark).start()
    with followed(run):
        yield file
    run.stop()


@pytest.mark.long
def test_a_replica_is_compared_and_repaired_while_its_pipeline_runs(database: Database, pipeline: Path) -> None:
    first = reports(0, pipeline, "--timeout", 200)
    assert {name: report["outcome"] for name, report in first.items()} == {
        "public.items": "equal",
        "public.log": "equal",
    }
    items, log = (DeltaTable(str(pipeline.parent / "lake" / f"public.{name}")) for name in ("items", "log"))
    items.delete("id IN (1900, 1901)")
    log.delete()
    text = command(1, "reconcile", pipeline, "--timeout", 200)
    assert "2,000 in the source, 1,998 in the replica" in text
    assert "id=1900" in text
    assert "it has no key" in text
    assert "With --repair" in text
    with traffic(database, 100):
        assert reports(1, pipeline, "-t", "public.items")["public.items"]["missing"] == 2
    mended = reports(0, pipeline, "--repair", "--timeout", 200)
    assert mended["public.items"]["repaired"] == 2
    assert {report["outcome"] for report in mended.values()} == {"equal"}
    assert "equal" in command(0, "reconcile", pipeline)
    assert not (pipeline.parent / "lake" / "public.signals").exists(), "the rows of windows are no data"
