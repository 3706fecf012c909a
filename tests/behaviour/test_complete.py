"""Up to which time a replica is complete: for people, programs, metrics and the jobs behind it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import tailrace
from tailrace.cli.main import app
from tailrace.operate.metrics import exposition
from tailrace.operate.watch import RunWatch
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.complete import ALL
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.sink import read_table
from tests.conftest import Database

# How often Spark says of a quiet query how far it is; ten seconds without it.
INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark that says of a quiet query several times a second how far it is."""
    before = spark.conf.get(INTERVAL)
    spark.conf.set(INTERVAL, "200")
    yield spark
    spark.conf.set(INTERVAL, before or "10000")


def pipeline(database: Database, folder: Path, sink: dict[str, Any]) -> Path:
    config = {**database.properties, "topic.prefix": "shop", "slot.name": f"slot_{database.name}"}
    content = {"name": "shop", "source": {"config": config}, "sink": sink, "checkpoint": "state", "trigger": "100ms"}
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def until(is_so: Callable[[], Any], run: Run) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        assert not run.await_(0.1), "the pipeline has ended"


def status(file: Path, code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["status", str(file), "--json"], catch_exceptions=False)
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def passed(file: Path, table: str | None = None) -> Callable[[], bool]:
    """Whether everything up to now is in the sink."""
    now = datetime.now(timezone.utc)
    return lambda: (tailrace.complete_until(file, table) or now) > now


def beside(lake: str) -> dict[str, datetime | None]:
    """What the table beside a replica says."""
    found = lake_at(lake, {}).below("_complete").open("shop")
    assert found is not None
    return {row["table"]: row["complete_until"] for row in found.scan().read_all().to_pylist()}


def test_a_replica_says_up_to_when_it_is_complete(database: Database, quick: SparkSession, tmp_path: Path) -> None:
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)",
        "CREATE TABLE days (id int PRIMARY KEY, day date)",
        "INSERT INTO days VALUES (1, '2026-01-01')",
    )
    file, lake = pipeline(database, tmp_path, {"replica": {"path": "lake"}}), str(tmp_path / "lake")
    assert tailrace.complete_until(file) is None
    run = Pipeline(load(file), quick).start()
    try:
        until(lambda: tailrace.complete_until(file), run)
        database.execute("INSERT INTO orders VALUES (2)")
        until(passed(file, "public.orders"), run)
        assert sorted(read_table(lake, "public.orders").column("id").to_pylist()) == [1, 2]
        until(passed(file), run)  # nothing new
        shown = status(file)
        assert datetime.fromisoformat(shown["complete_until"]) <= datetime.now(timezone.utc)
        assert [(each["table"], each["complete_until"] is not None) for each in shown["replica"]] == [
            ("public.days", True),
            ("public.orders", True),
        ]
        assert shown["tables"] == {"public.days": 1, "public.orders": 2}

        database.execute("INSERT INTO days VALUES (2, 'infinity')")
        until(lambda: run.set_aside, run)
        until(passed(file, "public.orders"), run)
        left = {each["table"]: each["complete_until"] for each in status(file, 1)["replica"]}
        until(passed(file, "public.orders"), run)
        shown = status(file, 1)
        now = {each["table"]: each["complete_until"] for each in shown["replica"]}
        assert now["public.days"] == left["public.days"]
        assert now["public.orders"] > left["public.orders"]
        assert left["public.days"] <= shown["complete_until"] < now["public.orders"]
        assert shown["complete_until"] in CliRunner().invoke(app, ["status", str(file)], terminal_width=200).output
    finally:
        run.stop()
    names = (None, "public.days", "public.orders")
    assert beside(lake) == {name or ALL: tailrace.complete_until(file, name) for name in names}
    again = file.with_name("again.yaml")
    again.write_text(file.read_text().replace("checkpoint: state", "checkpoint: other").replace(": slot_", ": other_"))
    since = datetime.now(timezone.utc)
    run = Pipeline(load(again), quick).start()
    try:
        assert all(each is None or each > since for each in beside(lake).values()), "a first snapshot replaces the rows"
    finally:
        run.stop()


def test_a_sink_without_tables_is_complete_as_a_whole(database: Database, quick: SparkSession, tmp_path: Path) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    file = pipeline(database, tmp_path, {"json": {"path": "out"}})
    run = Pipeline(load(file), quick).start()
    try:
        until(lambda: tailrace.complete_until(file), run)
        database.execute("INSERT INTO orders VALUES (1)")
        until(passed(file), run)
        assert tailrace.complete_until(file, "public.orders") is None
    finally:
        run.stop()
    watch = RunWatch(load(file))
    try:
        deadline = time.monotonic() + 120
        while watch.figures().status.complete_until is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        found = tailrace.complete_until(file)
        assert found is not None
        lines = exposition([watch.figures()]).decode().splitlines()
        (line,) = [each for each in lines if each.startswith("tailrace_complete_until_seconds{")]
        assert line.startswith('tailrace_complete_until_seconds{pipeline="shop",table=""} ')
        assert float(line.rpartition(" ")[2]) == pytest.approx(found.timestamp(), abs=0.002)
    finally:
        watch.close()
