"""What happens to a replica besides its pipeline: its folder is deleted or put back, or somebody else writes it."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tailrace.operate.status import look
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.target import read_table
from tests.behaviour.other_writer import write_as_another
from tests.behaviour.streams import eventually, properties
from tests.conftest import Database


def ids(root: Path) -> set[int]:
    is_there = (root / "public.t" / "_delta_log").exists()
    return {row["id"] for row in read_table(str(root), "public.t").to_pylist()} if is_there else set()


def replica(database: Database, folder: Path, **sink: object) -> Definition:
    content = {
        "source": {
            "config": properties(
                database,
                signal__poll__interval__ms="100",
                table__watch__interval__ms="200",
                read__again__rows__per__second="5000",
            )
        },
        "sink": {"replica": {"path": str(folder / "lake"), "read_again": {"at_most_every": "0s"}, **sink}},
        "checkpoint": "state",
        "trigger": "200ms",
    }
    return from_content(content, base=folder, where="test")


def begun(spark: SparkSession, database: Database, definition: Definition, root: Path) -> Run:
    """A pipeline that has read the table t and follows its log."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    running = Pipeline(definition, session=spark).start()
    eventually(lambda: running.await_(0.1) or ids(root) == {1, 2})
    database.execute("INSERT INTO t VALUES (3)")
    eventually(lambda: running.await_(0.1) or ids(root) == {1, 2, 3})
    return running


def state_of(definition: Definition) -> tuple[str, str | None]:
    table = next(each for each in look(definition).replica if each.table == "public.t")
    return table.state, table.why


def test_a_deleted_replica_is_reported_and_read_again(
    spark: SparkSession, database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root, definition = tmp_path / "lake", replica(database, tmp_path)
    running = begun(spark, database, definition, root)
    try:
        assert state_of(definition) == ("complete", None)
        shutil.rmtree(root)
        database.execute("INSERT INTO t VALUES (4)")
        with caplog.at_level(logging.WARNING):
            eventually(lambda: running.await_(0.1) or ids(root) == {1, 2, 3, 4})
            eventually(lambda: running.await_(0.1) or state_of(definition) == ("complete", None))
        assert "public.t is incomplete: the replica's table was deleted; it is read again" in caplog.text
        assert "public.t is complete again" in caplog.text
    finally:
        running.stop()


def test_a_replica_that_is_older_than_its_checkpoint_is_incomplete_and_read_again(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    root, definition = tmp_path / "lake", replica(database, tmp_path)
    running = begun(spark, database, definition, root)
    running.stop()
    shutil.copytree(root, tmp_path / "backup")
    running = Pipeline(definition, session=spark).start()
    try:
        database.execute("INSERT INTO t VALUES (4)", "DELETE FROM t WHERE id = 1")
        eventually(lambda: running.await_(0.1) or ids(root) == {2, 3, 4})
    finally:
        running.stop()
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "backup", root)
    running = Pipeline(definition, session=spark).start()
    try:
        database.execute("INSERT INTO t VALUES (5)")
        eventually(lambda: running.await_(0.1) or ids(root) == {2, 3, 4, 5})
        eventually(lambda: running.await_(0.1) or state_of(definition) == ("complete", None))
    finally:
        running.stop()


@pytest.mark.parametrize("by", [pytest.param("restore", marks=pytest.mark.long), "write"])
def test_a_replica_that_somebody_else_wrote_is_told(
    spark: SparkSession, database: Database, tmp_path: Path, by: str
) -> None:
    root, definition = tmp_path / "lake", replica(database, tmp_path, on_incomplete="tell")
    running = begun(spark, database, definition, root)
    try:
        row = read_table(str(root), "public.t").slice(0, 1)
        write_as_another(
            root / "public.t",
            lambda table: table.restore(0) if by == "restore" else write_deltalake(table, row, mode="append"),
        )
        database.execute("INSERT INTO t VALUES (4)")
        eventually(lambda: running.await_(0.1) or 4 in ids(root))
        eventually(lambda: state_of(definition)[0] == "incomplete")
        why = state_of(definition)[1]
        said = "restored to an older version" if by == "restore" else "(WRITE), which is not this pipeline"
        assert why is not None
        assert said in why
        status = look(definition)
        assert status.is_lost
        assert [each.takes for each in status.replica if each.is_lacking] == [
            "run `tailrace signal FILE execute-snapshot -t TABLE`, or set on_incomplete: read_again"
        ]
    finally:
        running.stop()


def test_maintenance_by_others_leaves_a_replica_complete(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    root, definition = tmp_path / "lake", replica(database, tmp_path, on_incomplete="tell")
    running = begun(spark, database, definition, root)
    try:
        for write in (
            lambda table: table.optimize.compact(),
            lambda table: table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False),
            lambda table: table.alter.set_table_properties({"comment": "orders"}, raise_if_not_exists=False),
        ):
            write_as_another(root / "public.t", write)
        database.execute("INSERT INTO t VALUES (4)")
        eventually(lambda: running.await_(0.1) or ids(root) == {1, 2, 3, 4})
        assert state_of(definition) == ("complete", None)
    finally:
        running.stop()
