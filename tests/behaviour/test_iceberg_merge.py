"""Iceberg tables that Spark's MERGE writes, on each Spark that Iceberg has a runtime for.

`make spark-versions` makes the environments, see test_spark_versions.py; on another Spark a test is skipped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tailrace.connectors.postgres.ddl.event_triggers import install
from tailrace.errors import TailraceError
from tailrace.pipeline.definition import load
from tailrace.sinks.replica.form import FormatVersion
from tailrace.sinks.replica.iceberg.commits import MARK, summary_of
from tailrace.sinks.replica.iceberg.java_properties import driver
from tailrace.sinks.replica.iceberg.staging import BRANCH
from tailrace.spark.versions import ICEBERG_RUNTIMES, release
from tailrace.testing.jars import resolve_jars
from tests.behaviour.engines import catalog
from tests.behaviour.test_spark_versions import COMMAND, RELEASES, SECONDS, Pipeline, python
from tests.conftest import Database
from tests.servers.iceberg_rest import RestCatalog, why_not_here
from tests.unit.sinks.iceberg.lake import by_duckdb

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
ITEMS, BAG = "public.items", "public.bag"


def jars(version: str) -> str:
    """The jars that a session of that Spark needs."""
    package = ICEBERG_RUNTIMES.get(release(version))
    if package is None:
        pytest.skip(f"Iceberg has no runtime for Spark {version}")
    try:
        found = [jar for each in (package, driver({"uri": "sqlite:"}) or "") for jar in resolve_jars([each])]
    except TailraceError as error:
        pytest.skip(str(error))
    return ",".join(map(str, found))


class Merged(Pipeline):
    """A pipeline into Iceberg tables, by default in a catalog of SQLite."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        spark: dict[str, str],
        options: dict[str, str] | None = None,
        format_version: FormatVersion = 2,
    ) -> None:
        self.options = options or catalog(folder / "lake")
        place = {"namespace": "shop", "catalog": self.options, "format_version": format_version}
        sink = {"format": "iceberg", "engine": "spark", **place}
        super().__init__(database, folder, {"replica": sink}, table__include__list=r"public\.(items|bag)")
        content = json.loads(self.file.read_text())
        content["spark"] |= {"spark.sql.shuffle.partitions": 2, **spark}
        self.file.write_text(json.dumps(content))
        self.database = database

    def table(self, name: str) -> Table:
        return load_catalog("tailrace", **self.options).load_table(("shop", name))

    def dies(self, version: str, place: str, nth: int) -> None:
        """A run that ends at a place, with all of its processes."""
        file = self.folder / "failpoint"
        process = subprocess.Popen(
            [python(version), *COMMAND, "run", str(self.file)],
            stdin=subprocess.DEVNULL,
            stdout=(self.folder / "run.log").open("ab"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "TAILRACE_FAILPOINT": str(file)},
        )
        try:
            file.write_text(f"{place} {nth} {process.pid}")
            assert process.wait(SECONDS) == -signal.SIGKILL, (self.folder / "run.log").read_text()[-3000:]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert not file.exists()

    def compare(self) -> None:
        """The rows are the source's, for each reader, and each commit has brought changes of its own."""
        for name in (ITEMS, BAG):
            table = self.table(name)
            found = [table.scan().to_arrow().to_pylist(), by_duckdb(table)]
            with self.database.connect() as connection:
                columns = [field.name for field in table.schema().fields]
                listed = ", ".join(f'"{column}"' for column in columns)
                rows = connection.execute(f"SELECT {listed} FROM {name}".encode()).fetchall()
            for each in found:
                assert Counter(tuple(row[column] for column in columns) for row in each) == Counter(rows)
            marks = [json.loads(text) for each in told(table) if (text := each.get(MARK)) is not None]
            ends = [json.dumps(mark["tailrace"]["place"]) for mark in marks if "repeated" not in mark]
            assert len(ends) == len(set(ends)), "no range of the log was written twice"


def told(table: Table) -> list[Any]:
    """The summaries of the snapshots that lead to the newest one."""
    found, snapshots = [], {each.snapshot_id: each for each in table.metadata.snapshots}
    snapshot = table.current_snapshot()
    while snapshot is not None:
        found.append(summary_of(snapshot))
        snapshot = snapshots.get(snapshot.parent_snapshot_id or 0)
    return found


@pytest.fixture
def shop(database: Database) -> Database:
    """Tables with a key and without any."""
    database.execute(
        "CREATE TABLE items (id int PRIMARY KEY, n int, note text)",
        "CREATE TABLE bag (a int, b text)",
        "ALTER TABLE bag REPLICA IDENTITY FULL",
        "ALTER TABLE items ALTER note SET STORAGE EXTERNAL",
        "INSERT INTO items SELECT i, 0, repeat('x', 3000) FROM generate_series(1, 200) i",
        "INSERT INTO bag SELECT i % 7, 'b' FROM generate_series(1, 100) i",
    )
    return database


def traffic(shop: Database, number: int) -> None:
    """Changes of all kinds: values that the log does not repeat, keys that change, rows that equal others."""
    shop.execute(
        "UPDATE items SET n = n + 1 WHERE id % 3 = 0",
        f"DELETE FROM items WHERE id = {number + 1}",
        f"UPDATE items SET id = id + 1000 WHERE id = {number + 50}",
        f"INSERT INTO items VALUES ({5000 + number}, {number}, 'new')",
        "INSERT INTO bag SELECT i % 7, 'c' FROM generate_series(1, 10) i",
        "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE a = 3 LIMIT 2)",
    )


@pytest.mark.parametrize("version", RELEASES)
def test_a_pipeline_merges_and_is_killed_between_merge_and_checkpoint(
    shop: Database, tmp_path: Path, version: str
) -> None:
    pipeline = Merged(shop, tmp_path, {"spark.jars": jars(version)})
    pipeline.once(version)
    pipeline.compare()
    places = [("after-merge", 1), ("after-merge", 2), ("after-write", 1)]
    for number, (place, nth) in enumerate(places):
        traffic(shop, number)
        before = {name: pipeline.table(name).current_snapshot() for name in (ITEMS, BAG)}
        pipeline.dies(version, place, nth)
        left = [name for name in before if BRANCH in pipeline.table(name).metadata.refs]
        assert len(left) == (place == "after-merge"), "MERGE has written what nobody sees yet"
        for name in left:
            assert pipeline.table(name).current_snapshot() == before[name]
    pipeline.once(version)
    pipeline.compare()
    for name in (ITEMS, BAG):
        table = pipeline.table(name)
        assert [*table.metadata.refs] == ["main"]
        assert "spark" in {each.get("engine-name") for each in told(table)}


@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("version", RELEASES)
def test_a_catalog_that_is_asked_by_http(
    shop: Database, tmp_path: Path, version: str, format_version: FormatVersion
) -> None:
    """With columns that come, are renamed and dropped; the third version of the format has deletion vectors."""
    settings = {"spark.jars": jars(version)}
    if (reason := why_not_here()) is not None:
        pytest.skip(reason)
    with RestCatalog() as server:
        pipeline = Merged(shop, tmp_path, settings, server.start().options, format_version)
        pipeline.once(version)
        install(load(pipeline.file).config())
        traffic(shop, 0)
        shop.execute(
            "ALTER TABLE items ADD more numeric(9, 2) DEFAULT 1.5",
            "UPDATE items SET more = 2 WHERE id < 20",
            "ALTER TABLE items RENAME n TO m",
            "ALTER TABLE bag DROP b",
            "INSERT INTO bag VALUES (7)",
        )
        pipeline.once(version)
        shop.execute("UPDATE items SET m = 9 WHERE id > 150", "TRUNCATE bag", "INSERT INTO bag VALUES (8), (8)")
        pipeline.once(version)
        pipeline.compare()
        assert pipeline.table(ITEMS).metadata.format_version == format_version


@pytest.mark.parametrize("version", RELEASES)
def test_a_session_without_the_runtime_is_refused_in_a_sentence(shop: Database, tmp_path: Path, version: str) -> None:
    package = ICEBERG_RUNTIMES.get(release(version))
    pipeline = Merged(shop, tmp_path, {})
    process = pipeline.start(version, "--once")
    printed, _ = process.communicate(timeout=SECONDS)
    assert process.returncode != 0
    assert "Traceback" not in printed
    if package is None:
        assert f"Iceberg has no runtime for Spark {version}" in printed
    else:
        assert "the session lacks Iceberg's runtime for Spark" in printed
        assert package in printed
    checked = subprocess.run(
        [python(version), *COMMAND, "check", str(pipeline.file)], capture_output=True, text=True, check=False
    )
    assert (package or "Iceberg has no runtime for Spark") in checked.stdout
