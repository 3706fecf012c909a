"""Figures of pipelines that do not run."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tailrace.connectors.finding import Finding
from tailrace.operate.spread import Spread
from tailrace.operate.status import Live, ReplicaTable, Status
from tailrace.operate.watch import Figures, RunTotals
from tailrace.pipeline.batches import Batches
from tailrace.pipeline.definition import from_content
from tailrace.pipeline.progress import RunProgress
from tailrace.pipeline.run_state import RunState
from tailrace.sinks.replica.aside import SetAside
from tailrace.snapshot.report import Report

CONFIGS: dict[str, dict[str, str]] = {
    "postgres": {"database.hostname": "h", "database.user": "u", "database.dbname": "d"},
    "mongodb": {"mongodb.connection.string": "mongodb://reader:hidden@h:27017/?replicaSet=r"},
    "sqlserver": {"database.hostname": "h", "database.user": "u", "database.names": "d"},
    "db2": {"database.hostname": "h", "database.user": "u", "database.dbname": "d"},
}


def figures(connector: str = "postgres", name: str = "shop", sink: Any = None, **config: str) -> Figures:
    """A pipeline that streams."""
    given = {**CONFIGS[connector], "topic.prefix": "shop.prefix", **config}
    content = {
        "name": name,
        "source": {"connector": connector, "config": given},
        "sink": sink or {"replica": {"path": "lake"}},
        "checkpoint": "state",
    }
    definition = from_content(content, base=Path("/nowhere"), where="test")
    progress = RunProgress(3, 70, 1.5, {"phase": "stream"}, batches=Batches(4, {"addBatch": 2.5}, {"addBatch": 0.5}))
    offset = {"phase": "stream", "position": "0/180"}
    slot = {"slot": {"headroom_bytes": 5000}, "retained_bytes": 300}
    status = Status(
        name,
        "stream",
        3,
        "0/180",
        current="0/1C0",
        lag_bytes=64,
        lag_seconds=2.5,
        tables={},
        fields=slot,
        offset=offset,
    )
    status = replace(status, run=RunState("running"), live=Live(progress))
    now = time.time()
    counts = {"reads": 10, "creates": 40, "updates": 15, "deletes": 5, "truncates": 0, "messages": 0, "transactions": 8}
    topics = frozenset(["shop.prefix.public.orders"])
    totals = RunTotals(70, 4, {"addBatch": 2.5}, 2, rows={"public.orders": 70}, counts=counts, topics=topics)
    behind = Spread()
    for seconds in range(1, 101):
        behind.add(seconds / 10)
    return Figures(definition, definition.config(), status, totals, now, now - 4, now - 1, 3, 12.0, 0, 0.0, behind, 3.0)


def with_tables(found: Figures, number: int) -> Figures:
    """The same with many tables, one of them set aside, a snapshot that runs, and a warning."""
    until = "2026-01-01T12:00:00.000+00:00"
    names = [f"public.t{each}" for each in range(number)]
    verified: dict[str, Any] = {"verified_up_to": until, "verified_on": until, "verified_percent": 50}
    tables = tuple(
        ReplicaTable(name, "complete", "noon", None, takes=None, is_lacking=False, complete_until=until, **verified)
        for name in names
    )
    report = Report(
        "incremental", "public.t0", 500, 900, chunk=1, chunks=2, seconds_left=40.0, waiting=(), paused=False
    )
    aside = (SetAside("public!2Et1", "noon", "no number", "lake/_aside", 17),)
    warned = (Finding("restart", None, "the query was started again", "see the log"),)
    status = replace(found.status, replica=tables, snapshot=report, set_aside=aside, problems=warned)
    rows = {f"public.t{each}": each for each in range(number)}
    return replace(found, status=status, totals=replace(found.totals, rows=rows), scanned={"public.t0": 500})
