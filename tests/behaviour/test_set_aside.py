"""A date before Christ in one of several tables, by night: the others go on, and in the morning nothing is lost."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.target import read_table
from tests.behaviour.streams import properties
from tests.conftest import Database


def command(*arguments: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def until(running: Run, condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        assert not running.await_(0.2)


def rows(root: Path, table: str) -> dict[int, Any]:
    folder = root / table / "_delta_log"
    return {row["id"]: row["born"] for row in read_table(str(root), table).to_pylist()} if folder.exists() else {}


def test_one_table_is_set_aside_seen_and_read_again(
    spark: SparkSession, database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("people", "pets"):
        database.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, born date)", f"INSERT INTO {name} VALUES (1, NULL)")
    database.execute("INSERT INTO people VALUES (2, '0044-03-15 BC')")
    file, told, root = tmp_path / "pipeline.yaml", tmp_path / "told", tmp_path / "replica"
    given = {"notification.enabled.channels": "file", "notification.file": str(told), "signal.poll.interval.ms": "100"}
    replica: dict[str, Any] = {"path": "replica"}
    content = {
        "source": {"config": {**properties(database), **given}},
        "sink": {"replica": replica},
        "checkpoint": "state",
        "trigger": "200ms",
    }
    file.write_text(yaml.safe_dump(content))
    running = Pipeline(load(file), session=spark).start()
    with caplog.at_level(logging.ERROR):
        until(running, lambda: rows(root, "public.pets") == {1: None})
    database.execute("INSERT INTO people VALUES (3, 'infinity')", "INSERT INTO pets VALUES (3, '2020-01-01')")
    until(running, lambda: len(rows(root, "public.pets")) == 2)
    assert "public.people is set aside, the other tables go on" in caplog.text
    assert "public.people, column born: a value has no counterpart" in running.progress().set_aside[0]
    running.stop()
    notices = [json.loads(line) for line in told.read_text().splitlines()]
    assert [each["additional_data"]["table"] for each in notices if each["type"] == "SET_ASIDE"] == ["public.people"]

    (table,) = command("status", file, code=1)["set_aside"]
    assert (table["table"], table["changes"]) == ("public.people", 1)
    stored = read_table(str(root / "_aside"), "public.people").to_pylist()
    assert [(row["op"], json.loads(row["after"])) for row in stored] == [("c", {"id": 3, "born": "infinity"})]

    # In the morning: the value is given a place, and the table is read again.
    replica["out_of_range"] = {r"public\.people\..*": "text"}
    file.write_text(yaml.safe_dump(content))
    assert command("retry", file)["data"]["data-collections"] == ["public.people"]
    running = Pipeline(load(file), session=spark).start()
    try:
        until(running, lambda: rows(root, "public.people") == {1: None, 2: "-0043-03-15", 3: "infinity"})
        database.execute("INSERT INTO people VALUES (4, '2020-01-01')")
        until(running, lambda: rows(root, "public.people").get(4) == "2020-01-01")
        assert running.progress().set_aside == ()
    finally:
        running.stop()
    assert command("status", file)["set_aside"] == []
    assert command("retry", file) is None
