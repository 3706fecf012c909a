"""What an operator sees of a running pipeline: its figures, and each fault within ten seconds, in words."""

from __future__ import annotations

import json
import os
import signal
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.postgres.options import SLOT_NAME
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Pipeline
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.operated import PATIENCE, Asked, operated
from tests.behaviour.told import printed
from tests.unit.connectors.posted import Endpoint
from tests.unit.pipeline.lineage_events import sent, to_file

ALL = 120


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of this module's own, which goes away."""
    with EmbeddedPostgres(18, settings={"max_slot_wal_keep_size": "1GB"}) as server:
        yield server


@pytest.fixture
def pipeline(server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Path]:
    """A replica of two tables."""
    name = f"shop_{time.time_ns()}"
    server.create_database(name)
    with server.connect(name) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        connection.execute("CREATE TABLE other (id int PRIMARY KEY)")
        connection.execute("INSERT INTO orders SELECT g, 'x' FROM generate_series(1, 10) g")
    own = {"topic.prefix": "shop", "slot.name": name, "publication.name": "pub"}
    content = {
        "name": "shop",
        "source": {"config": {**server.properties(name), **own}},
        "sink": {"replica": {"path": "lake"}},
        "checkpoint": "state",
        "trigger": "200ms",
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    yield file
    server.start()
    server.drop_database(name)


def execute(server: EmbeddedPostgres, pipeline: Path, statement: str) -> None:
    with server.connect(load(pipeline).config()[DATABASE_DBNAME]) as connection:
        connection.execute(statement.encode())


def test_the_figures_of_a_pipeline_and_a_database_that_goes_away(
    server: EmbeddedPostgres, pipeline: Path, spark: SparkSession
) -> None:
    with operated(load(pipeline), spark) as asked:
        assert asked.health("/health")[0] == 200
        assert asked.until("streaming", ALL)[0] == 200
        the_figures_are_those_of_the_pipeline(server, pipeline, asked)

        server.stop("immediate")
        status, _, what, todo = asked.until("source away")
        assert (status, asked.health("/health")[0]) == (503, 200)
        assert "cannot connect" in what or "refused" in what
        assert todo.startswith("nothing: the pipeline waits for it, and goes on by itself")
        assert asked.metric("tailrace_source_up", pipeline="shop") == 0
        assert asked.metric("tailrace_condition", condition="source away") == 1
        assert asked.metric("debezium_metrics_Connected", context="streaming") == 0
        code, text = printed(pipeline)
        assert (code, "source away" in text, what.split(":")[0] in text) == (0, True, True)

        behind = asked.metric("tailrace_lag_seconds", stage="written") or 0.0
        # The lag grows meanwhile.
        asked.eventually(lambda: (asked.metric("tailrace_lag_seconds", stage="written") or 0.0) > behind, PATIENCE)
        server.start()
        assert asked.until("streaming", ALL)[0] == 200
        execute(server, pipeline, "INSERT INTO orders VALUES (12, 'y')")
        asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 12, PATIENCE)


def the_figures_are_those_of_the_pipeline(server: EmbeddedPostgres, pipeline: Path, asked: Asked) -> None:
    execute(server, pipeline, "INSERT INTO orders VALUES (11, 'y')")
    asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 11, PATIENCE)
    for name, value in (("TotalNumberOfCreateEventsSeen", 1), ("NumberOfCommittedTransactions", 1)):
        assert asked.metric(f"debezium_metrics_{name}", plugin="postgres", context="streaming") == value, name
    for operation, value in (("reads", 10), ("creates", 1), ("deletes", 0)):
        assert asked.metric("tailrace_changes_total", pipeline="shop", operation=operation) == value, operation
    for name, value in (
        ("debezium_metrics_TotalNumberOfEventsSeen", 11),
        ("debezium_metrics_Connected", 1),
        ("debezium_metrics_NumberOfErroneousEvents", 0),
        ("debezium_metrics_QueueTotalCapacity", 8192),
    ):
        assert asked.metric(name, plugin="postgres", name="shop", context="streaming") == value, name
    for name, value in (("Running", 0), ("Completed", 1), ("Aborted", 0), ("Paused", 0)):
        assert asked.metric(f"debezium_metrics_Snapshot{name}", plugin="postgres", context="snapshot") == value, name
    assert asked.metric("tailrace_events_total", pipeline="shop") == 11
    since = asked.metric("debezium_metrics_MilliSecondsSinceLastEvent", context="streaming")
    assert since is not None
    assert 0 <= since < 600_000, "no longer than this test may take"
    asked.eventually(lambda: asked.metric("tailrace_lag_bytes", stage="written") == 0, PATIENCE)
    behind = "debezium_metrics_MilliSecondsBehindSource"
    asked.eventually(lambda: asked.metric(behind, context="streaming") == 0, PATIENCE)
    assert asked.metric("debezium_metrics_QueueRemainingCapacity", context="streaming") == 8192
    assert (asked.metric("tailrace_log_headroom_bytes") or 0) > 900_000_000
    assert (asked.metric("tailrace_log_retained_bytes") or -1) >= 0
    assert (asked.metric("tailrace_memory_bytes", process="java") or 0) > 50_000_000
    assert (asked.metric("tailrace_batch_stage_seconds_total", stage="triggerExecution") or 0) > 0
    assert asked.metric("tailrace_tables", state="complete") == 2
    (shown,) = asked.json("/status")
    assert (shown["condition"], shown["events"], shown["rows"]["public.orders"]) == ("streaming", 11, 11)
    code, text = printed(pipeline)
    assert (code, "streaming" in text) == (0, True)
    the_archive_has_all_but_secrets(server, pipeline)
    assert server.password not in str(shown) + asked.get("/metrics")[1].decode()


def the_archive_has_all_but_secrets(server: EmbeddedPostgres, pipeline: Path) -> None:
    (pipeline.parent / "state" / "shop.log").write_text(f"password={server.password}\n", encoding="utf-8")
    archive = pipeline.parent / "doctor.zip"
    done = CliRunner().invoke(app, ["doctor", str(pipeline), "--out", str(archive), "--json"], catch_exceptions=False)
    assert (done.exit_code, archive.stat().st_mode & 0o777) == (0, 0o600)
    names = set(json.loads(done.stdout)["files"])
    assert {"versions.json", "pipeline.json", "check.json", "status.json", "log/shop.log"} <= names
    assert {"checkpoint/metadata", "checkpoint/lease.json", "checkpoint/replica.json"} <= names
    with zipfile.ZipFile(archive) as file:
        texts = {name: file.read(name).decode() for name in file.namelist()}
    assert not [name for name, text in texts.items() if server.password in text]
    assert texts["log/shop.log"] == "password=********\n"
    assert json.loads(texts["status.json"])["condition"] == "streaming"
    assert json.loads(texts["pipeline.json"])["config"]["topic.prefix"] == "shop"


def until_nothing_is_written(asked: Asked) -> None:
    """A run that is writing when its sink is taken away fails: here it waits."""
    asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 10, 60)
    seen = [asked.metric("tailrace_batches_total")]

    def is_quiet() -> bool:
        time.sleep(4)
        seen.append(asked.metric("tailrace_batches_total"))
        return seen[-1] == seen[-2]

    asked.eventually(is_quiet, 60)


@pytest.mark.long
def test_a_sink_that_cannot_be_written_and_a_server_that_hangs(
    server: EmbeddedPostgres, pipeline: Path, spark: SparkSession
) -> None:
    lake = pipeline.parent / "lake"
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        until_nothing_is_written(asked)
        lake.rename(pipeline.parent / "aside")
        lake.touch()
        status, _, what, todo = asked.until("sink away")
        assert (status, asked.health("/health")[0]) == (503, 200)
        assert f"{lake} is a file" in what
        assert todo.endswith("If it stays: see that it is mounted and may be written")
        assert asked.metric("tailrace_sink_up") == 0
        code, text = printed(pipeline)
        assert (code, f"{lake} is a file" in text.replace(" ", "") or "is a file" in text) == (0, True)
        lake.unlink()
        (pipeline.parent / "aside").rename(lake)
        asked.until("streaming", ALL)

        postmaster = int((server.data_dir / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        os.kill(postmaster, signal.SIGSTOP)
        try:
            what = asked.until("source away")[2]
            assert "the database has not answered for " in what
            assert asked.metric("tailrace_source_up") == 0
        finally:
            os.kill(postmaster, signal.SIGCONT)
        asked.until("streaming", ALL)


@pytest.mark.long
def test_a_slot_that_is_lost_and_a_table_that_is_set_aside(
    server: EmbeddedPostgres, pipeline: Path, spark: SparkSession
) -> None:
    # Else the table would soon be read again.
    told = pipeline.read_text(encoding="utf-8").replace("path: lake", "path: lake\n    on_incomplete: tell")
    pipeline.write_text(told, encoding="utf-8")
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        execute(server, pipeline, "ALTER TABLE orders ALTER note TYPE int USING 1")
        execute(server, pipeline, "INSERT INTO orders VALUES (20, 2)")
        status, _, what, todo = asked.until("incomplete")
        assert (status, asked.health("/health")[0]) == (200, 200)
        assert "public.orders" in what
        assert todo
        code, text = printed(pipeline)
        assert (code, "incomplete" in text, "public.orders" in text) == (1, True, True)

        name = load(pipeline).config()[SLOT_NAME]
        execute(
            server,
            pipeline,
            f"SELECT pg_terminate_backend(active_pid, 60000) FROM pg_replication_slots WHERE slot_name = '{name}'",
        )
        asked.eventually(lambda: dropped(server, name), 30)
        asked.eventually(lambda: asked.health()[1] in ("failed", "stuck"), PATIENCE, asked.health)
        status, _, what, todo = asked.health()
        assert status == 503
        assert "slot" in what
        assert todo
        code, text = printed(pipeline)
        assert (code, "slot" in text) == (1, True)


def dropped(server: EmbeddedPostgres, name: str) -> bool:
    with server.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active", [name]
        )
        try:
            connection.execute("SELECT pg_drop_replication_slot(%s)", [name])
        except Exception as error:
            return "does not exist" in str(error)
    return True


@pytest.mark.long
def test_lineage_of_a_run(server: EmbeddedPostgres, pipeline: Path, spark: SparkSession) -> None:
    content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["source"]["config"] |= to_file(pipeline.parent)
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        asked.eventually(lambda: sent(pipeline.parent) != [], 30)
    start, *_, end = sent(pipeline.parent)
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    name = load(pipeline).config()[DATABASE_DBNAME]
    assert [each["name"] for each in start["inputs"]] == [f"{name}.public.orders", f"{name}.public.other"]
    lake = pipeline.parent / "lake"
    assert [each["name"] for each in end["outputs"]] == [str(lake / f"public.{each}") for each in ("orders", "other")]
    assert set(end["outputs"][0]["facets"]["columnLineage"]["fields"]) == {"id", "note"}
    assert server.password not in str(sent(pipeline.parent))


@pytest.mark.long
def test_notifications_by_http_of_a_run_that_ends_at_once(
    server: EmbeddedPostgres, pipeline: Path, spark: SparkSession
) -> None:
    endpoint = Endpoint()
    content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    told = {"notification.enabled.channels": "http", "notification.http.url": endpoint.url}
    content["source"]["config"] |= {**told, "notification.http.allow.private.networks": "true"}
    pipeline.write_text(yaml.safe_dump({**content, "trigger": "availableNow"}), encoding="utf-8")
    try:
        run = Pipeline(load(pipeline), spark).start()
        run.await_()
        run.stop()
    finally:
        endpoint.shutdown()
        endpoint.server_close()
    types = [each["type"] for each in endpoint.bodies if each["aggregate_type"] == "Initial Snapshot"]
    assert (types[0], types[-1]) == ("STARTED", "COMPLETED")
    assert types.count("TABLE_SCAN_COMPLETED") == 2
