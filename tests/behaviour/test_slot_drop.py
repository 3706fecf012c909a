"""slot.drop.on.stop: the slot goes with a pipeline that ends well, and stays with one that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyspark_tailrace_postgres import DefaultSource
from tailrace.errors import ConfigError, TailraceError
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.runner import Pipeline
from tests.behaviour.streams import eventually, properties
from tests.conftest import Database


def pipeline(database: Database, folder: Path, drop: str, **more: Any) -> Definition:
    """A pipeline into nothing."""
    given = properties(database, slot__drop__on__stop=drop, snapshot__mode="when_needed")
    content = {"source": {"config": given}, "sink": {"null": {}}, "checkpoint": "state", **more}
    return from_content(content, base=folder, where="test")


def slots(database: Database) -> int:
    with database.connect() as connection:
        row = connection.execute("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()")
        return int((row.fetchone() or [0])[0])


def test_the_slot_goes_when_a_pipeline_ends_or_is_stopped(
    database: Database, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    ending = Pipeline(pipeline(database, tmp_path, "true", trigger="availableNow"), spark).start()
    assert ending.await_(200)
    assert ending.progress().events == 1
    assert slots(database) == 0
    assert "changes until the next start are lost" in caplog.text
    database.execute("INSERT INTO t VALUES (2)")
    # The position is lost, and when_needed reads the table again.
    stopped = Pipeline(pipeline(database, tmp_path, "true", trigger="100ms"), spark).start()
    eventually(lambda: stopped.await_(0.1) or stopped.progress().events == 2)
    database.execute("INSERT INTO t VALUES (3)")
    eventually(lambda: stopped.await_(0.1) or stopped.progress().events == 3)
    stopped.stop(is_pause=True)
    assert slots(database) == 1
    database.execute("INSERT INTO t VALUES (4)")
    resumed = Pipeline(pipeline(database, tmp_path, "true", trigger="100ms"), spark).start()
    eventually(lambda: resumed.await_(0.1) or resumed.progress().events == 1)
    resumed.stop()
    assert slots(database) == 0


def test_the_slot_stays_when_a_pipeline_fails(database: Database, spark: SparkSession, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    running = Pipeline(pipeline(database, tmp_path, "true", trigger="100ms"), spark).start()
    eventually(lambda: running.await_(0.1) or running.progress().events == 1)
    database.execute("DROP PUBLICATION pub", "INSERT INTO t VALUES (2)")
    with pytest.raises(TailraceError):
        running.await_(200)
    running.stop()
    assert slots(database) == 1


def test_a_query_of_the_user_refuses_it() -> None:
    base = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}
    source = DefaultSource({**base, "slot.drop.on.stop": "true"})
    with pytest.raises(ConfigError, match=r"slot\.drop\.on\.stop: a query cannot distinguish a stop from a failure"):
        source.streamReader(StructType())
    source.reader(StructType())
