"""What captures changes on the server stops while a pipeline runs: it is stuck, though it has read all there is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from tailrace.pipeline.definition import load
from tests.behaviour.operated import LIMIT, MORE, operated
from tests.behaviour.test_operate import ALL
from tests.conformance.sqlserver import SqlServerSource

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_an_agent_that_stops(sqlserver_source: SqlServerSource, tmp_path: Path, spark: SparkSession) -> None:
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
    with operated(load(file), spark) as asked:
        asked.until("streaming", ALL)
        source.server.execute("EXEC xp_servicecontrol 'STOP', 'SQLServerAGENT'")
        try:
            status, _, what, todo = asked.until("stuck", LIMIT + MORE)
            assert (status, asked.health("/health")[0]) == (503, 200)
            assert "SQL Server Agent is not running" in what
            assert "start the service SQL Server Agent" in todo
        finally:
            source.server.execute("EXEC xp_servicecontrol 'START', 'SQLServerAGENT'")
