"""What captures changes on the server stops while a pipeline runs: it is stuck, though it has read all there is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from tailrace.pipeline.definition import load
from tests.behaviour.operated import operated
from tests.behaviour.test_operate import ALL
from tests.behaviour.told import Showing, told
from tests.conformance.sqlserver import SqlServerSource

pytestmark = pytest.mark.long

AGENT = "EXEC xp_servicecontrol '{}', 'SQLServerAGENT'"
JOB = "EXEC sys.sp_cdc_{}_job @job_type = N'capture'"
FAULTS = {
    "SQL Server Agent stopped": (
        AGENT.format("STOP"),
        AGENT.format("START"),
        Showing(
            ("stuck",),
            "SQL Server Agent is not running",
            "start the service SQL Server Agent",
            code=1,
            connect="FAILED",
        ),
    ),
    "capture job ended": (
        JOB.format("stop"),
        JOB.format("start"),
        Showing(
            ("stuck",),
            "is not running, so changes do not come",
            JOB.format("start"),
            code=1,
            connect="FAILED",
        ),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_captures_stops(
    sqlserver_source: SqlServerSource, tmp_path: Path, spark: SparkSession, fault: str
) -> None:
    source = sqlserver_source
    content = {
        "name": "shop",
        "source": {
            "connector": "sqlserver",
            "config": {**source.properties("shop"), "topic.prefix": "shop", "table.include.list": r"dbo\.orders"},
        },
        "sink": {"replica": {"path": "lake"}},
        "checkpoint": "state",
        "trigger": "200ms",
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    stop, start, showing = FAULTS[fault]
    with operated(load(file), spark) as asked:
        asked.until("streaming", ALL)
        source.run(stop)
        try:
            told(asked, file, showing, fault)
            assert (asked.health()[0], asked.health("/health")[0]) == (503, 200)
        finally:
            source.run(start)
