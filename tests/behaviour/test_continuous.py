"""A replica that is compared with its source all the time, in parts of its tables, and repaired if it may be."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.operate.metrics import exposition
from tailrace.operate.watch import RunWatch
from tailrace.pipeline import continuous
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.pipeline.verified import Verified, stored
from tailrace.sinks.replica.sink import read_table
from tests.behaviour.other_writer import write_as_another
from tests.conftest import Database

TABLES = ("names", "numbers", "pairs")


def pipeline(database: Database, folder: Path, *, repairs: bool) -> Path:
    config = {**database.properties, "topic.prefix": "shop", "slot.name": f"slot_{database.name}"}
    content = {
        "name": "shop",
        "source": {"config": {**config, "signal.poll.interval.ms": "100"}},
        "sink": {"replica": {"path": "lake"}},
        "checkpoint": "state",
        "trigger": "100ms",
        "reconcile": {"continuous": True, "rate": 100000, "repair": repairs},
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def until(is_so: Callable[[], Any], run: Run) -> None:
    deadline = time.monotonic() + 200
    while not is_so():
        assert time.monotonic() < deadline
        assert not run.await_(0.2), "the pipeline has ended"


def told(file: Path) -> dict[str, dict[str, Any]]:
    """What `status` says of the replica's tables, by their own names; the exit code is right."""
    done = CliRunner().invoke(app, ["status", str(file), "--json"], catch_exceptions=False)
    tables = {each["table"].partition(".")[2]: each for each in json.loads(done.stdout.splitlines()[-1])["replica"]}
    assert done.exit_code == any(each["is_lacking"] for each in tables.values())
    return tables


def test_wrong_rows_are_noticed_while_the_pipeline_runs_and_repaired(
    database: Database,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, value in {"PART_ROWS": 15, "_PASS_SECONDS": 0.0, "_SHARE": 1.0}.items():
        monkeypatch.setattr(continuous, name, value)
    database.execute(
        "CREATE TABLE numbers (id int PRIMARY KEY, v text)",
        "INSERT INTO numbers SELECT n, 'v' || n FROM generate_series(-20, 20) AS n",
        "CREATE TABLE pairs (a smallint, b bigint, v text, PRIMARY KEY (a, b))",
        "INSERT INTO pairs SELECT n % 3, n, 'v' FROM generate_series(1, 30) AS n",
        "CREATE TABLE names (name text PRIMARY KEY)",
        "INSERT INTO names VALUES ('a'), ('B'), ('c')",
    )
    file, lake = pipeline(database, tmp_path, repairs=False), tmp_path / "lake"

    def verified() -> dict[str, Verified]:
        tables = {name: Verified() for name in TABLES}
        return tables | {name.partition(".")[2]: each for name, each in stored(str(tmp_path / "state")).items()}

    run = Pipeline(load(file), spark).start()
    try:
        until(lambda: all(each.up_to for each in verified().values()), run)
        tables = told(file)
        assert [*tables] == [*TABLES]
        assert all(each["verified_up_to"] <= each["verified_on"] for each in tables.values())
        assert not any(each["differs"] or each["is_lacking"] for each in tables.values())
        write_as_another(lake / "public.numbers", lambda table: table.delete("id IN (-17, 12)"))
        write_as_another(
            lake / "public.pairs", lambda table: table.update(updates={"v": "'w'"}, predicate="a = 1 AND b = 10")
        )
        schema = read_table(str(lake), "public.pairs").schema
        surplus = pa.Table.from_pylist([{"a": 2, "b": 999, "v": "v"}], schema)
        write_as_another(lake / "public.pairs", lambda table: write_deltalake(table, surplus, mode="append"))
        with caplog.at_level(logging.ERROR):
            until(lambda: all(verified()[each].differs for each in ("numbers", "pairs")), run)
            until(lambda: "surplus (first a=2, b=999)" in caplog.text, run)
            last, now = verified()["numbers"].up_to, time.time()
            until(lambda: (verified()["names"].up_to or 0) > now, run)
        tables = told(file)
        assert (tables["numbers"]["is_lacking"], tables["numbers"]["state"]) == (True, "incomplete")
        assert verified()["numbers"].up_to == last, "it does not count as verified while it differs"
        assert "missing (first id=" in tables["numbers"]["differs"]
        assert not tables["names"]["differs"]
        first = "1 missing (first id=-17), of id from the first key to (-6)"
        assert f"public.numbers differs from its source: {first}" in caplog.text
        assert "public.pairs differs from its source: 1 different (first a=1, b=10)" in caplog.text
        assert any("public.numbers differs" in line for line in run.incomplete)
    finally:
        run.stop()
    watch = RunWatch(load(file))
    try:
        until_metrics(watch)
    finally:
        watch.close()
    run = Pipeline(load(pipeline(database, tmp_path, repairs=True)), spark).start()
    try:
        until(lambda: not any(each.differs for each in verified().values()), run)
    finally:
        run.stop()
    for table in ("numbers", "pairs"):
        rows = sorted(map(str, read_table(str(lake), f"public.{table}").to_pylist()))
        with database.connect() as connection:
            names = read_table(str(lake), f"public.{table}").column_names
            there = connection.execute(f"SELECT {', '.join(names)} FROM {table}".encode()).fetchall()
        assert rows == sorted(str(dict(zip(names, row, strict=True))) for row in there)


def until_metrics(watch: RunWatch) -> None:
    deadline = time.monotonic() + 120
    while True:
        lines = exposition([watch.figures()]).decode().splitlines()
        if 'tailrace_table_differs{pipeline="shop",table="public.numbers"} 1.0' in lines:
            assert 'tailrace_table_differs{pipeline="shop",table="public.names"} 0.0' in lines
            assert any(line.startswith("tailrace_verified_up_to_seconds{") for line in lines)
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)
