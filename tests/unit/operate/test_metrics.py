"""Metrics: names and labels, and that dashboards, alerts and docs name metrics that there are."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.operate import as_debezium
from tailrace.operate.metrics import FAMILIES, exposition
from tailrace.operate.status import Live
from tailrace.operate.watch import Figures
from tailrace.pipeline.progress import RunProgress
from tailrace.pipeline.run_state import RunState
from tailrace.snapshot.reading import Reading
from tests.unit.operate.made import figures, with_tables

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "deploy" / "monitoring"
OTHERS = {"tailrace_info", "tailrace_memory_bytes", "tailrace_broken_files"}
OURS = {family.name + "_total" * family.is_counter for family in FAMILIES} | OTHERS


def samples(*found: Figures) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = exposition(found, ["broken.yaml"]).decode()
    families = text_string_to_metric_families(text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def named(found: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, /, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


@pytest.mark.parametrize(
    ("connector", "plugin", "more"),
    [
        ("postgres", "postgres", {}),
        ("mongodb", "mongodb", {"task": "0"}),
        ("sqlserver", "sql_server", {"task": "0"}),
        ("db2", "db2_server", {}),
    ],
)
def test_the_names_and_labels_of_the_exporter(connector: str, plugin: str, more: dict[str, str]) -> None:
    found = samples(with_tables(figures(connector), 2))
    task = {"plugin": plugin, "name": "shop.prefix", "context": "streaming", **more}
    labels = {**task, **({"database": "d"} if connector == "sqlserver" else {})}
    for name, value in {"Connected": 1, "QueueTotalCapacity": 8192}.items():
        assert named(found, f"debezium_metrics_{name}", **task) == value, "they are of the task, not of a database"
    values = {
        "MilliSecondsBehindSource": 2500,
        "MilliSecondsSinceLastEvent": 4000,
        "TotalNumberOfEventsSeen": 70,
        "NumberOfErroneousEvents": 17,
        "TotalNumberOfCreateEventsSeen": 40,
        "TotalNumberOfUpdateEventsSeen": 15,
        "TotalNumberOfDeleteEventsSeen": 5,
        "MilliSecondsBehindSourceMinValue": 100,
        "MilliSecondsBehindSourceMaxValue": 10_000,
        "MilliSecondsBehindSourceAverageValue": 5050,
    }
    for name, value in values.items():
        assert named(found, f"debezium_metrics_{name}", **labels) == pytest.approx(value, abs=50), name
    for share in (50, 95, 99):
        found_at = named(found, f"debezium_metrics_MilliSecondsBehindSourceP{share}", **labels)
        assert found_at == pytest.approx(100 * share, rel=0.02)
    transactions = ("debezium_metrics_NumberOfCommittedTransactions", frozenset(labels.items()))
    assert found.get(transactions) == (None if connector == "mongodb" else 8)
    labels["context"] = "snapshot"
    values = {"Running": 1, "Completed": 1, "Paused": 0, "Aborted": 0, "DurationInSeconds": 12}
    values |= {"Skipped": 0, "PausedDurationInSeconds": 3}
    for name, value in values.items():
        assert named(found, f"debezium_metrics_Snapshot{name}", **labels) == value, name
    assert named(found, "debezium_metrics_RowsScanned", table="public.t0", **labels) == 500


def test_figures_of_several_databases_are_of_none_of_them() -> None:
    found = samples(figures("sqlserver", **{"database.names": "d,e"}))
    labels = {"plugin": "sql_server", "name": "shop.prefix", "context": "streaming", "task": "0"}
    assert named(found, "debezium_metrics_MilliSecondsBehindSource", **labels) == 2500
    assert not [labels for _, labels in found if "database" in dict(labels)]


def test_the_process_is_counted_as_a_worker_of_connect() -> None:
    stopped = figures(name="other")
    stopped = replace(stopped, status=replace(stopped.status, run=RunState("stopped"), live=None))
    found = samples(figures(), stopped)
    assert named(found, "kafka_connect_worker_metrics_connector_count") == 2
    assert named(found, "kafka_connect_worker_metrics_task_count") == 1


def test_our_own_metrics() -> None:
    found = samples(with_tables(figures(), 2), figures(name="other"))
    for name, value in {
        "tailrace_ready": 1,
        "tailrace_source_up": 1,
        "tailrace_log_retained_bytes": 300,
        "tailrace_log_headroom_bytes": 5000,
        "tailrace_events_total": 70,
        "tailrace_batches_total": 4,
        "tailrace_restarts_total": 2,
        "tailrace_starts_total": 3,
        "tailrace_snapshot_rows": 500,
        "tailrace_snapshot_seconds_left": 40,
    }.items():
        assert named(found, name, pipeline="shop") == value, name
    assert named(found, "tailrace_lag_bytes", pipeline="shop", stage="written") == 64
    assert named(found, "tailrace_lag_bytes", pipeline="shop", stage="read") == 0
    assert named(found, "tailrace_condition", pipeline="shop", condition="incomplete") == 1
    assert named(found, "tailrace_condition", pipeline="other", condition="streaming") == 1
    assert named(found, "tailrace_condition", pipeline="other", condition="failed") == 0
    assert named(found, "tailrace_changes_total", pipeline="shop", operation="truncates") == 0
    assert named(found, "tailrace_changes_total", pipeline="shop", operation="creates") == 40
    assert named(found, "tailrace_transactions_total", pipeline="shop") == 8
    assert named(found, "tailrace_dead_letters", pipeline="shop", table="public.t1") == 17
    assert named(found, "tailrace_table_rows_total", pipeline="shop", table="public.t1") == 1
    assert named(found, "tailrace_tables", pipeline="shop", state="complete") == 2
    assert named(found, "tailrace_broken_files", file="broken.yaml") == 1
    assert ("tailrace_snapshot_rows", frozenset({("pipeline", "other")})) not in found


def test_dashboard_alerts_and_docs_name_metrics_that_there_are() -> None:
    texts = [file.read_text(encoding="utf-8") for file in MONITORING.iterdir()]
    assert {name for text in texts for name in re.findall(r"\btailrace_\w+", text)} <= OURS
    documented = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\btailrace_[a-z_]+", documented)) == OURS
    theirs = {name for name, _ in samples(with_tables(figures(), 2)) if name.startswith("debezium_metrics_")}
    table = documented.partition("### Debezium's")[2].partition("Left out")[0]
    for name in theirs - {"debezium_metrics_RowsScanned"}:
        assert f"`{name.removeprefix('debezium_metrics_')}`" in table, name


def test_the_dashboard_and_the_rules_parse() -> None:
    board = json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))
    assert len(board["panels"]) == len({panel["id"] for panel in board["panels"]})
    rules = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))
    for rule in rules["groups"][0]["rules"]:
        assert {"alert", "expr", "labels", "annotations"} <= set(rule)


@pytest.mark.parametrize(
    "arguments", [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]], ids=" ".join
)
def test_prometheus_takes_the_rules(arguments: list[str]) -> None:
    done = subprocess.run([promtool(), *arguments], cwd=MONITORING, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_metrics_and_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    ours = [line for line in exposition([with_tables(figures(), 3)]).splitlines(True) if b"debezium" not in line]
    done = subprocess.run([promtool(), "check", "metrics"], input=b"".join(ours), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    board = json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = [{"record": f"r{number}", "expr": each} for number, each in enumerate(expressions)]
    (tmp_path / "board.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run(
        [promtool(), "check", "rules", str(tmp_path / "board.yaml")], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def promtool() -> str:
    """Prometheus's own tool; skips where there is none."""
    found = os.environ.get("TAILRACE_PROMTOOL") or shutil.which("promtool")
    if found is None:
        pytest.skip("needs promtool in the PATH, or its place in TAILRACE_PROMTOOL")
    return found


def test_metrics_of_a_thousand_tables_cost_little() -> None:
    found = with_tables(figures(), 1000)
    exposition([found])
    began = time.process_time()
    text = exposition([found])
    assert time.process_time() - began < 0.5
    assert text.count(b"tailrace_table_rows_total{") == 1000


def test_the_first_snapshot_in_the_words_of_the_exporter() -> None:
    found = figures()
    reading = Reading(SnapshotPlace(("b", "c")), None, ("a", "b"), 2, 12).to_json()
    progress = RunProgress(0, 10, 1.0, {"phase": "snapshot", "reading": reading})
    status = replace(found.status, phase="snapshot", lag_seconds=3.0, live=Live(progress))
    metrics = samples(replace(found, status=status))
    labels = {"plugin": "postgres", "name": "shop.prefix"}
    for name, value in {
        "SnapshotRunning": 1,
        "SnapshotCompleted": 0,
        "TotalTableCount": 3,
        "RemainingTableCount": 2,
    }.items():
        assert named(metrics, f"debezium_metrics_{name}", context="snapshot", **labels) == value, name
    assert named(metrics, "debezium_metrics_MilliSecondsBehindSource", context="streaming", **labels) == -1


def test_each_attribute_of_the_reference_is_a_metric_or_documented_as_none() -> None:
    """The attributes of its pages on metrics of streaming, snapshots, schema histories and interning."""
    text = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    found = samples(with_tables(figures(), 2))
    emitted = {name.removeprefix("debezium_metrics_") for name, _ in found if name.startswith("debezium_metrics_")}
    # Some are there in certain conditions alone.
    known = emitted | set(re.findall(r'"(\w+)"', inspect.getsource(as_debezium)))
    for name in ATTRIBUTES.split():
        assert (name in known) or f"`{name}`" in text.partition("Left out")[2].partition("### Our own")[0], name
    for name in emitted:
        assert re.search(rf"`{name}(\{{table\}})?`", text), f"{name} is not documented"


ATTRIBUTES = """
LastEvent MilliSecondsSinceLastEvent NumberOfErroneousEvents TotalNumberOfEventsSeen TotalNumberOfCreateEventsSeen
TotalNumberOfUpdateEventsSeen TotalNumberOfDeleteEventsSeen NumberOfEventsFiltered NumberOfUnchangedEventsSkipped
CapturedTables QueueTotalCapacity QueueRemainingCapacity Connected MilliSecondsBehindSource
MilliSecondsBehindSourceMinValue MilliSecondsBehindSourceMaxValue MilliSecondsBehindSourceAverageValue
MilliSecondsBehindSourceP50 MilliSecondsBehindSourceP95 MilliSecondsBehindSourceP99 NumberOfCommittedTransactions
SourceEventPosition LastTransactionId MaxQueueSizeInBytes CurrentQueueSizeInBytes TotalTableCount RemainingTableCount
SnapshotRunning SnapshotPaused SnapshotAborted SnapshotCompleted SnapshotSkipped SnapshotDurationInSeconds
SnapshotPausedDurationInSeconds RowsScanned TableChunkCounts TableChunksCompletedCounts ChunkId ChunkFrom ChunkTo
TableFrom TableTo Status RecoveryStartTime ChangesRecovered ChangesApplied MilliSecondsSinceLastRecoveredChange
MilliSecondsSinceLastAppliedChange LastRecoveredChange LastAppliedChange HitCount MissCount PoolSize HitRatioPercent
NumberOfDisconnects NumberOfPrimaryElections
"""
